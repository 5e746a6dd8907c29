// What a mix's drafts made of a prompt and of what was drawn, for policies that compare their perplexity with
// the target's.
#include <algorithm>
#include <array>
#include <cmath>

#include "draft/grower.h"
#include "draft/grower_state.h"

namespace coppice::core {

std::optional<float> Grower::surprise(int sequence, std::span<const Token> committed, int last,
                                      SourceMask drafters) {
  State& s = *state_;
  std::array<Drafter*, 32> asked;
  std::size_t count = 0;
  for (std::size_t d = 0; d < s.drafters.size(); ++d)
    if (s.shapes[d].costly && (drafters >> d & 1) != 0) asked[count++] = s.drafters[d].get();
  std::sort(asked.begin(), asked.begin() + static_cast<std::ptrdiff_t>(count),
            [](const Drafter* a, const Drafter* b) { return a->pass_bytes() < b->pass_bytes(); });
  for (std::size_t i = 0; i < count; ++i)
    if (const auto surprise = asked[i]->surprise(sequence, committed, last)) return surprise;
  return std::nullopt;
}

std::optional<float> Grower::logprob(int sequence, const PathState& at, Token token, SourceMask drafters) {
  State& s = *state_;
  if (at.path.size() >= kMaxTreeDepth) return std::nullopt;
  Budget budget;
  budget.drafters = drafters;
  s.set_query(0, sequence, at, budget, 1.0f);
  for (std::size_t d = 0; d < s.drafters.size(); ++d) {
    if (!s.shapes[d].costly || !s.may_ask(d, s.queries[0]) || !s.drafters[d]->knows(s.queries[0])) continue;
    s.ask_drafter(d, 1);
    const Candidate* said = &s.candidates[d * s.capacity * kMaxCandidates];
    double rest = 1;
    for (int c = 0; c < s.counts[d * s.capacity]; ++c) {
      if (said[c].token == token) return said[c].logprob;
      rest -= std::exp(static_cast<double>(said[c].logprob));
    }
    if (s.counts[d * s.capacity] > 0) return static_cast<float>(std::log(std::max(rest, 1e-6)));
  }
  return std::nullopt;
}

}  // namespace coppice::core
