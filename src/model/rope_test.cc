#include "model/rope.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace coppice::core {
namespace {

TEST(Rope, SineAndCosineAreRightToTheLastBitsForEveryPosition) {
  for (double x = -1000; x < (1 << 20); x += 0.37 + 0.0007 * std::abs(x)) {
    EXPECT_NEAR(sin_exact(x), static_cast<double>(std::sin(static_cast<long double>(x))), 2.5e-16) << x;
    EXPECT_NEAR(cos_exact(x), static_cast<double>(std::cos(static_cast<long double>(x))), 2.5e-16) << x;
  }
  EXPECT_EQ(sin_exact(0), 0);
  EXPECT_EQ(cos_exact(0), 1);
}

TEST(Rope, PowersOfTwoAreRightToTheLastBits) {
  for (double x = -60; x < 60; x += 0.0137) EXPECT_NEAR(exp2_exact64(x) / std::exp2(x), 1, 5e-16) << x;
  for (int n = -100; n <= 100; ++n) EXPECT_EQ(exp2_exact64(n), std::ldexp(1.0, n));
}

TEST(Rope, FrequenciesFallFromOneToTheInverseOfTheBase) {
  double frequencies[32];
  rope_frequencies(100000.0, 64, frequencies);
  EXPECT_EQ(frequencies[0], 1);
  for (int i = 0; i < 32; ++i) EXPECT_NEAR(frequencies[i] * std::pow(100000.0, 2.0 * i / 64), 1, 1e-14) << i;
}

TEST(Rope, YarnKeepsShortWavesAndStretchesLongOnes) {
  double plain[32], scaled[32];
  rope_frequencies(10000.0, 64, plain);
  rope_frequencies(10000.0, 64, scaled);
  RopeScaling scaling;
  scaling.kind = RopeScaling::Kind::yarn;
  scaling.factor = 4;
  scaling.original_context = 2048;
  scale_frequencies(scaling, 10000.0, 64, scaled);
  // Pairs that turn 32 times and once in 2,048 positions: 64 ln(2048 / (2 pi t)) / (2 ln 10000) = 8.06
  // and 20.1.
  for (int i = 0; i < 32; ++i) {
    const double ramp = std::clamp((i - 8) / 13.0, 0.0, 1.0);
    EXPECT_NEAR(scaled[i] / plain[i], 1 - ramp + ramp / 4, 1e-12) << i;
  }
}

TEST(Rope, ARowForHalvesHasAllCosinesFirst) {
  const double frequencies[] = {1.0, 0.01};
  float interleaved[4], halves[4];
  rope_row(100, frequencies, 4, interleaved, RopePairs::interleaved, 1.5);
  rope_row(100, frequencies, 4, halves, RopePairs::halves, 1.5);
  EXPECT_EQ(interleaved[0], static_cast<float>(1.5 * cos_exact(100.0)));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(halves[i / 2 + i % 2 * 2], interleaved[i]);
}

TEST(Rope, ARowIsTheAngleOfItsPosition) {
  const double frequencies[] = {1.0, 0.01};
  float cos_sin[4];
  rope_row(100, frequencies, 4, cos_sin);
  EXPECT_EQ(cos_sin[0], static_cast<float>(std::cos(100.0)));
  EXPECT_EQ(cos_sin[1], static_cast<float>(std::sin(100.0)));
  EXPECT_EQ(cos_sin[2], static_cast<float>(std::cos(1.0)));
  EXPECT_EQ(cos_sin[3], static_cast<float>(std::sin(1.0)));
}

}  // namespace
}  // namespace coppice::core
