// The reference table: every function says what all the others must give, bit for bit.
#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/exact_math.h"
#include "kernels/isa_tables.h"

namespace coppice::core {
namespace {

bool quantize_row(const float* x, const QuantizedRows& out) {
  for (int b = 0; b < out.inputs / kBlockInputs; ++b) {
    const float* group = x + b * kBlockInputs;
    std::uint32_t bits = 0;
    for (int i = 0; i < kBlockInputs; ++i)
      bits = std::max(bits, std::bit_cast<std::uint32_t>(group[i]) & 0x7FFFFFFFu);
    if (bits >= 0x7F800000u) return false;
    const float amax = std::bit_cast<float>(bits);
    float scale = amax / 127.0f, inverse = 127.0f / amax;
    if (!(inverse <= 0x1.fffffep+127f)) scale = inverse = 0.0f;  // amax is 0, or too small to be told from it
    int sum = 0;
    for (int i = 0; i < kBlockInputs; ++i) {
      const float code = std::nearbyint(std::clamp(group[i] * inverse, -127.0f, 127.0f));
      out.codes[b * kBlockInputs + i] = static_cast<std::int8_t>(code);
      sum += out.codes[b * kBlockInputs + i];
      if (i == 15) out.half_sums[b] = sum;
    }
    out.scales[b] = scale;
    out.sums[b] = sum;
    out.scaled_sums[b] = scale * static_cast<float>(sum);
  }
  return true;
}

float lane_sum_of_squares(const float* x, float shift, int n) {
  float lanes[16] = {};
  for (int i = 0; i < n; ++i) {
    const float d = x[i] - shift;
    lanes[i % 16] = std::fma(d, d, lanes[i % 16]);
  }
  return lane_sum(lanes, 16);
}

// x * (1 / sqrt(mean + eps)) * weight, in this order.
void rms_norm(const float* x, const float* weight, float eps, int n, float* out) {
  const float r = 1.0f / std::sqrt(lane_sum_of_squares(x, 0.0f, n) / static_cast<float>(n) + eps);
  for (int i = 0; i < n; ++i) out[i] = (x[i] * r) * weight[i];
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, int n, float* out) {
  const float mean = lane_sum(x, n) / static_cast<float>(n);
  const float r = 1.0f / std::sqrt(lane_sum_of_squares(x, mean, n) / static_cast<float>(n) + eps);
  for (int i = 0; i < n; ++i) out[i] = std::fma((x[i] - mean) * r, weight[i], bias[i]);
}

void add(const float* x, float* y, int n) {
  for (int i = 0; i < n; ++i) y[i] += x[i];
}

void silu_mul(const float* gate, const float* up, float* out, int n) {
  for (int i = 0; i < n; ++i) {
    const float g = gate[i];
    out[i] = (g / (1.0f + exp2_exact(g * kMinusLog2e))) * up[i];
  }
}

void gelu(const float* x, float* out, int n) {
  for (int i = 0; i < n; ++i)
    out[i] = x[i] / (1.0f + exp2_exact(x[i] * std::fma(kGelu3, x[i] * x[i], kGelu1)));
}

void scale(float s, float* x, int n) {
  for (int i = 0; i < n; ++i) x[i] *= s;
}

void rope(float* x, const float* cos_sin, int dims) {
  for (int i = 0; i < dims; i += 2) {
    const float a = x[i], b = x[i + 1], c = cos_sin[i], s = cos_sin[i + 1];
    x[i] = std::fma(a, c, -(b * s));
    x[i + 1] = std::fma(b, c, a * s);
  }
}

void rope_halves(float* x, const float* cos_sin, int dims) {
  const int half = dims / 2;
  for (int i = 0; i < half; ++i) {
    const float a = x[i], b = x[i + half], c = cos_sin[i], s = cos_sin[i + half];
    x[i] = std::fma(a, c, 0.0f - b * s);
    x[i + half] = std::fma(b, c, a * s);
  }
}

void gumbel(const NoiseKey& key, std::int64_t index, int first, int count, double* noise) {
  for (int i = 0; i < count; ++i) noise[i] = gumbel_noise(key, index, first + i);
}

void gumbel_bound(const NoiseKey& key, std::int64_t index, int first, int count, float* bound) {
  for (int i = 0; i < count; ++i) bound[i] = gumbel_noise_bound(key, index, first + i);
}

void exp2(const float* x, float* out, int n) {
  for (int i = 0; i < n; ++i) out[i] = exp2_exact(x[i]);
}

int argmax(const float* x, int n) {
  int best = -1;
  for (int i = 0; i < n; ++i)
    if (!std::isnan(x[i]) && (best < 0 || x[i] > x[best])) best = i;
  return best;
}

bool group_maxima(const float* x, int n, float* maxima) {
  bool finite = true;
  for (int first = 0; first < n; first += kGroupOutputs) {
    float largest = -std::numeric_limits<float>::infinity();
    for (int i = first; i < std::min(n, first + kGroupOutputs); ++i) {
      finite = finite && std::isfinite(x[i]);
      if (x[i] > largest) largest = x[i];
    }
    maxima[first / kGroupOutputs] = largest;
  }
  return finite;
}

}  // namespace

const Kernels kScalarKernels = {
    .name = "scalar",
    .matmul = matmul_scalar,
    .quantize_row = quantize_row,
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .add = add,
    .silu_mul = silu_mul,
    .gelu = gelu,
    .scale = scale,
    .rope = rope,
    .rope_halves = rope_halves,
    .store_kv = store_kv_scalar,
    .attention = attention_scalar,
    .gumbel = gumbel,
    .gumbel_bound = gumbel_bound,
    .exp2 = exp2,
    .argmax = argmax,
    .group_maxima = group_maxima,
    .read_all = read_all_scalar,
    .int8_peak = int8_peak_scalar,
    .f32_peak = f32_peak_scalar,
};

}  // namespace coppice::core
