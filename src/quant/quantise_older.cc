// Q5_0 and Q5_1, and what they share with Q4_0 and Q4_1: with an importance the scale, and offset, are
// searched for. Without one they are what the gguf package makes of them, byte for byte.
#include "quant/quantise_older.h"

#include <algorithm>

#include "quant/blocks.h"
#include "quant/quantise.h"

namespace coppice::core::quantise {
namespace {

constexpr std::uint16_t kInfinite = 0x7c00;

// Nibbles, and the fifth bits in front of them where there are such.
void write_codes(const std::uint8_t* codes, bool five_bits, std::byte* bytes) {
  if (five_bits) {
    std::uint32_t high = 0;
    for (int i = 0; i < kBlockValues; ++i) high |= static_cast<std::uint32_t>(codes[i] >> 4) << i;
    store(bytes, high);
    bytes += 4;
  }
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<std::byte>((codes[i] & 15) | (codes[16 + i] & 15) << 4);
}

// The integer part of `value`, kept in [0, 31]; 0 for NaN.
std::uint8_t five_bits_of(float value) {
  if (!(value > 0.0f)) return 0;
  return value >= 31.0f ? 31 : static_cast<std::uint8_t>(value);
}

}  // namespace

void with_scale(const WeightedRow& row, int bits, std::byte* blocks) {
  const float zero = bits == 4 ? 8 : 16;
  const Steps steps{-zero, zero - 1, 5, 0.2f};
  for (std::int64_t at = 0; at < row.count; at += kBlockValues, blocks += bits == 4 ? 18 : 22) {
    Scaled in;
    in.read(row.values + at, row.importance + at, kBlockValues, kBlockValues);
    float codes[kBlockValues] = {};
    std::uint16_t d = in.finite ? 0 : kInfinite;
    if (in.unit != 0) {
      const float scale = best_scale(steps, in.x, in.w, kBlockValues);
      d = in.half_bits(scale);
      take_codes(steps, in.x, in.w, kBlockValues, in.half(scale), codes);
    }
    std::uint8_t from_zero[kBlockValues];
    for (int i = 0; i < kBlockValues; ++i) from_zero[i] = static_cast<std::uint8_t>(codes[i] + zero);
    store(blocks, d);
    write_codes(from_zero, bits == 5, blocks + 2);
  }
}

void with_offset(const WeightedRow& row, int bits, std::byte* blocks) {
  const float most = bits == 4 ? 15 : 31;
  for (std::int64_t at = 0; at < row.count; at += kBlockValues, blocks += bits == 4 ? 20 : 24) {
    Scaled in;
    in.read(row.values + at, row.importance + at, kBlockValues, kBlockValues);
    float codes[kBlockValues] = {};
    std::uint16_t d = in.finite ? 0 : kInfinite, m = 0;
    if (in.unit != 0) {
      const ScaleOffset fit = best_scale_offset(most, true, in.x, in.w, kBlockValues);
      d = in.half_bits(fit.scale);
      m = in.half_bits(fit.offset);
      take_codes(most, in.x, in.w, kBlockValues, {in.half(fit.scale), in.half(fit.offset)}, codes);
    }
    std::uint8_t whole[kBlockValues];
    for (int i = 0; i < kBlockValues; ++i) whole[i] = static_cast<std::uint8_t>(codes[i]);
    store(blocks, d);
    store(blocks + 2, m);
    write_codes(whole, bits == 5, blocks + 4);
  }
}

}  // namespace coppice::core::quantise

namespace coppice::core {

namespace q5_0 {

// The value furthest from zero gets the code 0, which is -16.
void quantize(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  if (importance != nullptr) return quantise::with_scale({values, importance, count}, 5, blocks);
  for (std::int64_t at = 0; at < count; at += kBlockValues, blocks += 22, values += kBlockValues) {
    float furthest = values[0];
    for (int i = 1; i < kBlockValues; ++i)
      if (std::fabs(values[i]) > std::fabs(furthest)) furthest = values[i];
    const float d = furthest / -16.0f, id = inverse(d);
    std::uint8_t codes[kBlockValues];
    for (int i = 0; i < kBlockValues; ++i) codes[i] = quantise::five_bits_of(values[i] * id + 16.5f);
    store(blocks, f32_to_f16(d));
    quantise::write_codes(codes, true, blocks + 2);
  }
}

}  // namespace q5_0

namespace q5_1 {

void quantize(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  if (importance != nullptr) return quantise::with_offset({values, importance, count}, 5, blocks);
  for (std::int64_t at = 0; at < count; at += kBlockValues, blocks += 24, values += kBlockValues) {
    const float low = *std::min_element(values, values + kBlockValues);
    const float high = *std::max_element(values, values + kBlockValues);
    const float d = (high - low) / 31.0f, id = inverse(d);
    std::uint8_t codes[kBlockValues];
    for (int i = 0; i < kBlockValues; ++i) codes[i] = quantise::five_bits_of((values[i] - low) * id + 0.5f);
    store(blocks, f32_to_f16(d));
    store(blocks + 2, f32_to_f16(low));
    quantise::write_codes(codes, true, blocks + 4);
  }
}

}  // namespace q5_1
}  // namespace coppice::core
