// For this room's tests: random logits without libm, and the chi-squared test.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace coppice::core {

// splitmix64: the same numbers everywhere.
class TestRandom {
 public:
  explicit TestRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  float unit() { return static_cast<float>(next() >> 40) * 0x1p-24f; }

 private:
  std::uint64_t state_;
};

// A peak and a broad floor, as a language model's logits have; sums of exact values, so equal everywhere.
inline std::vector<float> random_logits(int vocab, std::uint64_t seed) {
  TestRandom random(seed);
  std::vector<float> logits(vocab);
  for (float& x : logits) x = (random.unit() + random.unit() + random.unit() + random.unit() - 2) * 6;
  for (int i = 0; i < 8; ++i) logits[random.next() % vocab] += 8;
  return logits;
}

// The chance that a chi-squared variable of `freedom` degrees is at least `x`: the regularised incomplete
// gamma function Q(freedom / 2, x / 2), by its series below a + 1 and its continued fraction (Lentz) above.
inline double chi_squared_tail(double x, int freedom) {
  const double a = freedom / 2.0, z = x / 2.0;
  if (z <= 0) return 1;
  const double front = std::exp(a * std::log(z) - z - std::lgamma(a));
  if (z < a + 1) {
    double term = 1 / a, total = term;
    for (int n = 1; n < 10000 && term > total * 1e-16; ++n) total += term *= z / (a + n);
    return 1 - front * total;
  }
  double b = z + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int n = 1; n < 10000; ++n) {
    const double an = -n * (n - a);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    h *= d * c;
    if (std::fabs(d * c - 1) < 1e-15) break;
  }
  return front * h;
}

// p-value of `counts` against `chances` (they sum to 1). Cells of chance 0 must be empty: else 0.
inline double chi_squared_p(std::span<const std::int64_t> counts, std::span<const double> chances) {
  std::int64_t total = 0;
  for (const std::int64_t n : counts) total += n;
  double statistic = 0;
  int cells = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (chances[i] <= 0) {
      if (counts[i] > 0) return 0;
      continue;
    }
    const double expected = chances[i] * static_cast<double>(total);
    statistic +=
        (static_cast<double>(counts[i]) - expected) * (static_cast<double>(counts[i]) - expected) / expected;
    ++cells;
  }
  return chi_squared_tail(statistic, cells - 1);
}

}  // namespace coppice::core
