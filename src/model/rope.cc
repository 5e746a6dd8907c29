// Sine and cosine: x = k * pi/2 + r with pi/2 split into 33 + 33 + 53 bits, so that k times the first two
// parts is exact for k < 2^20; then the Taylor series on |r| <= pi/4, whose first neglected term is below
// 1e-17. Horner from the smallest term, no fused operations (the project is built with -ffp-contract=off).
#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/kernels.h"

namespace coppice::core {
namespace {

constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
constexpr double kHalfPi1 = 0x1.921fb544p+0;        // 33 bits
constexpr double kHalfPi2 = 0x1.0b4611a6p-34;       // 33 bits
constexpr double kHalfPi3 = 0x1.3198a2e037073p-69;  // the rest
constexpr double kHalfPi = 0x1.921fb54442d18p+0;
constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer, ties to even

double round_to_integer(double x) { return (x + kRound) - kRound; }

struct InverseFactorials {
  double of[24] = {};
  constexpr InverseFactorials() {
    double factorial = 1;  // exact up to 22!
    for (int n = 0; n < 24; ++n) {
      if (n > 0) factorial *= n;
      of[n] = 1.0 / factorial;
    }
  }
};
constexpr InverseFactorials kInverseFactorials;

// sum over j = 0 .. 9 of (-1)^j z^j / (first + 2j)!
double alternating(double z, int first) {
  double sum = 0;
  for (int j = 9; j >= 0; --j) sum = kInverseFactorials.of[first + 2 * j] - z * sum;
  return sum;
}

double sin_near_zero(double r) { return r * alternating(r * r, 1); }
double cos_near_zero(double r) { return alternating(r * r, 0); }

// sin(x + quarter * pi/2)
double sine(double x, int quarter) {
  const double k = round_to_integer(x * kTwoOverPi);
  const double r = ((x - k * kHalfPi1) - k * kHalfPi2) - k * kHalfPi3;
  switch ((static_cast<std::int64_t>(k) + quarter) & 3) {
    case 0:
      return sin_near_zero(r);
    case 1:
      return cos_near_zero(r);
    case 2:
      return -sin_near_zero(r);
    default:
      return -cos_near_zero(r);
  }
}

}  // namespace

double sin_exact(double x) { return sine(x, 0); }
double cos_exact(double x) { return sine(x, 1); }

double exp2_exact64(double x) {
  const double k = round_to_integer(x);
  const double t = (x - k) * kLn2;  // |t| <= 0.35: the series' first neglected term is below 1e-19
  double sum = 0;
  for (int j = 14; j >= 0; --j) sum = kInverseFactorials.of[j] + t * sum;
  return std::ldexp(sum, static_cast<int>(k));
}

void rope_frequencies(double base, int dims, double* frequencies) {
  const double log2_base = log_exact(base) * kLog2E;
  for (int i = 0; i < dims / 2; ++i) frequencies[i] = exp2_exact64(-(2.0 * i / dims) * log2_base);
}

namespace {

// The pair, as a real number, whose wave turns so many times in the original context.
double pair_of_turns(double turns, const RopeScaling& scaling, double base, int dims) {
  constexpr double kTwoPi = 4 * kHalfPi;
  return dims * log_exact(scaling.original_context / (turns * kTwoPi)) / (2 * log_exact(base));
}

}  // namespace

void scale_frequencies(const RopeScaling& scaling, double base, int dims, double* frequencies) {
  using Kind = RopeScaling::Kind;
  if (scaling.kind == Kind::linear)
    for (int i = 0; i < dims / 2; ++i) frequencies[i] /= scaling.factor;
  if (scaling.kind != Kind::yarn) return;
  const double low = std::max(0.0, std::floor(pair_of_turns(scaling.beta_fast, scaling, base, dims)));
  const double high = std::min(dims - 1.0, std::ceil(pair_of_turns(scaling.beta_slow, scaling, base, dims)));
  for (int i = 0; i < dims / 2; ++i) {
    const double ramp = std::clamp((i - low) / std::max(0.001, high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / scaling.factor * ramp + frequencies[i] * (1 - ramp);
  }
}

void rope_row(int position, const double* frequencies, int dims, float* cos_sin, RopePairs pairs,
              double magnitude) {
  const int half = dims / 2;
  const bool halves = pairs == RopePairs::halves;
  for (int i = 0; i < half; ++i) {
    const double angle = position * frequencies[i];
    cos_sin[halves ? i : 2 * i] = static_cast<float>(magnitude * cos_exact(angle));
    cos_sin[halves ? half + i : 2 * i + 1] = static_cast<float>(magnitude * sin_exact(angle));
  }
}

}  // namespace coppice::core
