// Draft heads with random weights, in the tensor names of llama.cpp's converter: for tests, and for measuring
// what a head costs. They guess nothing. The same options give the same bytes on every machine.
#pragma once

#include <coppice/error.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/config.h"

namespace coppice::core {

struct RandomHeadOptions {
  std::uint64_t seed = 1;
  std::vector<int> feature_layers;              // empty: a third, two thirds and all of the target's
  int hidden = 0;                               // 0: the target's. Another one needs an embedding of its own
  int heads = 0, kv_heads = 0, head_dim = 0;    // 0: the target's
  int feed_forward = 0;                         // 0: the target's
  int rows = 0;                                 // of the output; 0: the whole vocabulary, and no d2t
  std::vector<std::string> formats = {"Q4_1"};  // of the matrices, in turn
  bool own_embedding = false;
  bool own_output = true;  // false: the target's head
  bool standardised = false;
  bool norm_before_residual = false;
  bool old_names = false;  // extract_layers, hidden_norm, and offsets in d2t
};

// A GGUF file's bytes, for a target of this shape.
Result<std::vector<std::byte>> random_head(const ModelConfig& target, const RandomHeadOptions& options);
Status write_random_head(const ModelConfig& target, const RandomHeadOptions& options,
                         const std::string& path);

}  // namespace coppice::core
