// How cheap drafters turn chances into a query's candidates.
#pragma once

#include <span>

#include "draft/drafter.h"

namespace coppice::core {

inline constexpr int kMostRanked = 32;

// How many continuations to look at: noise lifts unlikely ones, so there are more when the request's
// draws use it.
inline int ranked_for(const Query& query) {
  const bool noisy = query.sampler != nullptr && query.sampler->noisy();
  return noisy ? kMostRanked : query.wanted;
}

// Fills the candidates from distinct tokens with chances in (0, 1]: the best `wanted` by log chance, plus the
// draw's own noise when the request is sampled (the noise stands for log p / T, and statistics of text are of
// the tempered distribution already). Ties: the lower token.
void rank_candidates(Query& query, std::span<const Token> tokens, const float* chances);

}  // namespace coppice::core
