#include "policy/gate_fit.h"

#include <gtest/gtest.h>

#include <random>

namespace coppice::core {
namespace {

constexpr int kInputs = 12;

// Three choices. A wide one saves cycles where input 3 is above input 9, and nothing elsewhere; the other
// inputs are noise, and so is part of every count.
GateExamples planted(int decisions, unsigned seed) {
  std::mt19937 random(seed);
  const auto noise = [&] { return static_cast<float>(random() * 0x1p-32) - 0.5f; };
  GateExamples examples;
  examples.inputs = kInputs;
  examples.choices = 3;
  for (int d = 0; d < decisions; ++d) {
    float x[kInputs];
    for (float& value : x) value = 3 * noise() + 7;
    examples.x.insert(examples.x.end(), x, x + kInputs);
    const bool pays = x[3] > x[9];
    for (int c = 0; c < 3; ++c) {
      examples.cycles.push_back(4 - (pays ? 1.0f * static_cast<float>(c) : 0.0f) + noise());
      examples.work.push_back(8 * (0.25f + 0.375f * static_cast<float>(c)));
    }
    examples.whole.push_back(8);
  }
  return examples;
}

const GateRounding kRounding{{0.6f, 1.0f, 1.4f}, [](float alpha) {
                               return alpha < 0.8f ? 0 : alpha < 1.2f ? 1 : 2;
                             }};

GateFitOptions few() {
  GateFitOptions options;
  options.units = 8;
  options.epochs = 40;
  return options;
}

struct Spent {
  double cycles = 0, work = 0;
  int right = 0;
};

Spent spent(const GateWeights& weights, const GateExamples& examples) {
  const Gate gate(weights);
  Spent sum;
  for (std::size_t d = 0; d < examples.size(); ++d) {
    const std::span<const float> x(&examples.x[d * kInputs], kInputs);
    const int c = kRounding.choose(gate.alpha({x.first(kInputs / 2), x.last(kInputs / 2)}));
    const double n = static_cast<double>(examples.size());
    sum.cycles += examples.cycles[d * 3 + c] / n;
    sum.work += examples.work[d * 3 + c] / examples.whole[d] / n;
    sum.right += (c > 0) == (x[3] > x[9]);
  }
  return sum;
}

TEST(GateFit, FindsAPlantedRuleAtTheWantedWork) {
  const GateExamples unseen = planted(2000, 3);
  const GateFit fit = fit_gate(planted(4000, 1), planted(1000, 2), kRounding, few());
  const Spent sum = spent(fit.weights, unseen);
  EXPECT_NEAR(sum.work, 0.6, 0.03);
  EXPECT_GT(sum.right, 1700);
  // A constant that spends .6 takes about 3.53 cycles; whoever knows the rule 3.07.
  EXPECT_LT(sum.cycles, 3.2);
  EXPECT_NEAR(fit.cycles, sum.cycles, 0.1);
  EXPECT_GT(fit.price, 0);
}

TEST(GateFit, LessComputeMakesANarrowerGate) {
  GateFitOptions options = few();
  options.compute = 0.35;
  const GateFit fit = fit_gate(planted(2000, 1), planted(1000, 2), kRounding, options);
  const Spent sum = spent(fit.weights, planted(1000, 3));
  EXPECT_NEAR(sum.work, 0.35, 0.03);
  EXPECT_LT(sum.cycles, 3.8) << "a constant takes 3.87";
}

TEST(GateFit, TheSameSeedGivesTheSameGate) {
  const auto fit = [](std::uint32_t seed) {
    GateFitOptions options = few();
    options.epochs = 2;
    options.seed = seed;
    return fit_gate(planted(500, 1), planted(200, 2), kRounding, options).weights.in;
  };
  EXPECT_EQ(fit(1), fit(1));
  EXPECT_NE(fit(1), fit(2));
}

TEST(GateFit, StopsWhenItIsTold) {
  GateFitOptions options = few();
  int heard = 0;
  options.progress = [&](double) { return ++heard < 3; };
  const GateFit fit = fit_gate(planted(4000, 1), planted(200, 2), kRounding, options);
  EXPECT_EQ(heard, 3);
  EXPECT_EQ(fit.weights.in.size(), static_cast<std::size_t>(kInputs * options.units));
}

}  // namespace
}  // namespace coppice::core
