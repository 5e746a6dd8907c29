#include <fmt/core.h>

#include <algorithm>

#include "policy/auto_policy.h"
#include "policy/policy.h"

namespace coppice::core {
namespace {

// The whole budget, every pass: looks at no clock, so that a run is the same every time.
class FixedPolicy : public Policy {
 public:
  void plan(std::span<Decoding> requests) override {
    for (Decoding& request : requests) request.budget = within_reach(request);
  }
};

constexpr PolicyRow kRows[] = {
    {"auto", "as much as pays, by what passes cost and how likely guesses are", true,
     [](const PolicySetup& setup) -> std::unique_ptr<Policy> { return std::make_unique<AutoPolicy>(setup); }},
    {"fixed", "always the whole budget", false,
     [](const PolicySetup&) -> std::unique_ptr<Policy> { return std::make_unique<FixedPolicy>(); }},
};

}  // namespace

Budget within_reach(const Decoding& request) {
  Budget budget = request.limit;
  budget.depth = std::min({budget.depth, request.tokens_left - 1, request.context_left});
  if (budget.depth <= 0) budget.nodes = 0;
  return budget;
}

std::span<const PolicyRow> policy_rows() { return kRows; }

Result<const PolicyRow*> find_policy(std::string_view name) {
  std::string choices;
  for (const PolicyRow& row : kRows) {
    if (row.name == name) return &row;
    choices += fmt::format("{}\"{}\"", choices.empty() ? "" : ", ", row.name);
  }
  return fail(fmt::format("there is no policy \"{}\"; there is {}", name, choices));
}

}  // namespace coppice::core
