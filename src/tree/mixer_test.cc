#include "tree/mixer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace coppice::core {
namespace {

TEST(Mixer, AnUntaughtMixerGivesEveryCandidateTheSameModestChance) {
  const Mixer mixer(3, 2);
  const float x[] = {1, 5, -2, 1, 0, 9};
  float p[2];
  mixer.chances(1, x, 2, p);
  EXPECT_FLOAT_EQ(p[0], 1 / (1 + std::exp(1.0f)));
  EXPECT_EQ(p[0], p[1]);
}

TEST(Mixer, ChancesTogetherStayBelowOne) {
  Mixer mixer(1, 1);
  mixer.weights()[0] = 2.0f;
  const float x[] = {1, 1, 1, 1};
  float p[4];
  mixer.chances(0, x, 4, p);
  EXPECT_FLOAT_EQ(p[0] + p[1] + p[2] + p[3], 0.98f);
}

TEST(Mixer, OneStepIsTheGradientOfAllCandidatesAtTheOldWeights) {
  Mixer mixer(2, 2);
  mixer.set_rate(0.1f);
  const float x[] = {1, 0.5f, 1, -2.0f};
  mixer.learn(1, x, 2, 0);
  const float p = 1 / (1 + std::exp(1.0f));
  EXPECT_EQ(mixer.weights()[0], -1.0f);  // the other bucket
  EXPECT_EQ(mixer.weights()[1], 0.0f);
  EXPECT_FLOAT_EQ(mixer.weights()[2], -1 + 0.1f * ((1 - p) - p));
  EXPECT_FLOAT_EQ(mixer.weights()[3], 0.1f * ((1 - p) * 0.5f - p * -2.0f));
}

TEST(Mixer, LearnsTheChanceOfEachKindOfCandidate) {
  Mixer mixer(2, 1);
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
