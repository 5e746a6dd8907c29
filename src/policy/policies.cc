#include <fmt/core.h>

#include <algorithm>

#include "base/check.h"
#include "policy/adaptive_policy.h"
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

Status no_options(const DrafterNode& expression, bool) {
  if (expression.files.empty() && expression.inner.empty() && expression.options.empty()) return {};
  return fail(fmt::format("policy `{0}` takes no options; write {0}", expression.name));
}

constexpr PolicyRow kRows[] = {
    {"auto", "as much as pays, by what passes cost and how likely guesses are", true, no_options,
     [](const DrafterNode&, const PolicySetup& setup) -> Result<std::unique_ptr<Policy>> {
       return std::make_unique<AutoPolicy>(setup);
     }},
    {"fixed", "always the whole budget", false, no_options,
     [](const DrafterNode&, const PolicySetup&) -> Result<std::unique_ptr<Policy>> {
       return std::make_unique<FixedPolicy>();
     }},
    {"adaptive", "by rules of confidence; the same as adaptive-paper", false, check_adaptive, make_adaptive},
    {"adaptive-paper", "by rules of confidence, with the numbers of the paper", false, check_adaptive,
     make_adaptive},
    {"adaptive-fitted", "the same, with numbers fitted for the draft or for small ones", false,
     check_adaptive, make_adaptive},
};

}  // namespace

Budget within_reach(const Decoding& request) {
  Budget budget = request.limit;
  budget.depth = std::min({budget.depth, request.tokens_left - 1, request.context_left});
  if (budget.depth <= 0) budget.nodes = 0;
  return budget;
}

std::span<const PolicyRow> policy_rows() { return kRows; }

Result<ChosenPolicy> choose_policy(std::string_view text) {
  COPPICE_TRY(DrafterNode expression, parse_call(text, "policy"));
  std::string choices;
  for (const PolicyRow& row : kRows) {
    choices += fmt::format("{}\"{}\"", choices.empty() ? "" : ", ", row.name);
    if (row.name != expression.name) continue;
    COPPICE_TRY_STATUS(row.check(expression, false));
    return ChosenPolicy{&row, std::move(expression)};
  }
  return fail(fmt::format("there is no policy \"{}\"; there is {}", expression.name, choices));
}

}  // namespace coppice::core
