#include "draft/ranking.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace coppice::core {

void rank_candidates(Query& query, std::span<const Token> tokens, const float* chances) {
  COPPICE_CHECK(tokens.size() <= kMostRanked);
  struct Scored {
    double score;
    Candidate candidate;
  };
  std::array<Scored, kMostRanked> scored;
  const bool noisy = query.sampler != nullptr && query.sampler->noisy();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const float logprob = std::log(std::max(chances[i], 1e-9f));
    const double noise = noisy ? query.sampler->noise(query.state.index(), tokens[i]) : 0.0;
    scored[i] = {logprob + noise, {tokens[i], logprob}};
  }
  query.count = std::min({query.wanted, kMaxCandidates, static_cast<int>(tokens.size())});
  std::partial_sort(scored.begin(), scored.begin() + query.count,
                    scored.begin() + static_cast<std::ptrdiff_t>(tokens.size()),
                    [](const Scored& a, const Scored& b) {
                      return a.score != b.score ? a.score > b.score : a.candidate.token < b.candidate.token;
                    });
  for (int i = 0; i < query.count; ++i) query.candidates[i] = scored[i].candidate;
}

}  // namespace coppice::core
