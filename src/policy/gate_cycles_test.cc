#include "policy/gate_cycles.h"

#include <gtest/gtest.h>

#include "model/slim_testing.h"

namespace coppice::core {
namespace {

// '#': a right guess that is certain; '.': a wrong one; '?': right, but unlikely.
Guesses guesses(std::string_view text) {
  Guesses out;
  for (const char c : text) out.push_back({c == '?' ? 0.1f : 0.9f, c != '.'});
  return out;
}

GateRules rules_of(int every, int depth) {
  GateRules rules;
  rules.every = every;
  rules.depth = depth;
  return rules;
}

TEST(GateCycles, AChainTakesRightGuessesAndOneToken) {
  const GateRules rules = rules_of(8, 4);
  const Guesses text = guesses("##.#########");
  const Chain chain = chain_at(text, 0, rules);
  EXPECT_EQ(chain.tokens, 3);
  EXPECT_EQ(chain.passes, 4) << "the draft does not know that its third guess is wrong";
  EXPECT_EQ(chain_at(text, 3, rules).tokens, 5);
  EXPECT_EQ(chain_at(text, 2, rules).tokens, 1);
}

TEST(GateCycles, AnUnlikelyGuessEndsTheChainAndCostsItsPass) {
  const Chain chain = chain_at(guesses("#?######"), 0, rules_of(8, 4));
  EXPECT_EQ(chain.tokens, 2);
  EXPECT_EQ(chain.passes, 2);
}

TEST(GateCycles, NothingIsGuessedBehindTheText) {
  const Guesses text = guesses("####");
  EXPECT_EQ(chain_at(text, 1, rules_of(8, 4)).tokens, 3);
  EXPECT_EQ(chain_at(text, 3, rules_of(8, 4)).passes, 0);
}

TEST(GateCycles, AWindowCountsThePartOfACycleThatLiesInIt) {
  const GuessedText text{{guesses("##.##########")}};
  const GateChoice choice{"half", 0, 0.5f, 0.25};
  const CycleSum sum = window_at(text, 0, choice, rules_of(5, 4));
  EXPECT_DOUBLE_EQ(sum.tokens, 5);
  EXPECT_DOUBLE_EQ(sum.cycles, 1 + 2.0 / 5) << "three tokens, and two of the next cycle's five";
  EXPECT_DOUBLE_EQ(sum.work, (4 + 4 * 2.0 / 5) * 0.25);
}

TEST(GateCycles, AWalkAsksAgainWhenSoManyTokensHavePassed) {
  const GuessedText text{{guesses("............"), guesses("############")}};
  const GateChoice none{"narrow", 0, 0.5f, 0.5}, all{"wide", 1, 1.5f, 1};
  std::vector<std::size_t> asked;
  const CycleSum sum = walk(
      text,
      [&](std::size_t at) -> const GateChoice& {
        asked.push_back(at);
        return at == 0 ? none : all;
      },
      rules_of(3, 4));
  EXPECT_EQ(asked, (std::vector<std::size_t>{0, 3, 8}));
  EXPECT_DOUBLE_EQ(sum.tokens, 12);
  EXPECT_DOUBLE_EQ(sum.cycles, 3 + 2);
  EXPECT_DOUBLE_EQ(sum.work, 3 * 4 * 0.5 + 4 + 3);
  EXPECT_DOUBLE_EQ(sum.accepted(), 12.0 / 5 - 1);
}

TEST(GateCycles, ConstantsAreTakenInTurnAndOnlyTheGoodOnes) {
  const std::vector<CycleSum> constants = {{1, 100, 10}, {1, 95, 20}, {1, 60, 30}};
  EXPECT_DOUBLE_EQ(cycles_of_constants(constants, 10), 100);
  EXPECT_DOUBLE_EQ(cycles_of_constants(constants, 20), 80)
      << "the first and the last in turn beat the second";
  EXPECT_DOUBLE_EQ(cycles_of_constants(constants, 30), 60);
  EXPECT_DOUBLE_EQ(cycles_of_constants(constants, 50), 60);
  EXPECT_DOUBLE_EQ(cycles_of_constants(constants, 5), 100);
}

TEST(GateCycles, ChoicesAreTheExitAndTheWidthsThatSomeAlphaIsNearestTo) {
  ThreadPool pool(1);
  RandomModelOptions shape = testing::slimmable();
  shape.slim.factors = {0.5f, 0.75f, 1.5f};
  const auto model = testing::make_model(shape, pool);
  const GateRules rules;
  const auto choices = gate_choices(*model, rules);
  ASSERT_EQ(choices.size(), 3u);
  EXPECT_EQ(choices[0].name, "exit");
  EXPECT_NEAR(choices[0].alpha, 0.6f, 0.001f);
  EXPECT_EQ(choices[1].name, "0.75");
  EXPECT_EQ(choices[2].name, "1.5");
  EXPECT_EQ(choices[2].cost, 1);
  EXPECT_LT(choices[0].cost, choices[1].cost);
  EXPECT_LT(choices[1].cost, choices[2].cost);
  for (const float alpha : {0.5f, 0.69f, 0.7f, 1.1f, 1.2f, 1.5f}) {
    const int expected = alpha < 0.7f ? 0 : alpha < 1.125f ? 1 : 2;
    EXPECT_EQ(choice_of(*model, rules, choices, alpha), expected) << alpha;
  }
  EXPECT_EQ(all_variants(*model).size(), 4u) << "the narrowest is no choice, but a constant";
}

}  // namespace
}  // namespace coppice::core
