// The plain functions of kernels.h: exp2, log and the 16-lane sum, as exact_math.h states them.
#include "kernels/exact_math.h"

#include <bit>
#include <cmath>

#include "kernels/kernels.h"

#ifdef __FAST_MATH__
#error "Coppice's laws need IEEE arithmetic: build without -ffast-math"
#endif

namespace coppice::core {

float exp2_exact(float x) {
  const float t = 128.0f < x ? 128.0f : x;
  const float shifted = t + kRound;
  const float f = t - (shifted - kRound);
  float p = kExp2[6];
  for (int i = 5; i >= 0; --i) p = std::fma(p, f, kExp2[i]);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(p) + (std::bit_cast<std::uint32_t>(shifted) << 23);
  return x < kExp2Lowest ? 0.0f : std::bit_cast<float>(bits);
}

double log_exact(double x) {
  auto bits = std::bit_cast<std::uint64_t>(x);
  std::int64_t denormal = 0;
  if (bits < (std::uint64_t{1} << 52)) {
    bits = std::bit_cast<std::uint64_t>(x * 0x1p54);
    denormal = 54;
  }
  const std::int64_t exponent = static_cast<std::int64_t>(bits - kSqrtHalfBits) >> 52;
  const double f = std::bit_cast<double>(bits - (static_cast<std::uint64_t>(exponent) << 52)) - 1.0;
  const auto k = static_cast<double>(exponent - denormal);
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = kLog[kLogTerms - 1];
  for (int i = kLogTerms - 2; i >= 0; --i) p = std::fma(p, z, kLog[i]);
  const double h = (0.5 * f) * f;
  return std::fma(k, kLn2High, f - (h - std::fma(s, h + z * p, k * kLn2Low)));
}

float lane_sum(const float* x, int n) {
  float lanes[16] = {};
  int i = 0;
  for (; i + 16 <= n; i += 16)
    for (int lane = 0; lane < 16; ++lane) lanes[lane] += x[i + lane];
  for (; i < n; ++i) lanes[i % 16] += x[i];
  for (int half = 8; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  return lanes[0];
}

}  // namespace coppice::core
