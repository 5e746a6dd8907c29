#include "tree/mixer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace coppice::core {
namespace {

const float kE = std::exp(1.0f);

void set(Mixer& mixer, std::size_t index, float weight) {
  std::vector<float> weights(mixer.weights().begin(), mixer.weights().end());
  weights[index] = weight;
  mixer.set_weights(weights);
}

TEST(Mixer, AnUntaughtMixerGivesEveryCandidateTheSameModestChance) {
  const Mixer mixer({3, 2});
  const float x[] = {1, 5, -2, 1, 0, 9};
  float p[2];
  mixer.chances(1, x, 2, p);
  EXPECT_FLOAT_EQ(p[0], 1 / (2 + kE));
  EXPECT_EQ(p[0], p[1]);
  mixer.chances(1, x, 1, p);
  EXPECT_FLOAT_EQ(p[0], 1 / (1 + kE));
}

TEST(Mixer, ChancesTogetherStayBelowOne) {
  Mixer mixer({1, 1});
  set(mixer, 0, 5.0f);
  const float x[] = {1, 1, 1, 1};
  float p[4];
  mixer.chances(0, x, 4, p);
  EXPECT_FLOAT_EQ(p[0] + p[1] + p[2] + p[3], 0.98f);
}

TEST(Mixer, OneStepIsTheGradientOfAllCandidatesAtTheOldWeights) {
  Mixer mixer({2, 2});
  mixer.set_rate(0.1f);
  const float x[] = {1, 0.5f, 1, -2.0f};
  mixer.learn(1, x, 2, 0);
  const float p = 1 / (2 + kE);
  EXPECT_EQ(mixer.weights()[0], -1.0f);  // the other bucket
  EXPECT_EQ(mixer.weights()[1], 0.0f);
  EXPECT_FLOAT_EQ(mixer.weights()[2], -1 + 0.1f * ((1 - p) - p));
  EXPECT_FLOAT_EQ(mixer.weights()[3], 0.1f * ((1 - p) * 0.5f - p * -2.0f));
}

TEST(Mixer, AHiddenUnitSaysWhatNoSumOfFeaturesCan) {
  // One unit: 3 * max(0, x1 + x2 - 1).
  Mixer mixer({3, 1, 1});
  mixer.set_weights(std::vector<float>{0, 0, 0, -1, 1, 1, 3});
  const auto chance = [&](float a, float b) {
    const float x[] = {1, a, b};
    float p;
    mixer.chances(0, x, 1, &p);
    return p;
  };
  EXPECT_FLOAT_EQ(chance(1, 0), 0.5f);
  EXPECT_FLOAT_EQ(chance(0, 1), 0.5f);
  EXPECT_FLOAT_EQ(chance(1, 1), std::exp(3.0f) / (1 + std::exp(3.0f)));
  // What goes out of it is learned on, what goes in stays.
  const float x[] = {1, 1, 1};
  mixer.learn(0, x, 1, -1);
  EXPECT_LT(mixer.weights()[6], 3.0f);
  EXPECT_EQ(mixer.weights()[3], -1.0f);
  EXPECT_EQ(mixer.weights()[4], 1.0f);
}

TEST(Mixer, LearnsTheChanceOfEachKindOfCandidate) {
  Mixer mixer({2, 1});
  mixer.set_rate(0.02f);
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    const bool good = random() % 2;
    const float x[] = {1, good ? 1.0f : 0.0f};
    mixer.learn(0, x, 1, random() % 10 < (good ? 9 : 2) ? 0 : -1);
  }
  const float good[] = {1, 1}, bad[] = {1, 0};
  float p;
  mixer.chances(0, good, 1, &p);
  EXPECT_NEAR(p, 0.9f, 0.05f);
  mixer.chances(0, bad, 1, &p);
  EXPECT_NEAR(p, 0.2f, 0.05f);
}

}  // namespace
}  // namespace coppice::core
