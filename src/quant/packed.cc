#include "quant/packed.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

#include "base/check.h"
#include "quant/block_format.h"
#include "quant/blocks.h"
#include "quant/formats.h"

namespace coppice::core {
namespace {

// The codes of a plane, each at bit `to` of its byte; `from` is where the output's bytes begin in the plane.
template <int bits, int to>
void read_plane(const std::byte* from, std::uint32_t* codes) {
  constexpr std::uint32_t kMask = 0x01010101u * ((1u << bits) - 1);
  for (int part = 0; part < 2; ++part)
    for (int j = 0; j < 4; ++j) {
      const CodePlace place = place_of(bits, part, j);
      codes[4 * part + j] |= (load<std::uint32_t>(from + 64 * place.vector) >> bits * place.field & kMask)
                             << to;
    }
}

// The scale and offset of group i of a block, whose bytes of scales and mins of this output begin at `subs`.
template <PackedKind kind>
GroupScale scale_of_group(std::uint16_t d, std::uint16_t m, const std::byte* subs, int i) {
  constexpr PackedShape kShape = shape_of(kind);
  if constexpr (kShape.scale != ScaleType::super_bytes) return group_scale<kind>(d, m, 1, 1);
  subs += kGroupOutputs * i;
  if constexpr (kShape.group == 16 && kShape.offset) {
    const int byte = std::to_integer<int>(*subs);
    return group_scale<kind>(d, m, byte & 15, byte >> 4);
  }
  return group_scale<kind>(d, m, load<std::int8_t>(subs),
                           kShape.offset ? std::to_integer<int>(subs[kGroupOutputs]) : 0);
}

// A unit's values of one lane, as the formats' own unpack has them.
template <PackedKind kind>
void unpack_unit(const std::byte* unit, int lane, float* out) {
  constexpr PackedShape kShape = shape_of(kind);
  constexpr int kLow = low_bits(kShape), kHigh = high_bits(kShape);
  const auto d = load<std::uint16_t>(unit + scales_at(kShape) + 2 * lane);
  const auto m = kShape.offset ? load<std::uint16_t>(unit + scales_at(kShape) + 2 * (kGroupOutputs + lane))
                               : std::uint16_t{0};
  const std::byte* half =
      unit + half_bytes(kShape) * static_cast<std::size_t>(lane / kHalfOutputs) + 4 * (lane % kHalfOutputs);
  const std::byte* subs = unit + subs_at(kShape) + lane;
  for (int b = 0; b < unit_blocks(kShape); ++b, half += codes_bytes(kShape), subs += subs_bytes(kShape)) {
    std::uint32_t words[8] = {};
    read_plane<kLow, 0>(half, words);
    if constexpr (kHigh != 0) read_plane<kHigh, kLow>(half + plane_bytes(kLow), words);
    std::uint8_t codes[kBlockInputs];
    std::memcpy(codes, words, sizeof(codes));
    for (int i = 0; i < kBlockInputs / kShape.group; ++i) {
      const GroupScale scale = scale_of_group<kind>(d, m, subs, i);
      for (int k = 0; k < kShape.group; ++k) *out++ = value_of<kind>(scale, codes[kShape.group * i + k]);
    }
  }
}

// By PackedKind, from the first quantised one on.
using UnpackUnit = void (*)(const std::byte* unit, int lane, float* out);
constexpr UnpackUnit kUnpackUnit[] = {unpack_unit<PackedKind::q4>,
                                      unpack_unit<PackedKind::q4_offset>,
                                      unpack_unit<PackedKind::q8>,
                                      unpack_unit<PackedKind::q5>,
                                      unpack_unit<PackedKind::q5_offset>,
                                      unpack_unit<PackedKind::q4_table>,
                                      unpack_unit<PackedKind::q4_power>,
                                      unpack_unit<PackedKind::q2_super>,
                                      unpack_unit<PackedKind::q3_super>,
                                      unpack_unit<PackedKind::q4_super>,
                                      unpack_unit<PackedKind::q5_super>,
                                      unpack_unit<PackedKind::q6_super>,
                                      unpack_unit<PackedKind::q4_table_super>};
constexpr int kFirstQuantised = static_cast<int>(PackedKind::q4);
static_assert(std::size(kUnpackUnit) == kPackedKinds - kFirstQuantised);

float float_value(PackedKind kind, const std::byte* unit, int lane) {
  switch (kind) {
    case PackedKind::f16:
      return f16_to_f32(load<std::uint16_t>(unit + 2 * lane));
    case PackedKind::bf16:
      return bf16_to_f32(load<std::uint16_t>(unit + 2 * lane));
    default:
      return load<float>(unit + 4 * lane);
  }
}

using Halves = std::int16_t __attribute__((vector_size(16)));
using Singles = std::int32_t __attribute__((vector_size(16)));

// Whether some value in [at, at + bytes), a multiple of 16, is infinite or NaN: its magnitude is `infinity`
// or more. Vectors of 16 bytes, so that what was just packed is checked at the speed of the cache.
template <class Vector, class Bits>
bool any_nonfinite(const std::byte* at, std::size_t bytes, Bits infinity) {
  constexpr Bits kMagnitude = std::numeric_limits<Bits>::max();
  Vector bad{};
  for (std::size_t i = 0; i < bytes; i += sizeof(Vector))
    bad |= (load<Vector>(at + i) & kMagnitude) >= infinity;
  std::uint64_t words[2];
  std::memcpy(words, &bad, sizeof(words));
  return (words[0] | words[1]) != 0;
}

std::size_t bytes_of_inputs(const PackedMatrix& matrix, int inputs) {
  return packed_unit_bytes(matrix.kind) * static_cast<std::size_t>(inputs / packed_unit_inputs(matrix.kind));
}

}  // namespace

bool all_finite(const PackedMatrix& matrix, int group_begin, int group_end) {
  COPPICE_CHECK(matrix.group_bytes() == matrix.group_stride());
  const std::byte* begin = matrix.group(group_begin);
  const std::byte* end = matrix.group(group_end);
  const auto bytes = static_cast<std::size_t>(end - begin);
  switch (matrix.kind) {
    case PackedKind::f32:
      return !any_nonfinite<Singles>(begin, bytes, std::int32_t{0x7f800000});
    case PackedKind::f16:
      return !any_nonfinite<Halves>(begin, bytes, std::int16_t{0x7c00});
    case PackedKind::bf16:
      return !any_nonfinite<Halves>(begin, bytes, std::int16_t{0x7f80});
    default:
      break;
  }
  const PackedShape shape = shape_of(matrix.kind);
  const auto infinity = static_cast<std::int16_t>(shape.scale == ScaleType::power ? kFirstBadPower : 0x7c00);
  const std::size_t unit = unit_bytes(shape);
  bool bad = false;
  for (const std::byte* scales = begin + scales_at(shape); scales < end; scales += unit)
    bad |= any_nonfinite<Halves>(scales, shape.offset ? 128 : 64, infinity);
  return !bad;
}

std::size_t packed_unit_bytes(PackedKind kind) {
  switch (kind) {
    case PackedKind::f32:
      return kGroupOutputs * 4;
    case PackedKind::f16:
    case PackedKind::bf16:
      return kGroupOutputs * 2;
    default:
      return unit_bytes(shape_of(kind));
  }
}

int packed_unit_inputs(PackedKind kind) {
  return kind < PackedKind::q4 ? 1 : unit_blocks(shape_of(kind)) * kBlockInputs;
}

int whole_units(PackedKind kind, int inputs) {
  const int unit = packed_unit_inputs(kind);
  return (inputs + unit - 1) / unit * unit;
}

std::size_t PackedMatrix::group_bytes() const { return bytes_of_inputs(*this, inputs); }

std::size_t PackedMatrix::group_stride() const {
  return bytes_of_inputs(*this, stored_inputs == 0 ? inputs : stored_inputs);
}

WeightStretch PackedMatrix::stretch(int begin, int end, std::size_t most) const {
  const std::size_t bytes = group_bytes(), step = group_stride();
  const auto groups = static_cast<std::size_t>(end - begin);
  if (groups == 0) return {};
  if (bytes == step) return {group(begin), std::min(bytes * groups, most), step, 1};
  return {group(begin), std::min(bytes, most), step, std::min(groups, (most + bytes - 1) / bytes)};
}

PackedMatrix part_of(const PackedMatrix& whole, int outputs, int inputs) {
  COPPICE_CHECK(outputs > 0 && outputs <= whole.outputs && inputs > 0 && inputs <= whole.inputs);
  COPPICE_CHECK(outputs == whole.outputs || outputs % kGroupOutputs == 0);
  COPPICE_CHECK(inputs == whole.inputs ||
                inputs % std::max(kBlockInputs, packed_unit_inputs(whole.kind)) == 0);
  PackedMatrix part;
  part.kind = whole.kind;
  part.outputs = outputs;
  part.inputs = inputs;
  part.stored_inputs = whole.stored_inputs == 0 ? whole.inputs : whole.stored_inputs;
  const std::size_t bytes =
      part.group_stride() * static_cast<std::size_t>(part.groups() - 1) + part.group_bytes();
  part.data = Buffer::part_of({const_cast<std::byte*>(whole.data.data()), bytes});  // only packing writes
  return part;
}

void unpack_row(const PackedMatrix& matrix, int output, float* out) {
  COPPICE_CHECK(output >= 0 && output < matrix.outputs);
  const std::byte* unit = matrix.group(output / kGroupOutputs);
  const int lane = output % kGroupOutputs;
  const std::size_t step = packed_unit_bytes(matrix.kind);
  if (!matrix.quantised()) {
    for (int k = 0; k < matrix.inputs; ++k, unit += step) out[k] = float_value(matrix.kind, unit, lane);
    return;
  }
  const UnpackUnit unpack = kUnpackUnit[static_cast<int>(matrix.kind) - kFirstQuantised];
  const int unit_inputs = packed_unit_inputs(matrix.kind);
  for (int k = 0; k < matrix.inputs; k += unit_inputs, unit += step) unpack(unit, lane, out + k);
}

}  // namespace coppice::core
