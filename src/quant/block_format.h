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
#include "quant/pack_rows.h"

namespace coppice::core {

template <int values>
struct BlockParts {
  std::uint8_t codes[values];       // in the order of the inputs
  std::int8_t scales[values / 16];  // super_bytes: of each group, to be multiplied with d
  std::uint8_t mins[values / 16];   // super_bytes with offsets: of each group, to be multiplied with m
  std::uint16_t d = 0;              // f16 bits; of a power bf16 bits
  std::uint16_t m = 0;              // f16 bits; to be added, so a K format's minus its dmin
};

inline float scale_value(ScaleType type, std::uint16_t bits) {
  return type == ScaleType::power ? bf16_to_f32(bits) : f16_to_f32(bits);
}

// Twelve times a power above 2^124 would be infinite, and infinity times a code of 0 no number.
inline constexpr std::uint16_t kFirstBadPower = 0x7e00;  // 2^125 as bf16

inline bool finite_scale(ScaleType type, std::uint16_t bits) {
  return type == ScaleType::power ? bits < kFirstBadPower : finite_half(bits);
}

// codes [32]: byte i has value i in its low nibble and 16 + i in its high one.
inline void read_nibbles(const std::byte* bytes, std::uint8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    const auto byte = std::to_integer<std::uint8_t>(bytes[i]);
    codes[i] = byte & 15;
    codes[16 + i] = byte >> 4;
  }
}

// codes [256] |= planes of `bits` bits << shift: of each run of `run` bytes, bits 0 .. bits - 1 are the codes
// of the first `run` values, the next bits those of the next, and so on.
template <int bits, int run>
void read_planes(const std::byte* bytes, std::uint8_t* codes, int shift) {
  for (int at = 0; at < 256; at += run * (8 / bits), bytes += run)
    for (int plane = 0; plane < 8 / bits; ++plane)
      for (int i = 0; i < run; ++i) {
        const int code = std::to_integer<int>(bytes[i]) >> bits * plane & ((1 << bits) - 1);
        codes[at + plane * run + i] |= static_cast<std::uint8_t>(code << shift);
      }
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
  if constexpr (shape.scale == ScaleType::super_bytes) {
    out.d *= static_cast<float>(scale);
    out.m *= static_cast<float>(min);
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

// The bits [from, from + bits) of a block's codes as a plane; `to` is where the output's bytes begin in it.
template <int bits, int from>
void place_plane(const std::uint8_t* codes, std::byte* to) {
  constexpr std::uint32_t kMask = 0x01010101u * ((1u << bits) - 1);
  std::uint32_t vectors[bits] = {};
  for (int part = 0; part < 2; ++part)
    for (int j = 0; j < 4; ++j) {
      const CodePlace place = place_of(bits, part, j);
      vectors[place.vector] |=
          (load<std::uint32_t>(reinterpret_cast<const std::byte*>(codes) + 16 * part + 4 * j) >> from & kMask)
          << bits * place.field;
    }
  for (int v = 0; v < bits; ++v) store(to + 64 * v, vectors[v]);
}

template <PackedKind kind>
void place_codes(const std::uint8_t* codes, std::byte* to) {
  constexpr int kLow = low_bits(shape_of(kind)), kHigh = high_bits(shape_of(kind));
  place_plane<kLow, 0>(codes, to);
  if constexpr (kHigh != 0) place_plane<kHigh, kLow>(codes, to + plane_bytes(kLow));
}

// The scales and mins of block b of a unit; `subs` is the output's byte of the block's first 32.
template <PackedKind kind, int values>
void place_subs(const BlockParts<values>& parts, int b, std::byte* subs) {
  constexpr PackedShape kShape = shape_of(kind);
  for (int i = 0; i < kBlockInputs / kShape.group; ++i, subs += kGroupOutputs) {
    const int group = b * (kBlockInputs / kShape.group) + i;
    if constexpr (kShape.group == 16 && kShape.offset) {
      *subs = static_cast<std::byte>(parts.scales[group] | parts.mins[group] << 4);
    } else {
      *subs = static_cast<std::byte>(parts.scales[group]);
      if constexpr (kShape.offset) subs[kGroupOutputs] = static_cast<std::byte>(parts.mins[group]);
    }
  }
}

// A block of the file is a unit of the layout.
template <class F>
void pack_blocks(const std::byte* rows, std::size_t stride, int outputs, int inputs, std::byte* group) {
  constexpr PackedShape kShape = shape_of(F::kKind);
  static_assert(F::kValues == unit_blocks(kShape) * kBlockInputs);
  BlockParts<F::kValues> parts = {};
  for (int lane = 0; lane < outputs; ++lane, rows += stride) {
    std::byte* unit = group;
    const std::byte* block = rows;
    for (int at = 0; at < inputs; at += F::kValues, block += F::kBytes, unit += unit_bytes(kShape)) {
      F::read(block, parts);
      store(unit + scales_at(kShape) + 2 * lane, parts.d);
      if constexpr (kShape.offset) store(unit + scales_at(kShape) + 2 * (kGroupOutputs + lane), parts.m);
      for (int b = 0; b < unit_blocks(kShape); ++b) {
        std::byte* codes = unit + codes_bytes(kShape) * static_cast<std::size_t>(b);
        place_codes<F::kKind>(parts.codes + kBlockInputs * b, lane_codes(codes, lane, half_bytes(kShape)));
        if constexpr (subs_bytes(kShape) != 0)
          place_subs<F::kKind>(
              parts, b, unit + subs_at(kShape) + subs_bytes(kShape) * static_cast<std::size_t>(b) + lane);
      }
    }
  }
}

#define COPPICE_BLOCK_FORMAT(family, F)                                                                  \
  namespace family {                                                                                     \
  void unpack(const std::byte* blocks, float* values, std::int64_t count) {                              \
    unpack_blocks<F>(blocks, values, count);                                                             \
  }                                                                                                      \
  void pack_rows(const std::byte* rows, std::size_t stride, int outputs, int inputs, std::byte* group) { \
    pack_blocks<F>(rows, stride, outputs, inputs, group);                                                \
  }                                                                                                      \
  std::int64_t find_nonfinite(const std::byte* blocks, std::int64_t count) {                             \
    return find_nonfinite_scale<F>(blocks, count);                                                       \
  }                                                                                                      \
  }

}  // namespace coppice::core
