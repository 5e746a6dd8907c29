// Q8_0: 32 values in 34 bytes. f16 scale d, then 32 signed bytes. value = d * code.
#include <algorithm>

#include "quant/blocks.h"
#include "quant/formats.h"

namespace coppice::core::q8_0 {
namespace {

constexpr int kBytes = 34;

// Nearest integer, halves away from zero, kept in [-127, 127]; 0 for NaN.
std::int8_t code_of(float value) {
  if (!(std::fabs(value) >= 0.5f)) return 0;
  return static_cast<std::int8_t>(std::round(std::clamp(value, -127.0f, 127.0f)));
}

}  // namespace

void unpack(const std::byte* blocks, float* values, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += kBlockValues, blocks += kBytes, values += kBlockValues) {
    const float d = f16_to_f32(load<std::uint16_t>(blocks));
    for (int i = 0; i < kBlockValues; ++i)
      values[i] = d * static_cast<float>(load<std::int8_t>(blocks + 2 + i));
  }
}

void quantize(const float* values, std::byte* blocks, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += kBlockValues, blocks += kBytes, values += kBlockValues) {
    float largest = 0.0f;
    for (int i = 0; i < kBlockValues; ++i) largest = std::max(largest, std::fabs(values[i]));
    const float d = largest / 127.0f;
    const float id = inverse(d);
    store(blocks, f32_to_f16(d));
    for (int i = 0; i < kBlockValues; ++i) store(blocks + 2 + i, code_of(values[i] * id));
  }
}

void pack_lane(const std::byte* row, int inputs, int lane, std::byte* group) {
  const std::size_t unit = packed_unit_bytes(PackedKind::q8);
  for (int at = 0; at < inputs; at += kBlockInputs, row += kBytes, group += unit) {
    std::byte* codes = lane_codes(group, lane, kQ8Half);
    for (int j = 0; j < 8; ++j) {
      const auto four = load<std::uint32_t>(row + 2 + 4 * j);
      store(codes + 64 * j, four ^ 0x80808080u);  // + 128 in each byte
    }
    std::memcpy(group + kQ8Scales + 2 * lane, row, 2);
  }
}

std::int64_t find_nonfinite(const std::byte* blocks, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += kBlockValues, blocks += kBytes)
    if (!finite_half(load<std::uint16_t>(blocks))) return at;
  return -1;
}

}  // namespace coppice::core::q8_0
