#include "tree/mixer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace coppice::core {
namespace {

// Before anything was learned a lone guess is taken about a quarter of the time: e^-1 / (1 + e^-1).
constexpr float kUntaughtBias = -1.0f;
// Together the candidates leave the target some chance of drawing another token.
constexpr float kMostTogether = 0.98f;

}  // namespace

Mixer::Mixer(const MixerShape& shape) : shape_(shape), weights_(shape.weights(), 0.0f) {
  COPPICE_CHECK(shape.features >= 1 && shape.features <= kMaxFeatures && shape.buckets >= 1);
  COPPICE_CHECK(shape.hidden >= 0 && shape.hidden <= kMostHidden);
  for (int b = 0; b < shape.buckets; ++b)
    weights_[static_cast<std::size_t>(b) * shape.features] = kUntaughtBias;
}

void Mixer::set_weights(std::span<const float> weights) {
  COPPICE_CHECK(weights.size() == weights_.size());
  std::copy(weights.begin(), weights.end(), weights_.begin());
  silent_units_ = std::all_of(weights.end() - shape_.hidden, weights.end(), [](float w) { return w == 0; });
}

// units: [hidden], what they say; unset where they are silent.
float Mixer::score(int bucket, const float* x, float* units) const {
  const int features = shape_.features, hidden = shape_.hidden;
  const float* w = &weights_[static_cast<std::size_t>(bucket) * features];
  float score = 0;
  for (int i = 0; i < features; ++i) score += w[i] * x[i];
  if (silent_units_) return score;
  const float* in = &weights_[shape_.sums()];
  const float* out = in + shape_.inputs();
  std::fill_n(units, hidden, 0.0f);
  for (int i = 0; i < features; ++i, in += hidden) {
    if (x[i] == 0) continue;
    for (int j = 0; j < hidden; ++j) units[j] += in[j] * x[i];
  }
  for (int j = 0; j < hidden; ++j) {
    units[j] = std::max(units[j], 0.0f);
    score += out[j] * units[j];
  }
  return score;
}

void Mixer::scores_to_chances(int candidates, float* scores) const {
  float most = 0;
  for (int c = 0; c < candidates; ++c) most = std::max(most, scores[c]);
  float sum = std::exp(-most);  // of "none of these"
  for (int c = 0; c < candidates; ++c) sum += scores[c] = std::exp(scores[c] - most);
  for (int c = 0; c < candidates; ++c) scores[c] /= sum;
}

void Mixer::chances(int bucket, const float* x, int candidates, float* out) const {
  COPPICE_CHECK(bucket >= 0 && bucket < shape_.buckets && candidates <= kMostMixed);
  std::array<float, kMostHidden> units;
  for (int c = 0; c < candidates; ++c)
    out[c] = score(bucket, x + static_cast<std::size_t>(c) * shape_.features, units.data());
  scores_to_chances(candidates, out);
  float sum = 0;
  for (int c = 0; c < candidates; ++c) sum += out[c];
  if (sum <= kMostTogether) return;
  for (int c = 0; c < candidates; ++c) out[c] *= kMostTogether / sum;
}

void Mixer::learn(int bucket, const float* x, int candidates, int taken) {
  COPPICE_CHECK(bucket >= 0 && bucket < shape_.buckets && candidates <= kMostMixed && taken < candidates);
  const int features = shape_.features, hidden = silent_units_ ? 0 : shape_.hidden;
  std::array<float, static_cast<std::size_t>(kMostMixed) * kMostHidden> units;
  std::array<float, kMostMixed> p;
  for (int c = 0; c < candidates; ++c)
    p[c] = score(bucket, x + static_cast<std::size_t>(c) * features, &units[0] + c * hidden);
  scores_to_chances(candidates, p.data());
  // All candidates are judged by the same weights, then one step is made: their order does not matter.
  float* w = &weights_[static_cast<std::size_t>(bucket) * features];
  float* out = weights_.data() + shape_.sums() + shape_.inputs();
  std::array<float, kMaxFeatures> step{};
  std::array<float, kMostHidden> unit_step{};
  for (int c = 0; c < candidates; ++c) {
    const float* row = x + static_cast<std::size_t>(c) * features;
    const float error = (c == taken ? 1.0f : 0.0f) - p[c];
    for (int i = 0; i < features; ++i) step[i] += error * row[i];
    for (int j = 0; j < hidden; ++j) unit_step[j] += error * units[c * hidden + j];
  }
  for (int i = 0; i < features; ++i) w[i] += rate_ * step[i];
  for (int j = 0; j < hidden; ++j) out[j] += rate_ * unit_step[j];
}

}  // namespace coppice::core
