// Slimmable models: one file, one set of packed bytes, several widths to run it at, and perhaps an early exit
// (docs/file-formats.md, "Slimmable drafts"). The attention part has the same heads at every width, so what
// one width wrote into the cache another one reads.
#pragma once

#include <coppice/error.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "model/config.h"
#include "model/weights.h"

namespace coppice::core {

// Whether these are widths of such a model; the message begins with the field that is wrong.
Status check_slim(const SlimWidths& slim, int hidden, int feed_forward, int layers);

// The widths a file says it has; checked, the error names file and key. `config` has the sizes already.
Result<SlimWidths> read_slim(const gguf::File& file, const ModelConfig& config);

// "blk.3.attn_norm.384": the norm `name` of a narrower width.
std::string narrow_norm(const std::string& name, int hidden);

// One way to run a model: the weights a pass reads and how wide it is. Every model has at least one.
struct Variant {
  std::string name;     // "0.75", "exit"; empty where there is no choice
  float factor = 1.0f;  // of a width
  int hidden = 0;
  int feed_forward = 0;
  int blocks = 0;        // that run whole; those above them only store K and V (early exit)
  int experts_used = 0;  // by a row
  ModelWeights weights;  // views into the model's

  std::size_t streamed_bytes() const;  // of a pass with logits for one row
};

// Widths in the order of `config.slim`, then the exit. `weights` must outlive them.
std::vector<Variant> make_variants(const ModelConfig& config, const ModelWeights& weights);

// All that is outside the blocks, and these blocks, at the whole width.
ModelWeights view_of_blocks(const ModelConfig& config, const ModelWeights& weights,
                            std::span<const int> blocks);

}  // namespace coppice::core
