#include "policy/threshold.h"

#include <gtest/gtest.h>

#include <vector>

namespace coppice::core {
namespace {

using Cases = std::vector<ThresholdCase>;

TEST(Threshold, LiesBetweenThoseForWhomOneIsBetterAndTheOthers) {
  const Cases cases = {{0.2, 1, 2}, {0.3, 1, 3}, {0.5, 2, 1}, {0.9, 3, 1}};
  EXPECT_DOUBLE_EQ(fit_threshold(cases), 0.4);
}

TEST(Threshold, AnExpensiveErrorOutweighsManyCheapOnes) {
  const Cases cases = {{0.2, 1, 1.1}, {0.3, 1, 1.1}, {0.25, 9, 1}, {0.6, 2, 1}};
  EXPECT_DOUBLE_EQ(fit_threshold(cases), 0.225) << "one is decided wrongly at .1, not one at 8";
}

TEST(Threshold, OneChoiceForAllIsPossible) {
  EXPECT_DOUBLE_EQ(fit_threshold(Cases{{0.2, 2, 1}, {0.7, 2, 1}}), 0);
  const double never = fit_threshold(Cases{{0.2, 1, 2}, {0.7, 1, 2}});
  EXPECT_GT(never, 0.7);
  EXPECT_LT(never, 0.7003);
}

TEST(Threshold, OfEquallyGoodOnesTheLeast) {
  EXPECT_DOUBLE_EQ(fit_threshold(Cases{{0.4, 1, 1}, {0.6, 1, 1}}), 0);
  EXPECT_DOUBLE_EQ(fit_threshold(Cases{}), 0);
}

TEST(Threshold, IsAWholeNumberOfStepsAndStillBetweenItsNeighbours) {
  const double threshold = fit_threshold(Cases{{0.33331, 1, 2}, {0.33349, 2, 1}});
  EXPECT_GT(threshold, 0.33331);
  EXPECT_LE(threshold, 0.33349);
  EXPECT_NEAR(threshold * 1e4, 3334, 1e-9);
}

TEST(Threshold, WhatIsToBeExpectedOfOthersLeavesEachCaseOut) {
  const Cases two = {{0.2, 1, 3}, {0.5, 2, 1}};
  EXPECT_DOUBLE_EQ(two[0].cost(fit_threshold(two)) + two[1].cost(fit_threshold(two)), 2);
  EXPECT_DOUBLE_EQ(left_out_cost(two), 3 + 1) << "of the second alone nobody learns to go below";
  EXPECT_DOUBLE_EQ(left_out_cost(Cases{two[0], two[0], two[1], two[1]}), 1 + 1 + 1 + 1);
}

}  // namespace
}  // namespace coppice::core
