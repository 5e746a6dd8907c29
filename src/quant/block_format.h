// A quantised format is how its block's bits are read; the rest follows from that and from the shape of the
// kind it is packed as. A format's file defines a struct F with
//
//   static constexpr PackedKind kKind;          // whose codes and scales `read` gives
//   static constexpr int kValues, kBytes;       // of a block
//   static void read(const std::byte* block, BlockParts<kValues>& parts);
//
// and names COPPICE_BLOCK_FORMAT(family, F), which defines the functions that blocks.h declares.
#pragma once

#include <algorithm>

#include "quant/blocks.h"
#include "quant/formats.h"
#include "quant/packed_shape.h"

namespace coppice::core {

template <int values>
struct BlockParts {
  std::uint8_t codes[values];       // in the order of the inputs
  std::int8_t scales[values / 16];  // super_six: of each group, to be multiplied with d
  std::uint8_t mins[values / 16];   // super_six with offsets: of each group, to be multiplied with m
  std::uint16_t d = 0;              // f16 bits; of a power bf16 bits
  std::uint16_t m = 0;              // f16 bits
};

inline float scale_value(ScaleType type, std::uint16_t bits) {
  return type == ScaleType::power ? bf16_to_f32(bits) : f16_to_f32(bits);
}

// Twelve times a power above 2^124 would be infinite, and infinity times a code of 0 no number.
inline constexpr std::uint16_t kFirstBadPower = 0x7e00;  // 2^125 as bf16

inline bool finite_scale(ScaleType type, std::uint16_t bits) {
  return type == ScaleType::power ? bits < kFirstBadPower : finite_half(bits);
}

// code - zero, or the table's level.
template <PackedKind kind>
int level_of(int code) {
  constexpr PackedShape shape = shape_of(kind);
  if constexpr (shape.levels == Levels::nonlinear4) code = kNonlinear4[code];
  if constexpr (shape.levels == Levels::float4) code = kFloat4[code];
  return code - shape.zero;
}

// The scale and the offset of a group as the values have them: a super-scale times a byte is exact in f32.
struct GroupScale {
  float d, m;
};
template <PackedKind kind>
GroupScale group_scale(std::uint16_t d, std::uint16_t m, int scale, int min) {
  constexpr PackedShape shape = shape_of(kind);
  GroupScale out = {scale_value(shape.scale, d), shape.offset ? f16_to_f32(m) : 0.0f};
  if constexpr (shape.scale == ScaleType::super_six) {
    out.d *= static_cast<float>(scale);
    out.m = -(out.m * static_cast<float>(min));
  }
  return out;
}

// The product is rounded before the offset is added.
template <PackedKind kind>
float value_of(const GroupScale& scale, int code) {
  const float product = scale.d * static_cast<float>(level_of<kind>(code));
  if constexpr (shape_of(kind).offset) return product + scale.m;
  return product;
}

template <class F>
void unpack_blocks(const std::byte* blocks, float* values, std::int64_t count) {
  constexpr int kGroup = shape_of(F::kKind).group;
  BlockParts<F::kValues> parts = {};
  for (std::int64_t at = 0; at < count; at += F::kValues, blocks += F::kBytes) {
    F::read(blocks, parts);
    for (int group = 0; group < F::kValues / kGroup; ++group) {
      const GroupScale scale =
          group_scale<F::kKind>(parts.d, parts.m, parts.scales[group], parts.mins[group]);
      for (int i = group * kGroup; i < (group + 1) * kGroup; ++i)
        *values++ = value_of<F::kKind>(scale, parts.codes[i]);
    }
  }
}

template <class F>
std::int64_t find_nonfinite_scale(const std::byte* blocks, std::int64_t count) {
  constexpr PackedShape kShape = shape_of(F::kKind);
  BlockParts<F::kValues> parts = {};
  for (std::int64_t at = 0; at < count; at += F::kValues, blocks += F::kBytes) {
    F::read(blocks, parts);
    if (!finite_scale(kShape.scale, parts.d) || (kShape.offset && !finite_half(parts.m))) return at;
  }
  return -1;
}

// Packs as f32, until the kernels know the format's own kind.
template <class F>
void pack_as_floats(const std::byte* rows, std::size_t stride, int outputs, int inputs, std::byte* group) {
  float values[F::kValues];
  for (int lane = 0; lane < outputs; ++lane, rows += stride)
    for (int block = 0; block < inputs / F::kValues; ++block) {
      unpack_blocks<F>(rows + std::ptrdiff_t{F::kBytes} * block, values, F::kValues);
      for (int i = 0; i < F::kValues; ++i)
        store(group + 4 * (kGroupOutputs * std::ptrdiff_t{block * F::kValues + i} + lane), values[i]);
    }
}

#define COPPICE_BLOCK_FORMAT(family, F)                                                                  \
  namespace family {                                                                                     \
  void unpack(const std::byte* blocks, float* values, std::int64_t count) {                              \
    unpack_blocks<F>(blocks, values, count);                                                             \
  }                                                                                                      \
  void pack_rows(const std::byte* rows, std::size_t stride, int outputs, int inputs, std::byte* group) { \
    pack_as_floats<F>(rows, stride, outputs, inputs, group);                                             \
  }                                                                                                      \
  std::int64_t find_nonfinite(const std::byte* blocks, std::int64_t count) {                             \
    return find_nonfinite_scale<F>(blocks, count);                                                       \
  }                                                                                                      \
  }

}  // namespace coppice::core
