#include "quant/packed.h"

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

}  // namespace

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
  }
  check_failed("a packed kind without a size", __FILE__, __LINE__);
}

std::size_t PackedMatrix::group_bytes() const {
  const int units = quantised() ? inputs / kBlockInputs : inputs;
  return packed_unit_bytes(kind) * static_cast<std::size_t>(units);
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
