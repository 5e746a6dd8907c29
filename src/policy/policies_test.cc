#include <gtest/gtest.h>

#include "policy/policy.h"

namespace coppice::core {
namespace {

PolicyInput input(int nodes, int depth, int tokens_left, int context_left) {
  PolicyInput in;
  in.limit.nodes = nodes;
  in.limit.depth = depth;
  in.tokens_left = tokens_left;
  in.context_left = context_left;
  return in;
}

TEST(FixedPolicy, SpendsTheWholeBudget) {
  auto policy = make_policy("fixed");
  ASSERT_TRUE(policy);
  Budget budget = (*policy)->decide(input(8, 16, 100, 1000));
  EXPECT_EQ(budget.nodes, 8);
  EXPECT_EQ(budget.depth, 16);
}

TEST(FixedPolicy, NeverGuessesPastTheLastTokenOrTheContext) {
  auto policy = make_policy("fixed");
  EXPECT_EQ((*policy)->decide(input(8, 16, 4, 1000)).depth, 3);
  EXPECT_EQ((*policy)->decide(input(8, 16, 100, 2)).depth, 2);
  EXPECT_EQ((*policy)->decide(input(8, 16, 1, 1000)).nodes, 0);
  EXPECT_EQ((*policy)->decide(input(8, 16, 100, 0)).nodes, 0);
}

TEST(Policies, AnUnknownNameIsRefusedWithTheChoices) {
  auto policy = make_policy("fast");
  ASSERT_FALSE(policy);
  EXPECT_NE(policy.error().message.find("\"fixed\""), std::string::npos);
}

}  // namespace
}  // namespace coppice::core
