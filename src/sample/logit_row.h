// The logits of one row of a pass, and what was taken from them on the way.
#pragma once

#include <span>
#include <vector>

namespace coppice::core {

struct LogitRow {
  LogitRow() = default;
  LogitRow(std::span<const float> values_, std::span<const float> maxima_ = {})
      : values(values_), maxima(maxima_) {}
  LogitRow(const std::vector<float>& values_) : values(values_) {}

  std::span<const float> values;  // [vocab]
  // [ceil(vocab / 32)]: the largest of each group of 32, and a promise that every logit is finite. Or empty.
  std::span<const float> maxima;
};

}  // namespace coppice::core
