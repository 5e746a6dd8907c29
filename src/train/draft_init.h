// A draft's weights to begin with, out of layers of the target.
//
// The gains of the norms go into the matrices behind them. Then the residual stream is turned by an
// orthogonal matrix, which changes nothing at full width, for an RMS norm does not see it (SliceGPT,
// arXiv:2401.15024, section 3): by the principal components of what runs through the norms, so that the first
// dimensions carry most of it and a narrow slice loses least. Neurons of the feed-forward layers are put in
// order of what they give to the residual stream. The gain of a width makes up for the energy its slice
// leaves out.
#pragma once

#include <coppice/error.h>
#include <memory>
#include <span>
#include <vector>

#include "gguf/file.h"
#include "train/draft_model.h"

namespace coppice::core::train {

struct DraftInit {
  std::shared_ptr<SlimDraft> draft;
  // What the slice of each width keeps of the residual stream's energy, averaged over the norms: [widths].
  std::vector<double> energy;
};

// `share_embedding`: tokens outside the head take the embedding of the head's token most like them (by the
// cosine of the target's embeddings), so that the draft has none of their own. `texts`: int64 [texts, tokens]
// each, of the kind the draft will see; some thousand tokens are enough. `target` is read, not kept.
Result<DraftInit> init_draft(const gguf::File& target, const DraftShape& shape,
                             const std::vector<std::int32_t>& head_tokens,
                             std::span<const torch::Tensor> texts, bool share_embedding = false);

// The first step: the target's layers as they are, gains folded, at the target's width alone.
Result<std::shared_ptr<SlimDraft>> whole_draft(const gguf::File& target, const DraftShape& shape,
                                               const std::vector<std::int32_t>& head_tokens);
// Turns the residual stream: every matrix that reads it becomes W q, every one that writes it q^T W. Gains
// must be one.
void turn_residual(SlimDraft& draft, const torch::Tensor& q);

}  // namespace coppice::core::train
