#include "kernels/composed.h"

#include <algorithm>
#include <cmath>

#include "kernels/exact_math.h"

namespace coppice::core {
namespace {

constexpr int kStretch = 256;  // values at once

constexpr float kGaussian = -0.721347520444481704f;  // -log2(e) / 2
constexpr float kErfStep = 0.231641888407f;          // 0.3275911 / sqrt(2)
constexpr float kErf[5] = {0.1274147960f, -0.142248368f, 0.7107068705f, -0.7265760135f, 0.5307027145f};

}  // namespace

void gelu_exact(const Kernels& kernels, const float* x, float* out, int n) {
  float e[kStretch];
  for (int begin = 0; begin < n; begin += kStretch) {
    const int count = std::min(kStretch, n - begin);
    for (int i = 0; i < count; ++i) e[i] = (x[begin + i] * x[begin + i]) * kGaussian;
    kernels.exp2(e, e, count);
    for (int i = 0; i < count; ++i) {
      const float v = x[begin + i];
      const float t = 1.0f / (1.0f + std::fabs(v) * kErfStep);
      float p = kErf[4];
      for (int k = 3; k >= 0; --k) p = p * t + kErf[k];
      const float q = (p * t) * e[i];
      out[begin + i] = v < 0.0f ? v * q : v - v * q;
    }
  }
}

void soft_cap(const Kernels& kernels, float cap, float* x, int n) {
  const auto step = static_cast<float>(2.0 * 1.4426950408889634 / static_cast<double>(cap));
  kernels.scale(step, x, n);
  kernels.exp2(x, x, n);
  for (int i = 0; i < n; ++i) x[i] = cap - (cap + cap) / (1.0f + x[i]);
}

void choose_experts(std::span<const float> logits, int count, ExpertChoice* choices) {
  for (int k = 0; k < count; ++k) {
    int best = -1;
    for (int i = 0; i < static_cast<int>(logits.size()); ++i) {
      const bool taken =
          std::any_of(choices, choices + k, [i](const ExpertChoice& c) { return c.expert == i; });
      if (!taken && (best < 0 || logits[i] > logits[best])) best = i;
    }
    choices[k].expert = best;
    choices[k].weight = exp2_exact((logits[best] - logits[choices[0].expert]) * -kMinusLog2e);
  }
  float sum = 0.0f;
  for (int k = 0; k < count; ++k) sum += choices[k].weight;
  for (int k = 0; k < count; ++k) choices[k].weight /= sum;
}

}  // namespace coppice::core
