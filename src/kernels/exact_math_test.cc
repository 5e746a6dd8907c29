// exp2, log, sums and noise against libm and published vectors.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/philox.h"

namespace coppice::core {
namespace {

TEST(Exp2Exact, IsWithinTwoUnitsInTheLastPlace) {
  double worst = 0;
  for (std::int64_t i = -64 * 4096; i <= 127 * 4096; ++i) {
    for (const float nudge : {0.0f, 1.0f / 12345, 1.0f / 54321}) {
      const float x = static_cast<float>(i) / 4096 + nudge;
      const double exact = std::exp2(static_cast<double>(x));
      const double unit = std::ldexp(1.0, std::ilogb(exact) - 23);
      worst = std::max(worst, std::fabs(exp2_exact(x) - exact) / unit);
    }
  }
  EXPECT_LE(worst, 2.0);
}

TEST(Exp2Exact, HasExactIntegersAndStatedEnds) {
  for (int n = -64; n < 128; ++n) EXPECT_EQ(exp2_exact(static_cast<float>(n)), std::ldexp(1.0f, n)) << n;
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(std::bit_cast<std::uint32_t>(exp2_exact(std::nextafter(-64.0f, -65.0f))), 0u);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(exp2_exact(-infinity)), 0u);
  EXPECT_EQ(exp2_exact(-3e38f), 0.0f);
  EXPECT_EQ(exp2_exact(128.0f), infinity);
  EXPECT_EQ(exp2_exact(infinity), infinity);
  EXPECT_TRUE(std::isfinite(exp2_exact(std::nextafter(128.0f, 0.0f))));
  EXPECT_TRUE(std::isnan(exp2_exact(std::numeric_limits<float>::quiet_NaN())));
}

double log_error(double x) {
  const double exact = std::log(x);
  return exact == 0 ? std::fabs(log_exact(x)) : std::fabs(log_exact(x) / exact - 1);
}

TEST(LogExact, AgreesWithLibmToARelativeError) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> unit(0, 1), wide(-1022, 1023);
  double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    worst = std::max(worst, log_error(unit(random)));
    worst = std::max(worst, log_error(1 - std::exp2(-unit(random) * 53)));  // where log is nearly 0
    worst = std::max(worst, log_error(1 + std::exp2(-unit(random) * 52)));
    worst = std::max(worst, log_error(std::exp2(wide(random))));
  }
  EXPECT_LE(worst, 4.5e-16);  // two units in the last place
}

TEST(LogExact, HasStatedEnds) {
  EXPECT_EQ(log_exact(1.0), 0.0);
  EXPECT_LE(log_error(0x1p-53), 4.5e-16);
  EXPECT_LE(log_error(1 - 0x1p-53), 4.5e-16);
  EXPECT_LE(log_error(5e-324), 4.5e-16);
  EXPECT_LE(log_error(std::numeric_limits<double>::max()), 4.5e-16);
}

TEST(LaneSum, AddsSixteenLanesThenTheTree) {
  std::vector<float> x(16, 0.0f);
  x[0] = 1e8f, x[1] = 1.0f, x[8] = -1e8f, x[9] = 1.0f;
  EXPECT_EQ(lane_sum(x.data(), 16), 2.0f);  // left to right would give 1
  x = {3.0f, 4.0f, 5.0f};
  EXPECT_EQ(lane_sum(x.data(), 3), 12.0f);
  EXPECT_EQ(lane_sum(x.data(), 0), 0.0f);
}

TEST(Philox, GivesThePublishedVectors) {  // Random123's known answers for philox4x32-10
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, ~std::uint64_t{0}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Noise, IsTheGumbelTransformOfTheStatedCounter) {
  const NoiseKey key{0x123456789abcdef0, 7, 0xABCDEF};
  for (const int token : {0, 1, 2, 49151}) {
    const auto r = philox4x32({static_cast<std::uint32_t>(token / 2), 1000, 7, 0xABCDEF}, key.seed);
    const std::uint64_t word =
        token % 2 ? std::uint64_t{r[2]} << 32 | r[3] : std::uint64_t{r[0]} << 32 | r[1];
    const double u = static_cast<double>(2 * (word >> 12) + 1) * 0x1p-53;
    EXPECT_EQ(gumbel_noise(key, 1000, token), -log_exact(-log_exact(u)));
  }
  const auto r = philox4x32({5, 1, 7, 0xABCDEF | 3u << 24}, key.seed);
  const double u = static_cast<double>(2 * ((std::uint64_t{r[0]} << 32 | r[1]) >> 12) + 1) * 0x1p-53;
  EXPECT_EQ(uniform(key, (std::uint64_t{1} << 32) + 5, 3), u);
}

TEST(Noise, EveryPartOfTheKeyMatters) {
  const NoiseKey key{1, 2, 3};
  const double g = gumbel_noise(key, 10, 20);
  EXPECT_NE(g, gumbel_noise({2, 2, 3}, 10, 20));
  EXPECT_NE(g, gumbel_noise({1 | std::uint64_t{1} << 32, 2, 3}, 10, 20));
  EXPECT_NE(g, gumbel_noise({1, 3, 3}, 10, 20));
  EXPECT_NE(g, gumbel_noise({1, 2, 4}, 10, 20));
  EXPECT_NE(g, gumbel_noise(key, 11, 20));
  EXPECT_NE(g, gumbel_noise(key, 10, 21));
  EXPECT_NE(g, gumbel_noise(key, 10, 22));
  EXPECT_NE(uniform(key, 10, 1), uniform(key, 10, 2));
}

TEST(Noise, HasTheGumbelDistribution) {
  double sum = 0, squares = 0;
  const int count = 200000;
  for (int i = 0; i < count; ++i) {
    const double g = gumbel_noise({42, 0, 0}, i / 1000, i % 1000);
    sum += g, squares += g * g;
  }
  const double mean = sum / count;
  EXPECT_NEAR(mean, 0.5772157, 0.01);                           // 3.5 standard errors
  EXPECT_NEAR(squares / count - mean * mean, 1.6449341, 0.03);  // pi^2 / 6
}

}  // namespace
}  // namespace coppice::core
