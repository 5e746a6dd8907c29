// F32, F16 and BF16: a value is a block of one. Conversions are written out on bits, so that they round to
// nearest even and treat infinities and NaN alike on every machine and compiler. A NaN comes out quiet with
// its sign and the bits of its payload that fit, as the CPUs' own instructions do it.
#include <algorithm>
#include <bit>

#include "quant/blocks.h"
#include "quant/formats.h"
#include "quant/pack_rows.h"

namespace coppice::core {

float f16_to_f32(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1f;
  const std::uint32_t mantissa = half & 0x3ff;
  if (exponent == 0) {  // zero or denormal: mantissa * 2^-24, exact in f32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  if (exponent == 0x1f) {
    const std::uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | (mantissa << 13));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));  // 112 = 127 - 15
}

std::uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fffffff;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000) {
    half = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  } else if (magnitude >= 0x477ff000) {  // 65520, halfway between the largest f16 and the next: infinity
    half = 0x7c00;
  } else if (magnitude >=
             0x38800000) {  // 2^-14: normal; the carry of rounding may run into the exponent, rightly
    half = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  } else if (magnitude > 0x33000000) {  // 2^-25, half of the smallest denormal, rounds to zero itself
    const std::uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
    const std::uint32_t shift = 126 - (magnitude >> 23);  // 14 .. 24
    const std::uint32_t halfway = (1u << (shift - 1)) - 1;
    half = (mantissa + halfway + ((mantissa >> shift) & 1)) >> shift;
  }
  return static_cast<std::uint16_t>(sign | half);
}

float bf16_to_f32(std::uint16_t half) { return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16); }

std::uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

namespace {

// Values of `Bits` are laid one an output, input after input. Squares of 16 bytes a row are transposed, all
// of a line of a row before the next rows: rows may lie a power of two apart, where few lines fit the cache.
template <class Bits>
void pack_values(const std::byte* rows, std::size_t stride, int outputs, int inputs, std::byte* group) {
  constexpr int kSide = 16 / static_cast<int>(sizeof(Bits));  // of a square
  constexpr int kLine = 64 / static_cast<int>(sizeof(Bits));  // inputs
  constexpr std::size_t kUnit = sizeof(Bits) * kGroupOutputs;
  const auto source = [&](int lane, int input) {
    return rows + stride * static_cast<std::size_t>(lane) + sizeof(Bits) * static_cast<std::size_t>(input);
  };
  const auto place = [&](int lane, int input) {
    return group + kUnit * static_cast<std::size_t>(input) + sizeof(Bits) * static_cast<std::size_t>(lane);
  };
  const int square_lanes = outputs / kSide * kSide, square_inputs = inputs / kSide * kSide;
  for (int line = 0; line < square_inputs; line += kLine)
    for (int lane = 0; lane < square_lanes; lane += kSide)
      for (int k = line; k < std::min(line + kLine, square_inputs); k += kSide) {
        if constexpr (sizeof(Bits) == 4) transpose_dwords(source(lane, k), stride, place(lane, k), kUnit);
        if constexpr (sizeof(Bits) == 2) transpose_words(source(lane, k), stride, place(lane, k), kUnit);
      }
  const auto copy = [&](int lane, int first) {
    for (int k = first; k < inputs; ++k) store(place(lane, k), load<Bits>(source(lane, k)));
  };
  for (int lane = 0; lane < square_lanes; ++lane) copy(lane, square_inputs);
  for (int lane = square_lanes; lane < outputs; ++lane) copy(lane, 0);
}

// The first of `count` values whose exponent bits are all set.
template <class Bits>
std::int64_t find_exponent(const std::byte* blocks, std::int64_t count, Bits exponent) {
  for (std::int64_t at = 0; at < count; ++at, blocks += sizeof(Bits))
    if ((load<Bits>(blocks) & exponent) == exponent) return at;
  return -1;
}

}  // namespace

namespace f32 {

void unpack(const std::byte* blocks, float* values, std::int64_t count) {
  std::memcpy(values, blocks, sizeof(float) * static_cast<std::size_t>(count));
}
void quantize(const float* values, const float*, std::byte* blocks, std::int64_t count) {
  std::memcpy(blocks, values, sizeof(float) * static_cast<std::size_t>(count));
}
void pack_rows(const std::byte* rows, std::size_t stride, int outputs, int inputs, std::byte* group) {
  pack_values<std::uint32_t>(rows, stride, outputs, inputs, group);
}
std::int64_t find_nonfinite(const std::byte* blocks, std::int64_t count) {
  return find_exponent<std::uint32_t>(blocks, count, 0x7f800000);
}

}  // namespace f32

namespace f16 {

void unpack(const std::byte* blocks, float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = f16_to_f32(load<std::uint16_t>(blocks + 2 * i));
}
void quantize(const float* values, const float*, std::byte* blocks, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) store(blocks + 2 * i, f32_to_f16(values[i]));
}
void pack_rows(const std::byte* rows, std::size_t stride, int outputs, int inputs, std::byte* group) {
  pack_values<std::uint16_t>(rows, stride, outputs, inputs, group);
}
std::int64_t find_nonfinite(const std::byte* blocks, std::int64_t count) {
  return find_exponent<std::uint16_t>(blocks, count, 0x7c00);
}

}  // namespace f16

namespace bf16 {

void unpack(const std::byte* blocks, float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = bf16_to_f32(load<std::uint16_t>(blocks + 2 * i));
}
void quantize(const float* values, const float*, std::byte* blocks, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) store(blocks + 2 * i, f32_to_bf16(values[i]));
}
void pack_rows(const std::byte* rows, std::size_t stride, int outputs, int inputs, std::byte* group) {
  pack_values<std::uint16_t>(rows, stride, outputs, inputs, group);
}
std::int64_t find_nonfinite(const std::byte* blocks, std::int64_t count) {
  return find_exponent<std::uint16_t>(blocks, count, 0x7f80);
}

}  // namespace bf16
}  // namespace coppice::core
