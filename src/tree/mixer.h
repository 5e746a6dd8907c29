// The mixer turns what the drafters said about the candidates at a node into the chance that the target takes
// each: logistic mixing, as context-mixing compressors do. A candidate's score is a weighted sum of its
// features, the set of weights chosen by a bucket (the longest in-context match), plus what a small hidden
// layer, the same for all buckets, makes of the features. The chances are the softmax of the scores and of 0
// for "none of these": candidates compete. It learns online: the target's draw is known at every visited
// node, so every candidate there is a labelled example, in the tree or not. The hidden layer's inputs are
// fitted beforehand (draft/mixer_fit.h) and stay.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace coppice::core {

inline constexpr int kMaxFeatures = 96;
inline constexpr int kMostHidden = 32;
inline constexpr int kMostMixed = 48;  // candidates at one node

struct MixerShape {
  int features = 1;  // the constant 1 at index 0 included
  int buckets = 1;
  int hidden = 0;  // units

  // Weights lie so: [buckets, features] of the sums, [features, hidden] into the units, [hidden] out of them.
  std::size_t sums() const { return static_cast<std::size_t>(buckets) * features; }
  std::size_t inputs() const { return static_cast<std::size_t>(features) * hidden; }
  std::size_t weights() const { return sums() + inputs() + hidden; }
};

class Mixer {
 public:
  explicit Mixer(const MixerShape& shape);  // untaught
  const MixerShape& shape() const { return shape_; }

  // x: [candidates, features] -> the chance of each, their sum at most 0.98. At most kMostMixed candidates.
  void chances(int bucket, const float* x, int candidates, float* out) const;
  // taken: index of the candidate that the target drew, or -1. One step of online learning.
  void learn(int bucket, const float* x, int candidates, int taken);
  void set_rate(float rate) { rate_ = rate; }

  std::span<const float> weights() const { return weights_; }
  void set_weights(std::span<const float> weights);

 private:
  float ask_units(const float* weights, const float* x, float* units) const;
  void score(int bucket, const float* x, int candidates, float* out, float* units) const;
  void scores_to_chances(int candidates, float* scores) const;

  MixerShape shape_;
  bool silent_units_ = true;  // all weights out of the units are 0 and stay so
  float rate_ = 0.01f;
  std::vector<float> weights_;
};

}  // namespace coppice::core
