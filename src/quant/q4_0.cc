// Q4_0: 32 values in 18 bytes. f16 scale d, then 16 bytes; byte i holds value i in its low nibble and value
// 16 + i in its high one. value = d * (nibble - 8).
#include "quant/blocks.h"
#include "quant/formats.h"
#include "quant/pack_rows.h"
#include "quant/quantise_older.h"

namespace coppice::core::q4_0 {
namespace {

constexpr int kBytes = 18;

// The value furthest from zero (the first of equals), with its sign: it becomes the code 0, which is -8.
float extreme(const float* values) {
  float best = values[0];
  for (int i = 1; i < kBlockValues; ++i)
    if (std::fabs(values[i]) > std::fabs(best)) best = values[i];
  return best;
}

}  // namespace

void unpack(const std::byte* blocks, float* values, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += kBlockValues, blocks += kBytes, values += kBlockValues) {
    const float d = f16_to_f32(load<std::uint16_t>(blocks));
    for (int i = 0; i < 16; ++i) {
      const int byte = std::to_integer<int>(blocks[2 + i]);
      values[i] = d * static_cast<float>((byte & 15) - 8);
      values[16 + i] = d * static_cast<float>((byte >> 4) - 8);
    }
  }
}

void quantize(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  if (importance != nullptr) return quantise::with_scale({values, importance, count}, 4, blocks);
  for (std::int64_t at = 0; at < count; at += kBlockValues, blocks += kBytes, values += kBlockValues) {
    const float d = extreme(values) / -8.0f;
    const float id = inverse(d);
    store(blocks, f32_to_f16(d));
    for (int i = 0; i < 16; ++i) {
      const int low = nibble_of(values[i] * id + 8.5f);
      const int high = nibble_of(values[16 + i] * id + 8.5f);
      blocks[2 + i] = static_cast<std::byte>(low | high << 4);
    }
  }
}

// The file's byte i pairs inputs i and 16 + i, and so does the packed layout: codes move as they are.
void pack_rows(const std::byte* rows, std::size_t stride, int outputs, int inputs, std::byte* group) {
  constexpr PackedShape kShape = shape_of(PackedKind::q4);
  constexpr std::size_t kUnit = unit_bytes(kShape), kScales = scales_at(kShape);
  for (int at = 0; at < inputs; at += kBlockInputs, rows += kBytes, group += kUnit) {
    pack_codes<16>(rows + 2, stride, outputs, group);
    pack_halves(rows, stride, outputs, group + kScales);
  }
}

std::int64_t find_nonfinite(const std::byte* blocks, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += kBlockValues, blocks += kBytes)
    if (!finite_half(load<std::uint16_t>(blocks))) return at;
  return -1;
}

}  // namespace coppice::core::q4_0
