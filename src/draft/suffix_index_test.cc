#include "draft/suffix_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace coppice::core {
namespace {

// What suffix_index.h says, with maps.
class Plain {
 public:
  void append(Token token) {
    for (const int length : kSuffixLengths) {
      if (ids_.size() < static_cast<std::size_t>(length)) continue;
      auto& weights = seen_[std::vector<Token>(ids_.end() - length, ids_.end())];
      for (auto& [t, w] : weights) w *= 0.8;
      weights[token] += 1;
    }
    ids_.push_back(token);
  }
  std::map<Token, double> weights(std::vector<Token> path, int length) const {
    path.insert(path.begin(), ids_.begin(), ids_.end());
    if (path.size() < static_cast<std::size_t>(length)) return {};
    const auto found = seen_.find(std::vector<Token>(path.end() - length, path.end()));
    return found == seen_.end() ? std::map<Token, double>{} : found->second;
  }

 private:
  std::vector<Token> ids_;
  std::map<std::vector<Token>, std::map<Token, double>> seen_;
};

void expect_same(const Plain& plain, const SuffixIndex& index, const std::vector<Token>& path) {
  SuffixContext got[kSuffixOrders];
  index.contexts(path, got);
  for (int o = 0; o < kSuffixOrders; ++o) {
    const auto want = plain.weights(path, kSuffixLengths[o]);
    double total = 0;
    std::vector<double> best;
    for (const auto& [token, weight] : want) {
      total += weight;
      best.push_back(weight);
    }
    std::sort(best.rbegin(), best.rend());
    ASSERT_NEAR(got[o].total, total, 1e-4);
    ASSERT_EQ(got[o].count, std::min<int>(kSuffixCandidates, static_cast<int>(want.size())));
    for (int i = 0; i < got[o].count; ++i) {
      ASSERT_TRUE(want.contains(got[o].token[i]));
      ASSERT_NEAR(got[o].weight[i], want.at(got[o].token[i]), 1e-4);
      ASSERT_NEAR(got[o].weight[i], best[i], 1e-4);
    }
  }
}

TEST(SuffixIndex, WeighsContinuationsAsCountingWithMapsDoes) {
  std::mt19937 random(7);
  for (const int alphabet : {2, 5, 40}) {
    Plain plain;
    SuffixIndex index(600);
    for (int i = 0; i < 600; ++i) {
      const Token token = static_cast<Token>(random() % alphabet);
      plain.append(token);
      index.append(token);
      std::vector<Token> path;
      for (unsigned d = random() % 4; d > 0; --d) path.push_back(static_cast<Token>(random() % alphabet));
      expect_same(plain, index, path);
    }
  }
}

TEST(SuffixIndex, FindsLongRepeats) {
  SuffixIndex index(100);
  for (int round = 0; round < 2; ++round)
    for (Token t = 0; t < 20; ++t) index.append(t);
  SuffixContext got[kSuffixOrders];
  index.contexts({}, got);
  for (const SuffixContext& context : got) {
    ASSERT_EQ(context.count, 1);
    EXPECT_EQ(context.token[0], 0);
  }
}

TEST(SuffixIndex, KnowsWhatFollowedTheLongestMatchWhenItStoodThereLast) {
  SuffixIndex index(100);
  SuffixContext got[kSuffixOrders];
  EXPECT_EQ(index.contexts({}, got).length, 0);
  for (const Token t : {1, 2, 3, 7, 9, 2, 3, 8, 1, 2, 3}) index.append(t);
  SuffixMatch match = index.contexts({}, got);
  EXPECT_EQ(match.token, 7);
  EXPECT_EQ(match.length, 3);
  const Token path[] = {5, 2, 3};
  match = index.contexts(path, got);  // two tokens match in three places: the last one counts
  EXPECT_EQ(match.token, 8);
  EXPECT_EQ(match.length, 2);
  for (Token t = 10; t < 60; ++t) index.append(t);
  std::vector<Token> again;
  for (Token t = 11; t < 51; ++t) again.push_back(t);
  match = index.contexts(std::span(again).first(5), got);
  EXPECT_EQ(match.token, 16);
  EXPECT_EQ(match.length, 5);
  EXPECT_EQ(index.contexts(again, got).length, kLongestMatch);
}

TEST(SuffixIndex, CountsTheSightingsOfATokenByItself) {
  SuffixIndex index(100);
  for (const Token t : {1, 2, 1, 3}) index.append(t);
  EXPECT_EQ(index.sightings(1).count, 2);
  EXPECT_EQ(index.sightings(1).age, 2);
  EXPECT_EQ(index.sightings(3).age, 1);
  EXPECT_EQ(index.sightings(4).count, 0);
  index.clear();
  EXPECT_EQ(index.sightings(1).count, 0);
}

TEST(SuffixIndex, IgnoresWhatComesAfterItsLimitButKnowsTheNewestTokens) {
  SuffixIndex index(3);
  for (const Token t : {5, 6, 7}) index.append(t);
  for (const Token t : {9, 9, 5}) index.append(t);
  SuffixContext got[kSuffixOrders];
  index.contexts({}, got);
  ASSERT_EQ(got[0].count, 1);
  EXPECT_EQ(got[0].token[0], 6);
  const Token nine[] = {9};
  index.contexts(nine, got);
  EXPECT_EQ(got[0].count, 0);
}

TEST(SuffixIndex, IsEmptyAfterClear) {
  SuffixIndex index(10);
  for (const Token t : {1, 2, 1}) index.append(t);
  index.clear();
  SuffixContext got[kSuffixOrders];
  index.append(1);
  index.contexts({}, got);
  EXPECT_EQ(got[0].count, 0);
}

}  // namespace
}  // namespace coppice::core
