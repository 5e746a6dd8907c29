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
  half,       // f16, a block
  power,      // bf16, a block: a power of two beyond f16's range
  super_six,  // an f16 for kSuperBlocks blocks times a signed byte a group
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
    {2, 0, 16, true, ScaleType::super_six},
    {3, 4, 16, false, ScaleType::super_six},
    {4, 0, 32, true, ScaleType::super_six},
    {5, 0, 32, true, ScaleType::super_six},
    {6, 32, 16, false, ScaleType::super_six},
    {4, 128, 32, false, ScaleType::super_six, Levels::nonlinear4},
};

// level + zero of each code.
constexpr std::uint8_t kNonlinear4[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                          129, 141, 153, 166, 181, 197, 217, 241};
constexpr std::uint8_t kFloat4[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};

constexpr PackedShape shape_of(PackedKind kind) { return kPackedShapes[static_cast<int>(kind)]; }

}  // namespace coppice::core
