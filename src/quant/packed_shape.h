// What the kinds of packed weights are made of, as constants: a layout and a kernel are put together from the
// width of a code, the group of inputs that a scale is for, and how a scale is kept. packed.h has the
// picture. Constants have internal linkage and functions are used at compile time only: the files of an
// instruction set may include this.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coppice::core {

enum class PackedKind : std::uint8_t {
  f32,
  f16,
  bf16,
  q4,
  q4_offset,
  q8,
  q5,
  q5_offset,
  q4_table,
  q4_power,
  q2_super,
  q3_super,
  q4_super,
  q5_super,
  q6_super,
  q4_table_super,
};
constexpr int kPackedKinds = 16;

constexpr int kGroupOutputs = 32;
constexpr int kHalfOutputs = 16;
constexpr int kBlockInputs = 32;
constexpr int kSuperBlocks = 8;  // blocks that share super-scales

enum class ScaleType : std::uint8_t {
  half,         // f16, a block
  power,        // bf16, a block: a power of two beyond f16's range
  super_bytes,  // an f16 for kSuperBlocks blocks times a signed byte a group
};

// The level of a code. Tables hold level + zero: kernels multiply unsigned bytes.
enum class Levels : std::uint8_t {
  straight,    // code - zero
  nonlinear4,  // of IQ4_NL
  float4,      // of MXFP4: e2m1, doubled
};

struct PackedShape {
  int bits;     // of a code: 2, 3, 4, 5, 6, 8; 0: float weights
  int zero;     // a power of two, or 0
  int group;    // inputs that share a scale: 32 or 16
  bool offset;  // value = d * level + m, and zero is 0
  ScaleType scale;
  Levels levels = Levels::straight;
};

// By PackedKind.
constexpr PackedShape kPackedShapes[kPackedKinds] = {
    {0, 0, 1, false, ScaleType::half},
    {0, 0, 1, false, ScaleType::half},
    {0, 0, 1, false, ScaleType::half},
    {4, 8, 32, false, ScaleType::half},
    {4, 0, 32, true, ScaleType::half},
    {8, 128, 32, false, ScaleType::half},
    {5, 16, 32, false, ScaleType::half},
    {5, 0, 32, true, ScaleType::half},
    {4, 128, 32, false, ScaleType::half, Levels::nonlinear4},
    {4, 16, 32, false, ScaleType::power, Levels::float4},
    {2, 0, 16, true, ScaleType::super_bytes},
    {3, 4, 16, false, ScaleType::super_bytes},
    {4, 0, 32, true, ScaleType::super_bytes},
    {5, 0, 32, true, ScaleType::super_bytes},
    {6, 32, 16, false, ScaleType::super_bytes},
    {4, 128, 32, false, ScaleType::super_bytes, Levels::nonlinear4},
};

// level + zero of each code.
constexpr std::uint8_t kNonlinear4[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                          129, 141, 153, 166, 181, 197, 217, 241};
constexpr std::uint8_t kFloat4[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};

constexpr PackedShape shape_of(PackedKind kind) { return kPackedShapes[static_cast<int>(kind)]; }

// A code of 3, 5 or 6 bits is split over two planes, the upper one of the bits that are left.
constexpr int low_bits(PackedShape shape) { return shape.bits >= 4 ? shape.bits / 4 * 4 : 2; }
constexpr int high_bits(PackedShape shape) { return shape.bits - low_bits(shape); }

// Where a code lies in a plane of `bits` bits: which of its vectors of 64 bytes (16 outputs x 4 inputs), and
// which of the 8 / bits fields of each byte, the lowest first.
struct CodePlace {
  int vector, field;
};
// Of inputs 4 * j .. + 3 of the first 16 (part 0) or the last 16 (part 1) of a block; j in 0..3.
constexpr CodePlace place_of(int bits, int part, int j) {
  if (bits == 8) return {4 * part + j, 0};
  const int n = 2 * j + part;
  return {n * bits / 8, n % (8 / bits)};
}

// Bytes. The codes of 16 outputs x 32 inputs; blocks of a unit; where in a unit its parts begin.
constexpr std::size_t half_bytes(PackedShape shape) { return 64 * static_cast<std::size_t>(shape.bits); }
constexpr std::size_t plane_bytes(int bits) { return 64 * static_cast<std::size_t>(bits); }
constexpr std::size_t codes_bytes(PackedShape shape) { return 2 * half_bytes(shape); }  // of a block
constexpr int unit_blocks(PackedShape shape) {
  return shape.scale == ScaleType::super_bytes ? kSuperBlocks : 1;
}
constexpr std::size_t scales_at(PackedShape shape) {
  return static_cast<std::size_t>(unit_blocks(shape)) * codes_bytes(shape);
}
constexpr std::size_t subs_at(PackedShape shape) { return scales_at(shape) + (shape.offset ? 128 : 64); }
// The bytes a block has of scales (and mins): none, one or two an output.
constexpr std::size_t subs_bytes(PackedShape shape) {
  if (shape.scale != ScaleType::super_bytes) return 0;
  return shape.group == 16 || shape.offset ? 64 : 32;
}
constexpr std::size_t unit_bytes(PackedShape shape) {
  return subs_at(shape) + static_cast<std::size_t>(unit_blocks(shape)) * subs_bytes(shape);
}
static_assert(unit_bytes(shape_of(PackedKind::q4_offset)) == 640);
static_assert(unit_bytes(shape_of(PackedKind::q4_super)) == 4736);
static_assert(unit_bytes(shape_of(PackedKind::q6_super)) == 6720);

}  // namespace coppice::core
