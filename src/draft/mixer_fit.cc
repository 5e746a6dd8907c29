#include "draft/mixer_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>

#include "base/check.h"

namespace coppice::core {
namespace {

// A problem: rows of features by lesson.
struct Example {
  const float* x;  // [candidates, features]
  int candidates, bucket, taken;
};

// std's distributions differ between libraries.
float between(std::mt19937& random, float least, float most) {
  return least + (most - least) * static_cast<float>(static_cast<double>(random()) * 0x1p-32);
}

class Fitter {
 public:
  // weights: where to start; those into and out of units are drawn.
  Fitter(const MixerShape& shape, std::span<const float> weights, const FitOptions& options)
      : shape_(shape), options_(options), random_(options.seed), weights_(weights.begin(), weights.end()) {
    // About as large as features are spread; out of the units little at first.
    for (std::size_t i = 0; i < shape.inputs(); ++i)
      weights_[shape.sums() + i] = between(random_, -0.5f, 0.5f);
    for (int u = 0; u < shape.hidden; ++u)
      weights_[shape.sums() + shape.inputs() + u] = between(random_, -0.2f, 0.2f);
    gradient_.resize(weights_.size());
    first_.resize(weights_.size());
    second_.resize(weights_.size());
  }

  std::vector<float> fit(std::vector<Example> examples) {
    const std::size_t batch = static_cast<std::size_t>(options_.batch);
    const std::size_t all = options_.epochs * examples.size();
    std::size_t done = 0;
    for (int epoch = 0; epoch < options_.epochs; ++epoch) {
      for (std::size_t i = examples.size(); i > 1; --i) std::swap(examples[i - 1], examples[random_() % i]);
      for (std::size_t i = 0; i < examples.size(); i += batch) {
        const std::size_t n = std::min(batch, examples.size() - i);
        std::fill(gradient_.begin(), gradient_.end(), 0.0f);
        for (std::size_t e = i; e < i + n; ++e) add_gradient(examples[e]);
        const float part = static_cast<float>(done) / static_cast<float>(all);
        step(options_.rate * (1 - 0.99f * part), static_cast<float>(n));
        done += n;
        if (options_.progress && i / batch % 64 == 0 &&
            !options_.progress(static_cast<double>(done) / static_cast<double>(all)))
          return weights_;
      }
    }
    return weights_;
  }

 private:
  void add_gradient(const Example& e) {
    const int features = shape_.features, hidden = shape_.hidden;
    const std::size_t sums = static_cast<std::size_t>(e.bucket) * features;
    const float* in = &weights_[shape_.sums()];
    const float* out = in + shape_.inputs();
    std::array<float, kMostMixed> p;
    float most = 0;
    for (int c = 0; c < e.candidates; ++c) {
      const float* x = e.x + static_cast<std::size_t>(c) * features;
      float* units = &units_[c * kMostHidden];
      float score = 0;
      std::fill_n(units, hidden, 0.0f);
      for (int f = 0; f < features; ++f) {
        if (x[f] == 0) continue;
        score += weights_[sums + f] * x[f];
        for (int u = 0; u < hidden; ++u) units[u] += in[f * hidden + u] * x[f];
      }
      for (int u = 0; u < hidden; ++u) {
        units[u] = std::max(units[u], 0.0f);
        score += out[u] * units[u];
      }
      p[c] = score;
      most = std::max(most, score);
    }
    float sum = std::exp(-most);
    for (int c = 0; c < e.candidates; ++c) sum += p[c] = std::exp(p[c] - most);
    float* to_in = &gradient_[shape_.sums()];
    float* to_out = to_in + shape_.inputs();
    for (int c = 0; c < e.candidates; ++c) {
      const float error = p[c] / sum - (c == e.taken ? 1.0f : 0.0f);
      const float* x = e.x + static_cast<std::size_t>(c) * features;
      const float* units = &units_[c * kMostHidden];
      std::array<float, kMostHidden> back;
      for (int u = 0; u < hidden; ++u) {
        to_out[u] += error * units[u];
        back[u] = units[u] > 0 ? error * out[u] : 0.0f;
      }
      for (int f = 0; f < features; ++f) {
        if (x[f] == 0) continue;
        gradient_[sums + f] += error * x[f];
        for (int u = 0; u < hidden; ++u) to_in[f * hidden + u] += back[u] * x[f];
      }
    }
  }

  void step(float rate, float lessons) {
    constexpr float kFirst = 0.9f, kSecond = 0.99f, kDecay = 1e-6f, kLeast = 1e-8f;
    first_power_ *= kFirst;
    second_power_ *= kSecond;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const float g = gradient_[i] / lessons + kDecay * weights_[i];
      first_[i] = kFirst * first_[i] + (1 - kFirst) * g;
      second_[i] = kSecond * second_[i] + (1 - kSecond) * g * g;
      weights_[i] -=
          rate * (first_[i] / (1 - first_power_)) / (std::sqrt(second_[i] / (1 - second_power_)) + kLeast);
    }
  }

  MixerShape shape_;
  FitOptions options_;
  std::mt19937 random_;
  std::vector<float> weights_;
  float first_power_ = 1, second_power_ = 1;
  std::vector<float> gradient_, first_, second_;
  std::array<float, static_cast<std::size_t>(kMostMixed) * kMostHidden> units_;
};

}  // namespace

void Lessons::hear(const Opinions& o, Token drawn) {
  if (o.count == 0) return;
  Lesson lesson;
  lesson.bucket = o.bucket;
  lesson.keyed = keyed_;
  any_keyed_ = any_keyed_ || keyed_;
  for (int c = 0; c < o.count; ++c)
    if (o.tokens[c] == drawn) lesson.taken = c;
  lessons_.push_back(lesson);
  starts_.push_back(starts_.back() + o.count);
  x_.insert(x_.end(), o.x, o.x + static_cast<std::size_t>(o.count) * features_);
  if (keyed_)
    gumbel_.insert(gumbel_.end(), o.gumbel, o.gumbel + o.count);
  else
    gumbel_.resize(gumbel_.size() + o.count);
}

std::vector<float> fit_mixer(const Lessons& lessons, const MixerShape& shape, const FitOptions& options) {
  std::vector<Example> examples;
  examples.reserve(lessons.size());
  for (std::size_t i = 0; i < lessons.size(); ++i)
    examples.push_back(
        {lessons.x(i), lessons.candidates(i), lessons.lesson(i).bucket, lessons.lesson(i).taken});
  return Fitter(shape, Mixer(shape).weights(), options).fit(std::move(examples));
}

std::vector<float> fit_noise(const Lessons& lessons, const Mixer& mixer, const FitOptions& options) {
  std::vector<float> rows;  // [candidates of all, kNoiseFeatures]
  std::vector<std::size_t> starts, used;
  for (std::size_t i = 0; i < lessons.size(); ++i) {
    if (!lessons.lesson(i).keyed) continue;
    std::array<float, kMostMixed> p;
    mixer.chances(lessons.lesson(i).bucket, lessons.x(i), lessons.candidates(i), p.data());
    used.push_back(i);
    starts.push_back(rows.size());
    rows.resize(rows.size() + static_cast<std::size_t>(lessons.candidates(i)) * kNoiseFeatures);
    noise_features(lessons.candidates(i), p.data(), lessons.gumbel(i), &rows[starts.back()]);
  }
  std::vector<Example> examples;
  for (std::size_t k = 0; k < used.size(); ++k)
    examples.push_back({&rows[starts[k]], lessons.candidates(used[k]), lessons.lesson(used[k]).bucket,
                        lessons.lesson(used[k]).taken});
  const MixerShape shape = Mixture::noise_shape(mixer.shape().buckets);
  const std::vector<float> untaught = Mixture::untaught(mixer.shape().features, shape.buckets);
  return Fitter(shape, std::span(untaught).last(shape.weights()), options).fit(std::move(examples));
}

}  // namespace coppice::core
