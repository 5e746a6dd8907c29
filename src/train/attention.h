// Attention of a head that is unrolled over its own output (arXiv:2503.01840): at depth k a row sees the keys
// of depth 1 up to k - 1 rows before it, and one key of each later depth, those of its own chain.
#pragma once

#include <vector>

#include "train/torch.h"

namespace coppice::core::train {

class ChainAttention {
 public:
  // `group`: query heads that share a key head.
  explicit ChainAttention(int group) : group_(group) {}

  // The next depth. query [B, R, heads, d], key and value [B, R, kv heads, d], where B is at most the last
  // call's. Returns [B, R, heads, d].
  torch::Tensor step(const torch::Tensor& query, const torch::Tensor& key, const torch::Tensor& value);

 private:
  int group_;
  std::vector<torch::Tensor> keys_, values_;  // by depth: [B, kv heads, R, d]
};

}  // namespace coppice::core::train
