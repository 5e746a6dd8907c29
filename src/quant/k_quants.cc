// The K formats: 256 values share an f16 super-scale d, and where there are offsets an f16 m; groups of 16 or
// 32 have an integer scale, and min, of their own. value = (d * scale) * (code - zero), or
// (d * scale) * code - (m * min).
//   Q2_K   84 bytes: 16 bytes of scale | min << 4; 64 of codes; d, m. Groups of 16.
//   Q3_K  110 bytes: 32 of high bits; 64 of low codes; 12 of scales; d. Groups of 16, zero 4, scale - 32.
//   Q4_K  144 bytes: d, m; 12 of scales and mins; 128 of nibbles. Groups of 32.
//   Q5_K  176 bytes: d, m; 12 of scales and mins; 32 of high bits; 128 of nibbles. Groups of 32.
//   Q6_K  210 bytes: 128 of nibbles; 64 of high codes; 16 signed scales; d. Groups of 16, zero 32.
// Codes of b bits lie in planes: of each run of bytes, bits 0 .. b - 1 are the codes of the first values, as
// many as the run has bytes, the next b bits those of the next values, and so on.
#include "quant/block_format.h"

namespace coppice::core {
namespace {

void clear(std::uint8_t* codes) { std::memset(codes, 0, 256); }

// What is subtracted in the file is added in the packed layout.
std::uint16_t negated(const std::byte* half) { return load<std::uint16_t>(half) ^ 0x8000; }

// Eight scales and eight mins of 6 bits in 12 bytes: of the first four bytes the low bits are scales 0 .. 3,
// of the next four mins 0 .. 3; the others have their low nibbles in the last four bytes, the mins above the
// scales, and their upper two bits on top of the first eight bytes.
void read_scales_and_mins(const std::byte* bytes, std::int8_t* scales, std::uint8_t* mins) {
  const auto byte = [bytes](int i) { return std::to_integer<int>(bytes[i]); };
  for (int i = 0; i < 4; ++i) {
    scales[i] = static_cast<std::int8_t>(byte(i) & 63);
    mins[i] = static_cast<std::uint8_t>(byte(4 + i) & 63);
    scales[4 + i] = static_cast<std::int8_t>((byte(8 + i) & 15) | byte(i) >> 6 << 4);
    mins[4 + i] = static_cast<std::uint8_t>(byte(8 + i) >> 4 | byte(4 + i) >> 6 << 4);
  }
}

struct Q2K {
  static constexpr PackedKind kKind = PackedKind::q2_super;
  static constexpr int kValues = 256, kBytes = 84;
  static void read(const std::byte* block, BlockParts<256>& parts) {
    for (int g = 0; g < 16; ++g) {
      const int byte = std::to_integer<int>(block[g]);
      parts.scales[g] = static_cast<std::int8_t>(byte & 15);
      parts.mins[g] = static_cast<std::uint8_t>(byte >> 4);
    }
    clear(parts.codes);
    read_planes<2, 32>(block + 16, parts.codes, 0);
    parts.d = load<std::uint16_t>(block + 80);
    parts.m = negated(block + 82);
  }
};

struct Q3K {
  static constexpr PackedKind kKind = PackedKind::q3_super;
  static constexpr int kValues = 256, kBytes = 110;
  static void read(const std::byte* block, BlockParts<256>& parts) {
    clear(parts.codes);
    read_planes<1, 32>(block, parts.codes, 2);
    read_planes<2, 32>(block + 32, parts.codes, 0);
    const auto byte = [block](int i) { return std::to_integer<int>(block[96 + i]); };
    for (int g = 0; g < 16; ++g) {
      const int low = byte(g % 8) >> 4 * (g / 8) & 15, high = byte(8 + g % 4) >> 2 * (g / 4) & 3;
      parts.scales[g] = static_cast<std::int8_t>((low | high << 4) - 32);
    }
    parts.d = load<std::uint16_t>(block + 108);
  }
};

struct Q4K {
  static constexpr PackedKind kKind = PackedKind::q4_super;
  static constexpr int kValues = 256, kBytes = 144;
  static void read(const std::byte* block, BlockParts<256>& parts) {
    parts.d = load<std::uint16_t>(block);
    parts.m = negated(block + 2);
    read_scales_and_mins(block + 4, parts.scales, parts.mins);
    clear(parts.codes);
    read_planes<4, 32>(block + 16, parts.codes, 0);
  }
};

struct Q5K {
  static constexpr PackedKind kKind = PackedKind::q5_super;
  static constexpr int kValues = 256, kBytes = 176;
  static void read(const std::byte* block, BlockParts<256>& parts) {
    parts.d = load<std::uint16_t>(block);
    parts.m = negated(block + 2);
    read_scales_and_mins(block + 4, parts.scales, parts.mins);
    clear(parts.codes);
    read_planes<1, 32>(block + 16, parts.codes, 4);
    read_planes<4, 32>(block + 48, parts.codes, 0);
  }
};

struct Q6K {
  static constexpr PackedKind kKind = PackedKind::q6_super;
  static constexpr int kValues = 256, kBytes = 210;
  static void read(const std::byte* block, BlockParts<256>& parts) {
    clear(parts.codes);
    read_planes<4, 64>(block, parts.codes, 0);
    read_planes<2, 32>(block + 128, parts.codes, 4);
    for (int g = 0; g < 16; ++g) parts.scales[g] = load<std::int8_t>(block + 192 + g);
    parts.d = load<std::uint16_t>(block + 208);
  }
};

}  // namespace

COPPICE_BLOCK_FORMAT(q2_k, Q2K)
COPPICE_BLOCK_FORMAT(q3_k, Q3K)
COPPICE_BLOCK_FORMAT(q4_k, Q4K)
COPPICE_BLOCK_FORMAT(q5_k, Q5K)
COPPICE_BLOCK_FORMAT(q6_k, Q6K)

}  // namespace coppice::core
