// What a neural draft said at one node, and the features the mixer gets of it. Shared by drafters that run a
// model.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <span>
#include <string>

#include "base/check.h"
#include "draft/drafter.h"
#include "model/model.h"
#include "sample/sampler.h"

namespace coppice::core {

struct Said {
  bool known = false;
  bool has_q = false;  // the distribution its guesses may be drawn from was kept
  int count = 0;
  float best_logprob = 0;
  Ranked top[kMaxCandidates];  // best score first
};

inline constexpr int kSaidFeatures = 7;

// Ranks a row's logits for the request. `q`: [vocab], filled where it is not null and there is a
// distribution.
inline void listen(Said& said, const Sampler& sampler, const LogitRow& logits, const PathState& state,
                   Sampler::Scratch& scratch, float* q) {
  said.count = sampler.rank(logits, state, scratch, {said.top, kMaxCandidates});
  said.best_logprob = -1e9f;
  for (int c = 0; c < said.count; ++c) said.best_logprob = std::max(said.best_logprob, said.top[c].logprob);
  said.known = true;
  said.has_q = q != nullptr && sampler.distribution(logits, state, scratch).has_value();
  if (said.has_q) std::copy(scratch.probabilities.begin(), scratch.probabilities.end(), q);
}

inline void answer(const Said& said, Query& query) {
  query.count = std::min({query.wanted, said.count, kMaxCandidates});
  for (int c = 0; c < query.count; ++c) query.candidates[c] = {said.top[c].token, said.top[c].logprob};
}

// [spoke, its chance (logit), gap to its best, is its best, how sure it is of its best, rank, not listed].
// All free of noise: the mixture adds that. `best_logprob`: of all it listed.
inline void describe(std::span<const Ranked> listed, float best_logprob, std::span<const Token> tokens,
                     float* out, int stride) {
  const auto clamped_logit = [](float logprob) {
    const float p = std::clamp(std::exp(logprob), 1e-4f, 1.0f - 1e-4f);
    return std::log(p / (1.0f - p));
  };
  const float sure = 0.25f * clamped_logit(best_logprob);
  const std::size_t count = listed.size();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    float* f = out + i * static_cast<std::size_t>(stride);
    f[0] = 1.0f;
    f[4] = sure;
    std::size_t c = 0;
    while (c < count && listed[c].token != tokens[i]) ++c;
    if (c == count) {
      f[1] = -2.5f;
      f[2] = -2.0f;
      f[6] = 1.0f;
      continue;
    }
    const float gap = listed[c].logprob - best_logprob;
    f[1] = 0.25f * clamped_logit(listed[c].logprob);
    f[2] = 0.25f * std::max(gap, -8.0f);
    f[3] = gap == 0.0f ? 1.0f : 0.0f;
    f[5] = 1.0f / static_cast<float>(1 + c);
  }
}

inline void describe(const Said& said, std::span<const Token> tokens, float* out, int stride) {
  const std::span<const Ranked> listed(said.top, static_cast<std::size_t>(said.count));
  describe(listed, said.best_logprob, tokens, out, stride);
}

// Distributions [vocab] for every node there can be. Memory that is never written is never used: what counts
// is what trees need.
inline Status make_room_for_q(std::unique_ptr<float[]>& q, std::size_t vocab, const std::string& drafter) {
  const std::size_t floats = kMaxTreeNodes * vocab;
  q.reset(new (std::nothrow) float[floats]);
  if (q) return {};
  return fail("no memory for the distributions of " + drafter + " that acceptance = rejection needs: " +
              std::to_string(floats * sizeof(float) >> 20) + " MB; use acceptance = keyed");
}

// What a context ran since this was asked last.
template <class AnyContext>
PassCost take_cost_of(AnyContext& context) {
  const PassStats& stats = context.stats();
  const PassCost cost{stats.passes, stats.rows, stats.weight_bytes + stats.kv_bytes, stats.seconds};
  context.reset_stats();
  return cost;
}

}  // namespace coppice::core
