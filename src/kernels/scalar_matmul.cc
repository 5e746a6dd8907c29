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

// w - z of 32 inputs of `lane`.
void block_weights(PackedKind kind, const std::byte* block, int lane, int* weights) {
  const std::byte* codes =
      block + (lane / kHalfOutputs) * static_cast<int>(kind == PackedKind::q8 ? kQ8Half : kQ4Half) +
      4 * (lane % kHalfOutputs);
  for (int i = 0; i < kBlockInputs; ++i) {
    if (kind == PackedKind::q8) {
      weights[i] = static_cast<int>(codes[64 * (i / 4) + i % 4]) - 128;
    } else {
      const int byte = static_cast<int>(codes[64 * (i % 16 / 4) + i % 4]);
      weights[i] = (i < 16 ? byte & 15 : byte >> 4) - (kind == PackedKind::q4 ? 8 : 0);
    }
  }
}

void quantised_lane(const MatmulTask& task, const WeightsView& w, const std::byte* group, int lane,
                    float* y) {
  const std::size_t scales = w.kind == PackedKind::q8 ? kQ8Scales : kQ4Scales;
  const bool offset = w.kind == PackedKind::q4_offset;
  const std::size_t unit = scales + (offset ? 128 : 64);
  const int blocks = w.inputs / kBlockInputs;
  for (int row = 0; row < task.rows; ++row) y[static_cast<std::size_t>(row) * task.y_stride] = 0.0f;
  for (int b = 0; b < blocks; ++b) {
    const std::byte* block = group + static_cast<std::size_t>(b) * unit;
    int weights[kBlockInputs];
    block_weights(w.kind, block, lane, weights);
    const float d = half_at(block + scales, lane);
    const float m = offset ? half_at(block + kQ4Offsets, lane) : 0.0f;
    for (int row = 0; row < task.rows; ++row) {
      const std::size_t at = static_cast<std::size_t>(row) * static_cast<std::size_t>(blocks) + b;
      const std::int8_t* codes = task.q.codes + at * kBlockInputs;
      int sum = 0;
      for (int i = 0; i < kBlockInputs; ++i) sum += weights[i] * codes[i];
      float& acc = y[static_cast<std::size_t>(row) * task.y_stride];
      const float p = d * task.q.scales[at];
      acc = std::fma(p, static_cast<float>(sum), acc);
      if (offset) acc = std::fma(m, task.q.scaled_sums[at], acc);
    }
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
