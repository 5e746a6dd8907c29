#include "tree/mixer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace coppice::core {
namespace {

// Before anything was learned a guess is taken about a quarter of the time: sigmoid(-1).
constexpr float kUntaughtBias = -1.0f;
// Together the candidates leave the target some chance of drawing another token.
constexpr float kMostTogether = 0.98f;

float chance(const float* w, const float* x, int n) {
  float logit = 0;
  for (int i = 0; i < n; ++i) logit += w[i] * x[i];
  return 1.0f / (1.0f + std::exp(-std::clamp(logit, -30.0f, 30.0f)));
}

}  // namespace

Mixer::Mixer(int features, int buckets)
    : features_(features), buckets_(buckets), weights_(static_cast<std::size_t>(features) * buckets, 0.0f) {
  COPPICE_CHECK(features >= 1 && features <= kMaxFeatures && buckets >= 1);
  for (int b = 0; b < buckets; ++b) weights_[static_cast<std::size_t>(b) * features] = kUntaughtBias;
}

void Mixer::chances(int bucket, const float* x, int candidates, float* out) const {
  COPPICE_CHECK(bucket >= 0 && bucket < buckets_);
  const float* w = &weights_[static_cast<std::size_t>(bucket) * features_];
  float sum = 0;
  for (int c = 0; c < candidates; ++c)
    sum += out[c] = chance(w, x + static_cast<std::size_t>(c) * features_, features_);
  if (sum <= kMostTogether) return;
  for (int c = 0; c < candidates; ++c) out[c] *= kMostTogether / sum;
}

void Mixer::learn(int bucket, const float* x, int candidates, int taken) {
  COPPICE_CHECK(bucket >= 0 && bucket < buckets_ && taken < candidates);
  float* w = &weights_[static_cast<std::size_t>(bucket) * features_];
  // All candidates are judged by the same weights, then one step is made: their order does not matter.
  std::array<float, kMaxFeatures> step{};
  for (int c = 0; c < candidates; ++c) {
    const float* row = x + static_cast<std::size_t>(c) * features_;
    const float error = (c == taken ? 1.0f : 0.0f) - chance(w, row, features_);
    for (int i = 0; i < features_; ++i) step[i] += error * row[i];
  }
  for (int i = 0; i < features_; ++i) w[i] += rate_ * step[i];
}

}  // namespace coppice::core
