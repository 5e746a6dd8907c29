#include "tree/mixer.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "kernels/mixing.h"

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

// x: [features] of one candidate -> its sum, and units: [hidden], what they say.
float Mixer::ask_units(const float* w, const float* x, float* units) const {
  const int features = shape_.features, hidden = shape_.hidden;
  const float* in = &weights_[shape_.sums()];
  if (hidden == kMixingUnits) return mix_one(w, in, x, features, units);
  float sum = 0;
  std::fill_n(units, hidden, 0.0f);
  for (int i = 0; i < features; ++i, in += hidden) {
    if (x[i] == 0) continue;
    sum += w[i] * x[i];
    for (int j = 0; j < hidden; ++j) units[j] += in[j] * x[i];
  }
  for (int j = 0; j < hidden; ++j) units[j] = std::max(units[j], 0.0f);
  return sum;
}

// x: [candidates, features] -> out: [candidates], units: [candidates, hidden], unset where they are silent.
void Mixer::score(int bucket, const float* x, int candidates, float* out, float* units) const {
  constexpr int kTogether = 4;  // a sum is a chain of additions, and one alone would wait
  const int features = shape_.features, hidden = shape_.hidden;
  const float* w = &weights_[static_cast<std::size_t>(bucket) * features];
  if (silent_units_) {
    for (int c = 0; c < candidates; ++c, x += features) {
      out[c] = 0;
      for (int i = 0; i < features; ++i) out[c] += w[i] * x[i];
    }
    return;
  }
  for (int c = 0; c < candidates; ++c)
    out[c] = ask_units(w, x + static_cast<std::size_t>(c) * features, units + c * hidden);
  const float* w_units = weights_.data() + shape_.sums() + shape_.inputs();
  int first = 0;
  for (; first + kTogether <= candidates; first += kTogether)
    for (int j = 0; j < hidden; ++j)
      for (int c = first; c < first + kTogether; ++c) out[c] += w_units[j] * units[c * hidden + j];
  for (int c = first; c < candidates; ++c)
    for (int j = 0; j < hidden; ++j) out[c] += w_units[j] * units[c * hidden + j];
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
  std::array<float, static_cast<std::size_t>(kMostMixed) * kMostHidden> units;
  score(bucket, x, candidates, out, units.data());
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
  score(bucket, x, candidates, p.data(), units.data());
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
