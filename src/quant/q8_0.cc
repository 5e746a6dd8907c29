// Q8_0: 32 values in 34 bytes. f16 scale d, then 32 signed bytes. value = d * code.
#include <algorithm>

#include "quant/blocks.h"
#include "quant/formats.h"
#include "quant/pack_rows.h"

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

void quantize(const float* values, const float*, std::byte* blocks, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += kBlockValues, blocks += kBytes, values += kBlockValues) {
    float largest = 0.0f;
    for (int i = 0; i < kBlockValues; ++i) largest = std::max(largest, std::fabs(values[i]));
    const float d = largest / 127.0f;
    const float id = inverse(d);
    store(blocks, f32_to_f16(d));
    for (int i = 0; i < kBlockValues; ++i) store(blocks + 2 + i, code_of(values[i] * id));
  }
}

void pack_rows(const std::byte* rows, std::size_t stride, int outputs, int inputs, std::byte* group) {
  constexpr std::uint32_t kPlus128 = 0x80808080u;  // in each byte
  constexpr PackedShape kShape = shape_of(PackedKind::q8);
  constexpr std::size_t kUnit = unit_bytes(kShape), kScales = scales_at(kShape);
  for (int at = 0; at < inputs; at += kBlockInputs, rows += kBytes, group += kUnit) {
    pack_codes<32>(rows + 2, stride, outputs, group, kPlus128);
    pack_halves(rows, stride, outputs, group + kScales);
  }
}

std::int64_t find_nonfinite(const std::byte* blocks, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += kBlockValues, blocks += kBytes)
    if (!finite_half(load<std::uint16_t>(blocks))) return at;
  return -1;
}

}  // namespace coppice::core::q8_0
