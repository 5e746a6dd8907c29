// The scalar table's own limits: what this machine can do without vectors of ours.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/isa_tables.h"

namespace coppice::core {

float read_all_scalar(const std::byte* data, std::size_t bytes) {
  float most = 0;
  for (std::size_t at = 0; at + sizeof(float) <= bytes; at += sizeof(float)) {
    float value;
    std::memcpy(&value, data + at, sizeof value);
    most = std::max(most, value);
  }
  return most;
}

double int8_peak_scalar(std::int64_t rounds) {
  std::int32_t a = 0, b = 0, c = 0, d = 0;
  std::int32_t x = 3, y = 1;
  for (std::int64_t i = 0; i < rounds; ++i) {
    asm volatile("" : "+r"(x), "+r"(y), "+r"(a), "+r"(b), "+r"(c), "+r"(d));  // one round after the other
    a += x * y, b += x * y, c += x * y, d += x * y;
  }
  asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
  return 4.0 * static_cast<double>(rounds);
}

double f32_peak_scalar(std::int64_t rounds) {
  float a = 0, b = 1, c = 2, d = 3;  // equal ones would be one
  for (std::int64_t i = 0; i < rounds; ++i) {
    a = std::fma(a, 0.5f, 0.25f), b = std::fma(b, 0.5f, 0.25f);
    c = std::fma(c, 0.5f, 0.25f), d = std::fma(d, 0.5f, 0.25f);
  }
  volatile float sink = a + b + c + d;
  (void)sink;
  return 4.0 * static_cast<double>(rounds);
}

}  // namespace coppice::core
