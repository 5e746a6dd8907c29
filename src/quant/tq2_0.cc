// TQ2_0, for models that were trained with weights of -1, 0 and 1 times a scale: 256 values in 66 bytes, 64
// of codes in planes of two bits (block_format.h), then an f16 scale d. value = d * (code - 1). Packed as
// Q3_K is, for a value there is d * (scale * (code - 4)): 3 more than the file's code, and scales of 1. So it
// takes Q3_K's memory and time.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "quant/block_format.h"

namespace coppice::core {
namespace {

struct Ternary {
  static constexpr PackedKind kKind = PackedKind::q3_super;
  static constexpr int kValues = 256, kBytes = 66;
  static void read(const std::byte* block, BlockParts<256>& parts) {
    std::fill(std::begin(parts.codes), std::end(parts.codes), std::uint8_t{0});
    read_planes<2, 32>(block, parts.codes, 0);
    for (std::uint8_t& code : parts.codes) code = static_cast<std::uint8_t>(code + 3);
    std::fill(std::begin(parts.scales), std::end(parts.scales), std::int8_t{1});
    parts.d = load<std::uint16_t>(block + 64);
  }
};

// -1, 0 or 1: halves away from zero; 0 for what is no number.
int nearest(float value) {
  if (!(std::fabs(value) >= 0.5f)) return 0;
  return value < 0 ? -1 : 1;
}

}  // namespace

COPPICE_BLOCK_FORMAT(tq2_0, Ternary)

namespace tq2_0 {

// The largest value is d. Importance changes nothing: there is one way to round to a code.
void quantize(const float* values, const float*, std::byte* blocks, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += Ternary::kValues, blocks += Ternary::kBytes) {
    float d = 0;
    for (int i = 0; i < Ternary::kValues; ++i) d = std::max(d, std::fabs(values[at + i]));
    const float id = inverse(d);
    std::fill(blocks, blocks + 64, std::byte{0});
    for (int i = 0; i < Ternary::kValues; ++i) {
      const int code = nearest(values[at + i] * id) + 1;
      blocks[i / 128 * 32 + i % 32] |= static_cast<std::byte>(code << 2 * (i / 32 % 4));
    }
    store(blocks + 64, f32_to_f16(d));
  }
}

}  // namespace tq2_0
}  // namespace coppice::core
