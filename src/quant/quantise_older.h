// Q4_0, Q4_1, Q5_0, Q5_1 where an importance says what matters.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coppice::core::quantise {

struct WeightedRow {
  const float* values;      // [count]
  const float* importance;  // [count]
  std::int64_t count;       // a multiple of 32
};

void with_scale(const WeightedRow& row, int bits, std::byte* blocks);   // Q4_0 (4), Q5_0 (5)
void with_offset(const WeightedRow& row, int bits, std::byte* blocks);  // Q4_1 (4), Q5_1 (5)

}  // namespace coppice::core::quantise
