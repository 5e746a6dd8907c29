// The mixer turns what the drafters said about a candidate into the chance that the target takes it: logistic
// mixing, as context-mixing compressors do. One set of weights per bucket (chosen by the longest in-context
// match). It learns online: the target's draw is known at every visited node, so every candidate there is a
// labelled example, in the tree or not.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace coppice::core {

inline constexpr int kMaxFeatures = 64;

class Mixer {
 public:
  Mixer(int features, int buckets);  // features includes the constant 1 at index 0
  int features() const { return features_; }
  int buckets() const { return buckets_; }

  // x: [candidates, features()] -> the chance of each; scaled down where their sum is above 0.98.
  void chances(int bucket, const float* x, int candidates, float* out) const;
  // taken: index of the candidate that the target drew, or -1. One step of online learning.
  void learn(int bucket, const float* x, int candidates, int taken);
  void set_rate(float rate) { rate_ = rate; }

  std::span<const float> weights() const { return weights_; }  // [buckets, features]
  std::span<float> weights() { return weights_; }

 private:
  int features_, buckets_;
  float rate_ = 0.01f;
  std::vector<float> weights_;
};

}  // namespace coppice::core
