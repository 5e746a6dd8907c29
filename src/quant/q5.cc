// Q5_0: 32 values in 22 bytes. f16 scale d, 32 high bits, then 16 bytes of nibbles as in Q4_0; bit i of the
// high bits is bit 4 of value i. value = d * (code - 16). Q5_1: 24 bytes, an f16 offset m behind d.
// value = d * code + m.
#include "quant/block_format.h"

namespace coppice::core {
namespace {

void read_codes(const std::byte* high_bits, std::uint8_t* codes) {
  const auto high = load<std::uint32_t>(high_bits);
  read_nibbles(high_bits + 4, codes);
  for (int i = 0; i < 32; ++i) codes[i] |= static_cast<std::uint8_t>((high >> i & 1) << 4);
}

struct Q5 {
  static constexpr PackedKind kKind = PackedKind::q5;
  static constexpr int kValues = 32, kBytes = 22;
  static void read(const std::byte* block, BlockParts<32>& parts) {
    parts.d = load<std::uint16_t>(block);
    read_codes(block + 2, parts.codes);
  }
};

struct Q5Offset {
  static constexpr PackedKind kKind = PackedKind::q5_offset;
  static constexpr int kValues = 32, kBytes = 24;
  static void read(const std::byte* block, BlockParts<32>& parts) {
    parts.d = load<std::uint16_t>(block);
    parts.m = load<std::uint16_t>(block + 2);
    read_codes(block + 4, parts.codes);
  }
};

}  // namespace

COPPICE_BLOCK_FORMAT(q5_0, Q5)
COPPICE_BLOCK_FORMAT(q5_1, Q5Offset)

}  // namespace coppice::core
