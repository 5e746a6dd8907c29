#include "quant/packed.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "quant/blocks.h"
#include "quant/formats.h"

namespace coppice::core {
namespace {

// Where the codes of output `lane` of a group begin in its block.
const std::byte* codes_of(const std::byte* block, int lane, std::size_t half_bytes) {
  return block + static_cast<std::size_t>(lane / kHalfOutputs) * half_bytes + 4 * (lane % kHalfOutputs);
}

// One block's 32 values of one lane. The order of operations is that of the formats' own unpack.
void unpack_q4(const std::byte* block, int lane, float* out) {
  const float d = f16_to_f32(load<std::uint16_t>(block + kQ4Scales + 2 * lane));
  const std::byte* codes = codes_of(block, lane, kQ4Half);
  for (int i = 0; i < 16; ++i) {
    const int byte = std::to_integer<int>(codes[64 * (i / 4) + i % 4]);
    out[i] = d * static_cast<float>((byte & 15) - 8);
    out[16 + i] = d * static_cast<float>((byte >> 4) - 8);
  }
}

void unpack_q4_offset(const std::byte* block, int lane, float* out) {
  const float d = f16_to_f32(load<std::uint16_t>(block + kQ4Scales + 2 * lane));
  const float m = f16_to_f32(load<std::uint16_t>(block + kQ4Offsets + 2 * lane));
  const std::byte* codes = codes_of(block, lane, kQ4Half);
  for (int i = 0; i < 16; ++i) {
    const int byte = std::to_integer<int>(codes[64 * (i / 4) + i % 4]);
    out[i] = d * static_cast<float>(byte & 15) + m;
    out[16 + i] = d * static_cast<float>(byte >> 4) + m;
  }
}

void unpack_q8(const std::byte* block, int lane, float* out) {
  const float d = f16_to_f32(load<std::uint16_t>(block + kQ8Scales + 2 * lane));
  const std::byte* codes = codes_of(block, lane, kQ8Half);
  for (int i = 0; i < kBlockInputs; ++i) {
    const int byte = std::to_integer<int>(codes[64 * (i / 4) + i % 4]);
    out[i] = d * static_cast<float>(byte - 128);
  }
}

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
  const int units = matrix.quantised() ? inputs / kBlockInputs : inputs;
  return packed_unit_bytes(matrix.kind) * static_cast<std::size_t>(units);
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
  const std::size_t scales = matrix.kind == PackedKind::q8 ? kQ8Scales : kQ4Scales;
  const std::size_t unit = packed_unit_bytes(matrix.kind);
  bool bad = false;
  for (const std::byte* block = begin; block < end; block += unit)
    bad |= any_nonfinite<Halves>(block + scales, unit - scales, std::int16_t{0x7c00});
  return !bad;
}

std::size_t packed_unit_bytes(PackedKind kind) {
  switch (kind) {
    case PackedKind::f32:
      return kGroupOutputs * 4;
    case PackedKind::f16:
    case PackedKind::bf16:
      return kGroupOutputs * 2;
    case PackedKind::q4:
      return kQ4Offsets;  // where the offsets would be, it ends
    case PackedKind::q4_offset:
      return kQ4Offsets + 2 * kGroupOutputs;
    case PackedKind::q8:
      return kQ8Scales + 2 * kGroupOutputs;
    default:
      break;
  }
  check_failed("a packed kind without a size", __FILE__, __LINE__);
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
  COPPICE_CHECK(inputs == whole.inputs || inputs % kBlockInputs == 0);
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
  const auto unpack_block = matrix.kind == PackedKind::q4          ? unpack_q4
                            : matrix.kind == PackedKind::q4_offset ? unpack_q4_offset
                                                                   : unpack_q8;
  for (int k = 0; k < matrix.inputs; k += kBlockInputs, unit += step) unpack_block(unit, lane, out + k);
}

}  // namespace coppice::core
