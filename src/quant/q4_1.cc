// Q4_1: 32 values in 20 bytes. f16 scale d, f16 offset m, then nibbles as in Q4_0. value = d * nibble + m,
// the product rounded before the sum.
#include <algorithm>

#include "quant/blocks.h"
#include "quant/formats.h"
#include "quant/pack_rows.h"
#include "quant/quantise_older.h"

namespace coppice::core::q4_1 {
namespace {

constexpr int kBytes = 20;

}  // namespace

void unpack(const std::byte* blocks, float* values, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += kBlockValues, blocks += kBytes, values += kBlockValues) {
    const float d = f16_to_f32(load<std::uint16_t>(blocks));
    const float m = f16_to_f32(load<std::uint16_t>(blocks + 2));
    for (int i = 0; i < 16; ++i) {
      const int byte = std::to_integer<int>(blocks[4 + i]);
      values[i] = d * static_cast<float>(byte & 15) + m;
      values[16 + i] = d * static_cast<float>(byte >> 4) + m;
    }
  }
}

void quantize(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  if (importance != nullptr) return quantise::with_offset({values, importance, count}, 4, blocks);
  for (std::int64_t at = 0; at < count; at += kBlockValues, blocks += kBytes, values += kBlockValues) {
    const float low_value = *std::min_element(values, values + kBlockValues);
    const float high_value = *std::max_element(values, values + kBlockValues);
    const float d = (high_value - low_value) / 15.0f;
    const float id = inverse(d);
    store(blocks, f32_to_f16(d));
    store(blocks + 2, f32_to_f16(low_value));
    for (int i = 0; i < 16; ++i) {
      const int low = nibble_of((values[i] - low_value) * id + 0.5f);
      const int high = nibble_of((values[16 + i] - low_value) * id + 0.5f);
      blocks[4 + i] = static_cast<std::byte>(low | high << 4);
    }
  }
}

void pack_rows(const std::byte* rows, std::size_t stride, int outputs, int inputs, std::byte* group) {
  constexpr PackedShape kShape = shape_of(PackedKind::q4_offset);
  constexpr std::size_t kUnit = unit_bytes(kShape), kScales = scales_at(kShape);
  for (int at = 0; at < inputs; at += kBlockInputs, rows += kBytes, group += kUnit) {
    pack_codes<16>(rows + 4, stride, outputs, group);
    pack_halves(rows, stride, outputs, group + kScales);
    pack_halves(rows + 2, stride, outputs, group + kScales + 2 * kGroupOutputs);
  }
}

std::int64_t find_nonfinite(const std::byte* blocks, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += kBlockValues, blocks += kBytes)
    if (!finite_half(load<std::uint16_t>(blocks)) || !finite_half(load<std::uint16_t>(blocks + 2))) return at;
  return -1;
}

}  // namespace coppice::core::q4_1
