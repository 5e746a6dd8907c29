// What the implementation files of the formats share: unaligned fields, and the functions the table's rows
// name. A file's blocks lie at any address, so fields are copied, never cast.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace coppice::core {

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <class T>
void store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

inline constexpr int kBlockValues = 32;  // of Q4_0, Q4_1 and Q8_0

inline bool finite_half(std::uint16_t half) { return (half & 0x7c00) != 0x7c00; }

// A quantiser's code: the integer part of `value`, kept in [0, 15]; 0 for NaN, whose conversion is undefined.
inline std::uint8_t nibble_of(float value) {
  if (!(value > 0.0f)) return 0;
  return value >= 15.0f ? 15 : static_cast<std::uint8_t>(value);
}

// 1/d, or 0 for the block of zeros.
inline float inverse(float d) { return d == 0.0f ? 0.0f : 1.0f / d; }

// The four functions of a row; what each does stands at Format in formats.h.
#define COPPICE_FORMAT_FUNCTIONS(family)                                                                \
  namespace family {                                                                                    \
  void unpack(const std::byte* blocks, float* values, std::int64_t count);                              \
  void quantize(const float* values, const float* importance, std::byte* blocks, std::int64_t count);   \
  void pack_rows(const std::byte* rows, std::size_t stride, int outputs, int inputs, std::byte* group); \
  std::int64_t find_nonfinite(const std::byte* blocks, std::int64_t count);                             \
  }
#define COPPICE_FORMAT(type, name, family, values, bytes, kind, file_type) COPPICE_FORMAT_FUNCTIONS(family)
#include "quant/format_rows.inc"
#undef COPPICE_FORMAT
COPPICE_FORMAT_FUNCTIONS(i64)
#undef COPPICE_FORMAT_FUNCTIONS

}  // namespace coppice::core
