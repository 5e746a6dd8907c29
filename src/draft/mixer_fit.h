// Fitting the mixer's prior: lessons are collected while texts are replayed through a grower (replay.h), then
// all weights, those into the hidden units too, are fitted on them together: logistic regression's loss
// (minus the log of the chance of what was drawn), minibatches, Adam (arXiv:1412.6980).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "draft/grower.h"
#include "draft/mixture.h"

namespace coppice::core {

// What was said at the visited nodes of texts, and what was drawn there. A lesson of SmolLM2's usual mix
// takes some 3 kB.
class Lessons final : public LessonListener {
 public:
  explicit Lessons(int features) : features_(features) { starts_.push_back(0); }
  void hear(const Opinions& opinions, Token drawn) override;
  // Of the draws heard from now on: their noise is known (opinions.gumbel is filled).
  void set_keyed(bool keyed) { keyed_ = keyed; }

  std::size_t size() const { return lessons_.size(); }
  bool any_keyed() const { return any_keyed_; }

  struct Lesson {
    int bucket = 0, taken = -1;  // the candidate that was drawn, or -1
    bool keyed = false;
  };
  const Lesson& lesson(std::size_t i) const { return lessons_[i]; }
  int candidates(std::size_t i) const { return static_cast<int>(starts_[i + 1] - starts_[i]); }
  const float* x(std::size_t i) const { return &x_[starts_[i] * features_]; }  // [candidates, features]
  const float* gumbel(std::size_t i) const { return &gumbel_[starts_[i]]; }    // [candidates]

 private:
  int features_;
  bool keyed_ = false, any_keyed_ = false;
  std::vector<Lesson> lessons_;
  std::vector<std::size_t> starts_;
  std::vector<float> x_, gumbel_;
};

struct FitOptions {
  int epochs = 6;
  float rate = 0.01f;  // at the start; it falls to a hundredth
  int batch = 64;      // lessons
  std::uint32_t seed = 1;
  std::function<bool(double fraction)> progress;  // false stops: the weights are as far as they are
};

// The weights of one mode's mixer, from nothing.
std::vector<float> fit_mixer(const Lessons& lessons, const MixerShape& shape, const FitOptions& options);
// The noise part: the second mixer of sampled mode, over the chances that `mixer` gives. Uses keyed lessons.
std::vector<float> fit_noise(const Lessons& lessons, const Mixer& mixer, const FitOptions& options);

}  // namespace coppice::core
