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
  for (std::size_t d = 0; d < s.panel.drafters.size(); ++d)
    if (s.panel.shapes[d].costly && (drafters >> d & 1) != 0) asked[count++] = s.panel.drafters[d].get();
  std::sort(asked.begin(), asked.begin() + static_cast<std::ptrdiff_t>(count),
            [](const Drafter* a, const Drafter* b) { return a->pass_bytes() < b->pass_bytes(); });
  for (std::size_t i = 0; i < count; ++i)
    if (const auto surprise = asked[i]->surprise(sequence, committed, last)) return surprise;
  return std::nullopt;
}

std::optional<float> Grower::logprob(int sequence, const PathState& at, Token token, SourceMask drafters) {
  State& s = *state_;
  if (at.path.size() >= kMaxTreeDepth) return std::nullopt;
  Asking& asking = s.askings[0];
  Query node;
  node.sequence = sequence;
  node.state = at;
  node.sampler = s.sequences[sequence].sampler;
  node.budget.drafters = drafters;
  asking.set(0, node);
  const Query& query = asking.query(0);
  for (std::size_t d = 0; d < s.panel.drafters.size(); ++d) {
    if (!s.panel.shapes[d].costly || !s.panel.may_ask(d, query) || !s.panel.drafters[d]->knows(query))
      continue;
    asking.ask_one(d, 1);
    const std::span<const Candidate> said = asking.said(d, 0);
    double rest = 1;
    for (const Candidate& candidate : said) {
      if (candidate.token == token) return candidate.logprob;
      rest -= std::exp(static_cast<double>(candidate.logprob));
    }
    if (!said.empty()) return static_cast<float>(std::log(std::max(rest, 1e-6)));
  }
  return std::nullopt;
}

}  // namespace coppice::core
