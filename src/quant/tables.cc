// Formats whose codes name one of 16 levels (packed_shape.h).
//   IQ4_NL  32 values in 18 bytes: f16 scale d, then nibbles as in Q4_0.
//   MXFP4   32 values in 17 bytes: one byte e, then nibbles. The scale is 2^(e - 128): half of OCP's E8M0, as
//           the levels are doubled. It is kept as bf16, which has these powers, the two denormals included.
//   IQ4_XS  256 values in 136 bytes: f16 super-scale d, 16 bits of the upper two bits of 8 scales, 4 bytes of
//           their nibbles, then eight times nibbles. The scale of 32 values is d * (6 bits - 32).
#include "quant/block_format.h"

namespace coppice::core {
namespace {

struct Iq4Nl {
  static constexpr PackedKind kKind = PackedKind::q4_table;
  static constexpr int kValues = 32, kBytes = 18;
  static void read(const std::byte* block, BlockParts<32>& parts) {
    parts.d = load<std::uint16_t>(block);
    read_nibbles(block + 2, parts.codes);
  }
};

struct Mxfp4 {
  static constexpr PackedKind kKind = PackedKind::q4_power;
  static constexpr int kValues = 32, kBytes = 17;
  static void read(const std::byte* block, BlockParts<32>& parts) {
    const int e = std::to_integer<int>(block[0]);
    parts.d = static_cast<std::uint16_t>(e < 2 ? 0x20 << e : (e - 1) << 7);
    read_nibbles(block + 1, parts.codes);
  }
};

struct Iq4Xs {
  static constexpr PackedKind kKind = PackedKind::q4_table_super;
  static constexpr int kValues = 256, kBytes = 136;
  static void read(const std::byte* block, BlockParts<256>& parts) {
    parts.d = load<std::uint16_t>(block);
    const int high = load<std::uint16_t>(block + 2);
    for (int b = 0; b < kSuperBlocks; ++b) {
      const int low = std::to_integer<int>(block[4 + b / 2]) >> 4 * (b % 2) & 15;
      parts.scales[b] = static_cast<std::int8_t>((low | (high >> 2 * b & 3) << 4) - 32);
      read_nibbles(block + 8 + 16 * b, parts.codes + 32 * b);
    }
  }
};

}  // namespace

COPPICE_BLOCK_FORMAT(iq4_nl, Iq4Nl)
COPPICE_BLOCK_FORMAT(mxfp4, Mxfp4)
COPPICE_BLOCK_FORMAT(iq4_xs, Iq4Xs)

}  // namespace coppice::core
