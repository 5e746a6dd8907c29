#include <fmt/core.h>

#include <algorithm>

#include "policy/policy.h"

namespace coppice::core {
namespace {

// The whole budget, every pass: looks at no clock, so that a run is the same every time.
class FixedPolicy : public Policy {
 public:
  Budget decide(const PolicyInput& input) override {
    Budget budget = input.limit;
    // n guesses on a path bring up to n + 1 tokens: the draw after the last guess is free.
    budget.depth = std::min({budget.depth, input.tokens_left - 1, input.context_left});
    if (budget.depth <= 0) budget.nodes = 0;
    return budget;
  }
};

template <class P>
std::unique_ptr<Policy> make() {
  return std::make_unique<P>();
}

constexpr PolicyRow kRows[] = {
    {"fixed", "always the whole budget", make<FixedPolicy>},
};

}  // namespace

std::span<const PolicyRow> policy_rows() { return kRows; }

Result<std::unique_ptr<Policy>> make_policy(std::string_view name) {
  for (const PolicyRow& row : kRows) {
    if (row.name == name) return row.make();
  }
  std::string choices;
  for (const PolicyRow& row : kRows)
    choices += fmt::format("{}\"{}\"", choices.empty() ? "" : ", ", row.name);
  return fail(fmt::format("there is no policy \"{}\"; there is {}", name, choices));
}

}  // namespace coppice::core
