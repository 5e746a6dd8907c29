#include "draft/drafter.h"

#include <algorithm>
#include <cmath>

namespace coppice::core {

float chance_with_noise(float p, double gumbel, float temperature) {
  if (!(temperature > 0.0f)) return p;
  if (!(p > 0.0f)) return 0.0f;
  if (p >= 1.0f) return 1.0f;
  // Temperature sharpens the odds against all others; exact when there is one other token.
  const double odds_against = std::pow((1.0 - p) / p, 1.0 / temperature);
  return static_cast<float>(std::exp(-std::exp(-std::clamp(gumbel, -30.0, 60.0)) * odds_against));
}

}  // namespace coppice::core
