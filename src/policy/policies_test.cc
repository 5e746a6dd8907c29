#include <gtest/gtest.h>

#include "policy/policy.h"

namespace coppice::core {
namespace {

Budget planned(std::string_view name, int nodes, int depth, int tokens_left, int context_left) {
  PolicySetup setup;
  setup.costs.points = {{1, 1}};
  auto policy = *choose_policy(name)->make(setup);
  policy->begin(0, 10);
  Decoding request;
  request.limit.nodes = nodes;
  request.limit.depth = depth;
  request.tokens_left = tokens_left;
  request.context_left = context_left;
  request.length = 10;
  policy->plan({&request, 1});
  return request.budget;
}

TEST(FixedPolicy, SpendsTheWholeBudget) {
  const Budget budget = planned("fixed", 8, 16, 100, 1000);
  EXPECT_EQ(budget.nodes, 8);
  EXPECT_EQ(budget.depth, 16);
}

TEST(Policies, NeverGuessPastTheLastTokenOrTheContext) {
  for (const PolicyRow& row : policy_rows()) {
    EXPECT_EQ(planned(row.name, 8, 16, 4, 1000).depth, 3) << row.name;
    EXPECT_EQ(planned(row.name, 8, 16, 100, 2).depth, 2) << row.name;
    EXPECT_EQ(planned(row.name, 8, 16, 1, 1000).nodes, 0) << row.name;
    EXPECT_EQ(planned(row.name, 8, 16, 100, 0).nodes, 0) << row.name;
  }
}

TEST(Policies, AnUnknownNameIsRefusedWithTheChoices) {
  auto policy = choose_policy("fast");
  ASSERT_FALSE(policy);
  EXPECT_NE(policy.error().message.find("\"auto\", \"fixed\""), std::string::npos);
}

}  // namespace
}  // namespace coppice::core
