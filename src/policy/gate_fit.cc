#include "policy/gate_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "base/check.h"

namespace coppice::core {
namespace {

constexpr float kRounding = 0.15f;  // how far apart alphas are that may be taken for each other
constexpr double kPriceRate = 0.1;  // of the price's logarithm, a batch and share of work too much

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// std's distributions differ between libraries.
float between(std::mt19937& random, float least, float most) {
  const double part = static_cast<double>(random()) * 0x1p-32;
  return least + (most - least) * static_cast<float>(part);
}

// Mean and one over the deviation of each input of `learned`.
void standardise(const GateExamples& learned, GateWeights& w) {
  const auto inputs = static_cast<std::size_t>(learned.inputs);
  std::vector<double> sum(inputs), squares(inputs);
  for (std::size_t e = 0; e < learned.size(); ++e)
    for (std::size_t i = 0; i < inputs; ++i) {
      const double x = learned.x[e * inputs + i];
      sum[i] += x;
      squares[i] += x * x;
    }
  const double n = static_cast<double>(learned.size());
  w.mean.resize(inputs);
  w.scale.resize(inputs);
  for (std::size_t i = 0; i < inputs; ++i) {
    const double mean = sum[i] / n, variance = squares[i] / n - mean * mean;
    w.mean[i] = static_cast<float>(mean);
    w.scale[i] = variance > 1e-12 ? static_cast<float>(1 / std::sqrt(variance)) : 0.0f;
  }
}

void apply(const GateWeights& w, GateExamples& examples) {
  const auto inputs = static_cast<std::size_t>(examples.inputs);
  for (std::size_t e = 0; e < examples.size(); ++e)
    for (std::size_t i = 0; i < inputs; ++i) {
      float& x = examples.x[e * inputs + i];
      x = std::clamp((x - w.mean[i]) * w.scale[i], -kMostDeviations, kMostDeviations);
    }
}

// The price at which the cheapest mix of constants spends the wanted work: what one more pass of the draft
// saves there.
double price_of_constants(const GateExamples& examples, double compute) {
  const auto choices = static_cast<std::size_t>(examples.choices);
  std::vector<CycleSum> constants(choices);
  double whole = 0;
  for (std::size_t e = 0; e < examples.size(); ++e) {
    for (std::size_t c = 0; c < choices; ++c)
      constants[c].add({1, examples.cycles[e * choices + c], examples.work[e * choices + c]});
    whole += examples.whole[e];
  }
  const double here = cycles_of_constants(constants, compute * whole);
  const double more = cycles_of_constants(constants, 1.02 * compute * whole);
  constexpr double kLeast = 0.01;
  return whole > 0 ? std::max(kLeast, (here - more) / (0.02 * compute * whole)) : kLeast;
}

class GateFitter {
 public:
  GateFitter(GateExamples learned, GateExamples checked, const GateRounding& rounding,
             const GateFitOptions& options)
      : learned_(std::move(learned)),
        checked_(std::move(checked)),
        rounding_(rounding),
        options_(options),
        random_(options.seed),
        inputs_(static_cast<std::size_t>(learned_.inputs)),
        units_(static_cast<std::size_t>(options.units)) {
    COPPICE_CHECK(learned_.size() > 0 && checked_.size() > 0 && learned_.inputs % 2 == 0);
    COPPICE_CHECK(static_cast<int>(rounding.alphas.size()) == learned_.choices);
    COPPICE_CHECK(options.units >= 1 && options.units <= kMostGateUnits);
    fit_.weights.hidden = learned_.inputs / 2;
    fit_.weights.layer = options.layer;
    fit_.weights.units = options.units;
    standardise(learned_, fit_.weights);
    apply(fit_.weights, learned_);
    apply(fit_.weights, checked_);
    values_.resize(inputs_ * units_ + 2 * units_ + 1);
    gradient_.resize(values_.size());
    first_.resize(values_.size());
    second_.resize(values_.size());
    // Units vary by about 1, and say little at first.
    const float spread = std::sqrt(3.0f / static_cast<float>(inputs_));
    for (std::size_t i = 0; i < inputs_ * units_; ++i) values_[i] = between(random_, -spread, spread);
    for (std::size_t u = 0; u < units_; ++u) out()[u] = between(random_, -0.1f, 0.1f);
    price_ = price_of_constants(learned_, options.compute);
  }

  GateFit fit() {
    std::vector<std::size_t> order(learned_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t batch = static_cast<std::size_t>(options_.batch);
    const double all = static_cast<double>(order.size()) * options_.epochs;
    double done = 0;
    double fewest = std::numeric_limits<double>::infinity();
    for (int epoch = 1; epoch <= options_.epochs; ++epoch) {
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_() % i]);
      for (std::size_t i = 0; i < order.size(); i += batch) {
        const std::size_t n = std::min(batch, order.size() - i);
        learn({&order[i], n}, options_.rate * static_cast<float>(1 - 0.99 * done / all));
        done += static_cast<double>(n);
        if (options_.progress && i / batch % 16 == 0 && !options_.progress(done / all)) return stopped(epoch);
      }
      if (const double cycles = settle(); cycles < fewest) {
        fewest = cycles;
        fit_.cycles = cycles;
        keep(epoch);
      }
    }
    return fit_;
  }

 private:
  float* in_bias() { return &values_[inputs_ * units_]; }
  float* out() { return in_bias() + units_; }
  float& out_bias() { return values_.back(); }

  // What is squashed, and the units behind it.
  float score(const float* x, float* units) {
    std::copy_n(in_bias(), units_, units);
    for (std::size_t i = 0; i < inputs_; ++i) {
      const float* row = &values_[i * units_];
      for (std::size_t u = 0; u < units_; ++u) units[u] += x[i] * row[u];
    }
    float sum = out_bias();
    for (std::size_t u = 0; u < units_; ++u) sum += out()[u] * std::max(units[u], 0.0f);
    return sum;
  }

  // By how much the expected price rises with alpha; adds the expected work.
  double slope(std::size_t e, float alpha, double& work) const {
    const auto choices = static_cast<std::size_t>(learned_.choices);
    double weights = 0, mean = 0, cost = 0, both = 0, spent = 0;
    for (std::size_t c = 0; c < choices; ++c) {
      const double away = rounding_.alphas[c] - alpha;
      const double p = std::exp(-away * away / (2 * kRounding * kRounding));
      const double of_choice = learned_.cycles[e * choices + c] + price_ * learned_.work[e * choices + c];
      weights += p;
      mean += p * away;
      cost += p * of_choice;
      both += p * away * of_choice;
      spent += p * learned_.work[e * choices + c];
    }
    work += spent / weights;
    return (both / weights - mean / weights * cost / weights) / (kRounding * kRounding);
  }

  void learn(std::span<const std::size_t> batch, float rate) {
    std::fill(gradient_.begin(), gradient_.end(), 0.0f);
    double work = 0, whole = 0;
    for (const std::size_t e : batch) {
      const float* x = &learned_.x[e * inputs_];
      std::array<float, kMostGateUnits> units, back;
      const float share = sigmoid(score(x, units.data()));
      const auto error = static_cast<float>(slope(e, kLeastAlpha + share, work)) * share * (1 - share);
      whole += learned_.whole[e];
      float* to_bias = &gradient_[inputs_ * units_];
      float* to_out = to_bias + units_;
      for (std::size_t u = 0; u < units_; ++u) {
        to_out[u] += error * std::max(units[u], 0.0f);
        back[u] = units[u] > 0 ? error * out()[u] : 0.0f;
        to_bias[u] += back[u];
      }
      gradient_.back() += error;
      for (std::size_t i = 0; i < inputs_; ++i) {
        float* row = &gradient_[i * units_];
        for (std::size_t u = 0; u < units_; ++u) row[u] += x[i] * back[u];
      }
    }
    step(rate, static_cast<float>(batch.size()));
    if (whole > 0) price_ *= std::exp(kPriceRate * (work / whole - options_.compute));
  }

  void step(float rate, float decisions) {
    constexpr float kFirst = 0.9f, kSecond = 0.99f, kLeast = 1e-8f;
    first_power_ *= kFirst;
    second_power_ *= kSecond;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const float g = gradient_[i] / decisions;
      first_[i] = kFirst * first_[i] + (1 - kFirst) * g;
      second_[i] = kSecond * second_[i] + (1 - kSecond) * g * g;
      values_[i] -=
          rate * (first_[i] / (1 - first_power_)) / (std::sqrt(second_[i] / (1 - second_power_)) + kLeast);
    }
    for (std::size_t i = 0; i < inputs_ * units_; ++i) values_[i] *= 1 - rate * options_.decay;
  }

  // Of the checked decisions, with the bias moved by so much.
  CycleSum checked(const std::vector<float>& scores, float more) const {
    CycleSum sum;
    const auto choices = static_cast<std::size_t>(checked_.choices);
    for (std::size_t e = 0; e < scores.size(); ++e) {
      const auto c = static_cast<std::size_t>(rounding_.choose(kLeastAlpha + sigmoid(scores[e] + more)));
      sum.add({1, checked_.cycles[e * choices + c], checked_.work[e * choices + c]});
    }
    return sum;
  }

  // Sets the bias to the most that spends no more than is wanted. Cycles a decision then.
  double settle() {
    std::vector<float> scores(checked_.size());
    std::array<float, kMostGateUnits> units;
    for (std::size_t e = 0; e < scores.size(); ++e) scores[e] = score(&checked_.x[e * inputs_], units.data());
    double allowed = 0;
    for (const float whole : checked_.whole) allowed += options_.compute * whole;
    // A sigmoid of this is 0 or 1 as far as any width is concerned.
    const auto [low, high] = std::minmax_element(scores.begin(), scores.end());
    float least = -10 - *high, most = 10 - *low;
    for (int i = 0; i < 40; ++i) {
      const float middle = (least + most) / 2;
      (checked(scores, middle).work <= allowed ? least : most) = middle;
    }
    settled_ = out_bias() + least;
    return checked(scores, least).cycles / static_cast<double>(scores.size());
  }

  GateFit stopped(int epoch) {
    if (fit_.epoch == 0) settle(), keep(epoch);
    return fit_;
  }

  void keep(int epoch) {
    GateWeights& w = fit_.weights;
    w.in.assign(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(inputs_ * units_));
    w.in_bias.assign(in_bias(), in_bias() + units_);
    w.out.assign(out(), out() + units_);
    w.out_bias = settled_;
    fit_.price = price_;
    fit_.epoch = epoch;
  }

  GateExamples learned_, checked_;
  const GateRounding& rounding_;
  const GateFitOptions& options_;
  std::mt19937 random_;
  std::size_t inputs_, units_;
  // Those into units [inputs, units], their biases, those out of units, the last bias.
  std::vector<float> values_, gradient_, first_, second_;
  float first_power_ = 1, second_power_ = 1, settled_ = 0;
  double price_ = 0;
  GateFit fit_;
};

}  // namespace

GateFit fit_gate(GateExamples learned, GateExamples checked, const GateRounding& rounding,
                 const GateFitOptions& options) {
  return GateFitter(std::move(learned), std::move(checked), rounding, options).fit();
}

}  // namespace coppice::core
