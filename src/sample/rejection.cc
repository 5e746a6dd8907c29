#include "sample/rejection.h"

#include <algorithm>

#include "base/check.h"

namespace coppice::core {
namespace {

// Separate keys for separate uses (numerics 5); 0 is the keyed draw.
enum Purpose : std::uint32_t { kDraft = 1, kAccept = 2, kResidual = 3, kBonus = 4 };

double sum(std::span<const float> weights) {
  double total = 0;
  for (const float w : weights) total += w;
  return total;
}

// The token whose interval of the cumulated weights holds u * total; ids ascending. -1: all weights are zero.
int pick(std::span<const float> weights, double total, double u) {
  double left = u * total;
  int last = -1;
  for (std::size_t id = 0; id < weights.size(); ++id) {
    if (weights[id] <= 0) continue;
    last = static_cast<int>(id);
    if (left < weights[id]) break;
    left -= weights[id];
  }
  return last;
}

void divide(std::span<float> weights, double total) {
  for (float& w : weights) w = static_cast<float>(w / total);
}

}  // namespace

Rejection::Rejection(const NoiseKey& key, int vocab) : key_(key), scratch_(static_cast<std::size_t>(vocab)) {}

int Rejection::draw_siblings(std::span<const float> q, int count, std::uint64_t& number, Token* out) {
  COPPICE_CHECK(q.size() == scratch_.size());
  std::copy(q.begin(), q.end(), scratch_.begin());
  int drawn = 0;
  while (drawn < count) {
    const double total = sum(scratch_);  // what is left is renormalised after each draw
    if (total <= 0) break;
    const int token = pick(scratch_, total, uniform(key_, number++, kDraft));
    scratch_[token] = 0;
    out[drawn++] = token;
  }
  return drawn;
}

Verdict Rejection::decide(std::span<float> p, const Siblings& siblings, std::uint64_t& number) {
  COPPICE_CHECK(p.size() == scratch_.size() && (siblings.q.empty() || siblings.q.size() == p.size()));
  std::copy(siblings.q.begin(), siblings.q.end(), scratch_.begin());
  const int count = static_cast<int>(siblings.tokens.size());
  for (int child = 0; child < count; ++child) {
    const Token token = siblings.tokens[child];
    const double q_total = siblings.q.empty() ? 0.0 : sum(scratch_);
    // A deterministic guess has all of q's mass, and so has a token that q cannot have drawn.
    const bool point_mass = q_total <= 0 || scratch_[token] <= 0;
    const double q = point_mass ? 1.0 : scratch_[token] / q_total;
    // u < p/q, without dividing; u is below 1, so that p = q always accepts
    if (uniform(key_, number++, kAccept) * q < p[token]) return {token, child};
    if (point_mass)
      p[token] = 0;
    else
      for (std::size_t id = 0; id < p.size(); ++id)
        p[id] = static_cast<float>(std::max(p[id] - scratch_[id] / q_total, 0.0));
    const double residual = sum(p);
    if (residual <= 0) return {token, child};  // p and q are the same but for rounding
    divide(p, residual);
    if (!siblings.q.empty()) scratch_[token] = 0;
  }
  const double u = uniform(key_, number++, count == 0 ? kBonus : kResidual);
  return {pick(p, sum(p), u), -1};
}

}  // namespace coppice::core
