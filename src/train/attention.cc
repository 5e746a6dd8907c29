#include "train/attention.h"

#include <cmath>

namespace coppice::core::train {
namespace {

using torch::Tensor;

// Row p gets row p - by; the first ones get zeros, and are masked.
Tensor later(const Tensor& x, int64_t by) {
  if (by == 0) return x;
  return torch::constant_pad_nd(x.slice(2, 0, x.size(2) - by), {0, 0, by, 0});
}

}  // namespace

Tensor ChainAttention::step(const Tensor& query, const Tensor& key, const Tensor& value) {
  keys_.push_back(key.transpose(1, 2).contiguous());
  values_.push_back(value.transpose(1, 2).contiguous());
  const auto b = query.size(0), rows = query.size(1), heads = query.size(2), d = query.size(3);
  const auto kv = key.size(2);
  const auto depth = static_cast<int64_t>(keys_.size());
  // [B, kv, group, R, d], scaled once
  const Tensor q = (query * (1 / std::sqrt(static_cast<double>(d))))
                       .transpose(1, 2)
                       .contiguous()
                       .reshape({b, kv, group_, rows, d});
  const Tensor first = keys_[0].slice(0, 0, b), first_values = values_[0].slice(0, 0, b);
  Tensor scores =
      torch::matmul(q.reshape({b * kv, group_ * rows, d}), first.reshape({b * kv, rows, d}).transpose(1, 2))
          .reshape({b, kv, group_, rows, rows});
  const Tensor mask = torch::ones({rows, rows}, torch::kBool).tril(1 - depth).logical_not();
  scores = scores.masked_fill(mask, -1e30);
  std::vector<Tensor> parts{scores};
  for (int64_t j = 2; j <= depth; ++j) {
    const Tensor own = later(keys_[static_cast<std::size_t>(j) - 1].slice(0, 0, b), depth - j);
    parts.push_back((q * own.unsqueeze(2)).sum(-1, true));
  }
  const Tensor weights = torch::softmax(parts.size() > 1 ? torch::cat(parts, -1) : scores, -1);
  Tensor out = torch::matmul(weights.slice(-1, 0, rows).reshape({b * kv, group_ * rows, rows}),
                             first_values.reshape({b * kv, rows, d}))
                   .reshape({b, kv, group_, rows, d});
  for (int64_t j = 2; j <= depth; ++j) {
    const Tensor own = later(values_[static_cast<std::size_t>(j) - 1].slice(0, 0, b), depth - j);
    out = out + weights.slice(-1, rows + j - 2, rows + j - 1) * own.unsqueeze(2);
  }
  return out.reshape({b, heads, rows, d}).transpose(1, 2);
}

}  // namespace coppice::core::train
