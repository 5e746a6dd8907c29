// The reference product (numerics 7, 20): one accumulator per (row, output), inputs and blocks ascending.
#include <cmath>
#include <cstring>

#include "kernels/isa_tables.h"
#include "quant/formats.h"

namespace coppice::core {
namespace {

float half_at(const std::byte* from, int lane) {
  std::uint16_t half;
  std::memcpy(&half, from + 2 * lane, 2);
  return f16_to_f32(half);
}

// Weight `input` of `lane` of a float kind's group.
float float_weight(PackedKind kind, const std::byte* group, int input, int lane) {
  const std::size_t at = static_cast<std::size_t>(input) * kGroupOutputs + static_cast<std::size_t>(lane);
  if (kind == PackedKind::f32) {
    float value;
    std::memcpy(&value, group + 4 * at, 4);
    return value;
  }
  std::uint16_t half;
  std::memcpy(&half, group + 2 * at, 2);
  return kind == PackedKind::f16 ? f16_to_f32(half) : bf16_to_f32(half);
}

// A plane's code of input i of a block, for the output whose bytes begin at `plane` (packed.h).
int plane_code(const std::byte* plane, int bits, int i) {
  const CodePlace place = place_of(bits, i / 16, i % 16 / 4);
  const int byte = static_cast<int>(plane[64 * place.vector + i % 4]);
  return byte >> bits * place.field & ((1 << bits) - 1);
}

// The levels of a block's inputs, zero point taken off, and of each of its groups d and m.
struct BlockWeights {
  int levels[kBlockInputs];
  float d[2], m[2];
};

void read_codes(const PackedShape& shape, const std::byte* block, int lane, BlockWeights& out) {
  const int low = low_bits(shape), high = high_bits(shape);
  const std::byte* codes =
      block + half_bytes(shape) * static_cast<std::size_t>(lane / kHalfOutputs) + 4 * (lane % kHalfOutputs);
  for (int i = 0; i < kBlockInputs; ++i) {
    int code = plane_code(codes, low, i);
    if (high != 0) code |= plane_code(codes + plane_bytes(low), high, i) << low;
    if (shape.levels == Levels::nonlinear4) code = kNonlinear4[code];
    if (shape.levels == Levels::float4) code = kFloat4[code];
    out.levels[i] = code - shape.zero;
  }
}

// `bytes`: of this output, in the block's first 32.
void read_scales(const PackedShape& shape, const std::byte* halves, const std::byte* bytes, int lane,
                 BlockWeights& out) {
  for (int group = 0; group < kBlockInputs / shape.group; ++group, bytes += kGroupOutputs) {
    float d = half_at(halves, lane), m = shape.offset ? half_at(halves + 64, lane) : 0.0f;
    if (shape.scale == ScaleType::power) {
      std::uint16_t power;
      std::memcpy(&power, halves + 2 * lane, 2);
      d = bf16_to_f32(power);
    }
    if (shape.scale == ScaleType::super_bytes) {
      const int byte = static_cast<int>(*bytes);
      const bool both = shape.group == 16 && shape.offset;
      d *= static_cast<float>(both ? byte & 15 : static_cast<std::int8_t>(byte));
      if (shape.offset) m *= static_cast<float>(both ? byte >> 4 : static_cast<int>(bytes[kGroupOutputs]));
    }
    out.d[group] = d, out.m[group] = m;
  }
}

// Adds block b of `lane` to a row's result.
void add_block(const PackedShape& shape, const BlockWeights& weights, const QuantizedRows& q, std::size_t b,
               float& acc) {
  for (int group = 0; group < kBlockInputs / shape.group; ++group) {
    int sum = 0, code_sum = 0;
    for (int i = shape.group * group; i < shape.group * (group + 1); ++i) {
      sum += weights.levels[i] * q.codes[b * kBlockInputs + static_cast<std::size_t>(i)];
      code_sum += q.codes[b * kBlockInputs + static_cast<std::size_t>(i)];
    }
    const float p = weights.d[group] * q.scales[b];
    acc = std::fma(p, static_cast<float>(sum), acc);
    if (!shape.offset) continue;
    const float x = shape.group == 32 ? q.scaled_sums[b] : q.scales[b] * static_cast<float>(code_sum);
    acc = std::fma(weights.m[group], x, acc);
  }
}

void quantised_lane(const MatmulTask& task, const WeightsView& w, const std::byte* group, int lane,
                    float* y) {
  const PackedShape shape = shape_of(w.kind);
  const int blocks = w.inputs / kBlockInputs, at_once = unit_blocks(shape);
  for (int row = 0; row < task.rows; ++row) y[static_cast<std::size_t>(row) * task.y_stride] = 0.0f;
  for (int b = 0; b < blocks; ++b) {
    const std::byte* unit = group + unit_bytes(shape) * static_cast<std::size_t>(b / at_once);
    const auto i = static_cast<std::size_t>(b % at_once);
    BlockWeights weights;
    read_codes(shape, unit + codes_bytes(shape) * i, lane, weights);
    read_scales(shape, unit + scales_at(shape), unit + subs_at(shape) + subs_bytes(shape) * i + lane, lane,
                weights);
    for (int row = 0; row < task.rows; ++row)
      add_block(shape, weights, task.q, static_cast<std::size_t>(row) * static_cast<std::size_t>(blocks) + b,
                y[static_cast<std::size_t>(row) * task.y_stride]);
  }
}

void float_lane(const MatmulTask& task, const WeightsView& w, const std::byte* group, int lane, float* y) {
  for (int row = 0; row < task.rows; ++row) {
    const float* x = task.x + static_cast<std::size_t>(row) * static_cast<std::size_t>(w.inputs);
    float acc = 0.0f;
    for (int k = 0; k < w.inputs; ++k) acc = std::fma(float_weight(w.kind, group, k, lane), x[k], acc);
    y[static_cast<std::size_t>(row) * task.y_stride] = acc;
  }
}

}  // namespace

void matmul_scalar(const MatmulTask& task, int group_begin, int group_end) {
  const WeightsView w = view_of(*task.weights);
  const bool quantised = task.weights->quantised();
  for (int g = group_begin; g < group_end; ++g) {
    const std::byte* group = w.data + static_cast<std::size_t>(g) * w.group_stride;
    for (int lane = 0; lane < kGroupOutputs; ++lane) {
      float* y = task.y + g * kGroupOutputs + lane;
      quantised ? quantised_lane(task, w, group, lane, y) : float_lane(task, w, group, lane, y);
    }
  }
}

}  // namespace coppice::core
