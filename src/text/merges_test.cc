#include "text/merges.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

namespace coppice::core {
namespace {

struct Rule {
  Token left, right, merged;
};

// The definition, word for word: the lowest rank, the leftmost of it, again and again.
std::vector<Token> by_definition(std::vector<Token> word, const std::vector<Rule>& rules) {
  for (;;) {
    std::size_t best_rule = rules.size(), best_at = 0;
    for (std::size_t i = 0; i + 1 < word.size(); ++i) {
      for (std::size_t r = 0; r < best_rule; ++r) {
        if (rules[r].left == word[i] && rules[r].right == word[i + 1]) {
          best_rule = r;
          best_at = i;
          break;
        }
      }
    }
    if (best_rule == rules.size()) return word;
    word[best_at] = rules[best_rule].merged;
    word.erase(word.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

Merges table_of(const std::vector<Rule>& rules) {
  Merges merges(rules.size());
  for (const Rule& rule : rules) merges.add(rule.left, rule.right, rule.merged);
  return merges;
}

std::vector<Token> apply(const Merges& merges, std::vector<Token> word) {
  std::vector<Token> out;
  merges.apply(word, out);
  return out;
}

TEST(Merges, NothingStaysNothingAndOneStaysOne) {
  const Merges merges = table_of({{1, 1, 2}});
  EXPECT_EQ(apply(merges, {}), std::vector<Token>{});
  EXPECT_EQ(apply(merges, {1}), std::vector<Token>{1});
}

TEST(Merges, TheLowestRankGoesFirstAndTheLeftmostAmongEquals) {
  EXPECT_EQ(apply(table_of({{2, 3, 9}, {1, 2, 8}}), {1, 2, 3}), (std::vector<Token>{1, 9}));
  EXPECT_EQ(apply(table_of({{1, 2, 8}, {2, 3, 9}}), {1, 2, 3}), (std::vector<Token>{8, 3}));
  EXPECT_EQ(apply(table_of({{1, 1, 2}}), {1, 1, 1}), (std::vector<Token>{2, 1}));
}

TEST(Merges, APairAddedTwiceKeepsItsFirstRank) {
  EXPECT_EQ(apply(table_of({{1, 2, 8}, {2, 3, 9}, {1, 2, 7}}), {1, 2, 3}), (std::vector<Token>{8, 3}));
}

TEST(Merges, ShortAndLongWordsFollowTheDefinition) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    // Random rules over a growing alphabet, as training makes them.
    std::vector<Rule> rules;
    Token next = 3;
    for (int i = 0; i < 30; ++i) {
      rules.push_back({static_cast<Token>(random() % static_cast<unsigned>(next)),
                       static_cast<Token>(random() % static_cast<unsigned>(next)), next});
      ++next;
    }
    const Merges merges = table_of(rules);
    for (const std::size_t length : {2u, 3u, 7u, 31u, 32u, 33u, 100u}) {
      std::vector<Token> word(length);
      for (Token& token : word) token = static_cast<Token>(random() % 3);
      EXPECT_EQ(apply(merges, word), by_definition(word, rules)) << "round " << round << " length " << length;
    }
  }
}

TEST(Merges, AWordOfAMillionSymbolsIsNotQuadratic) {
  std::vector<Rule> rules;
  rules.reserve(20);
  for (Token i = 0; i < 20; ++i) rules.push_back({i, i, i + 1});
  const Merges merges = table_of(rules);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Token> out = apply(merges, std::vector<Token>(1u << 20, 0));
  EXPECT_EQ(out, std::vector<Token>{20});
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace coppice::core
