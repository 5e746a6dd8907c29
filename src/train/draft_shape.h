// The shape of a slimmable draft (arXiv:1812.08928, arXiv:1903.05134): a llama whose narrower widths are the
// first dimensions of its tensors. Heads, KV heads and head size are the same at all widths, so that K and V
// written at one width can be read at another. An exit after the first blocks is one more way to run it.
#pragma once

#include <coppice/error.h>

#include <string>
#include <vector>

#include "model/config.h"

namespace coppice::core::train {

// The factor at which a draft is as wide as its target, unless DraftShapeOptions::hidden says something else.
inline constexpr double kWidestFactor = 1.5;

struct DraftShapeOptions {
  int layers = 2;
  int heads = 0;     // 0: the target's
  int kv_heads = 0;  // 0: the target's, or all heads if it does not divide them
  int hidden = 0;    // hidden size at factor 1; 0: the target's / kWidestFactor
  std::vector<double> factors = {0.5, 0.75, 1.0, 1.25,
                                 1.5};  // ascending, above 0; none wider than the target
  std::vector<int> from;                // the target's layers to begin with; empty: first and last ones
  int exit_layer = -1;                  // 0: none; -1: after 2 blocks, or 1 of 2
  double exit_factor = 0.75;            // the width of the exit, if it is one of the factors
};

struct DraftShape {
  std::vector<double> factors;    // [widths] ascending
  std::vector<int> hidden;        // [widths] multiples of 32
  std::vector<int> feed_forward;  // [widths] multiples of 32
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int exit_layer = 0;  // blocks before the exit; 0: there is none
  int exit_width = 0;  // index of the exit's width
  int vocab = 0;       // of the embedding: all tokens
  int head_rows = 0;   // of the head: the most used tokens
  int context_length = 0;
  float norm_eps = 1e-5f;
  double rope_base = 10000.0;
  std::vector<int> from;  // [layers] of the target

  int widths() const { return static_cast<int>(hidden.size()); }
  int widest() const { return widths() - 1; }
};

// The error names the option. `target` must be a llama with RMS norms and gated feed-forward layers.
Result<DraftShape> make_draft_shape(const DraftShapeOptions& options, const ModelConfig& target,
                                    int head_rows);

// One way to run a draft.
struct DraftMode {
  int width = 0;
  bool exit = false;
  bool operator==(const DraftMode&) const = default;
};

// Every mode, narrow to wide, the exit last.
std::vector<DraftMode> draft_modes(const DraftShape& shape);
// "w384", "w288-exit1".
std::string mode_name(const DraftShape& shape, const DraftMode& mode);

}  // namespace coppice::core::train
