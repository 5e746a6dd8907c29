// The rules, one by one, in a world made for it: what the draft is sure of, and what the target takes, is
// decided here.
#include "policy/adaptive_policy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/random_model.h"
#include "model/testing.h"

namespace coppice::core {
namespace {

constexpr int kVocab = 49152;

// A gate's world needs a target; the embedding of token 7 is all it is asked for.
const Model& target() {
  static ThreadPool pool(1);
  static const auto bytes = *random_model({});
  static const auto model = *testing::load_bytes(bytes, pool);
  return *model;
}

PolicySetup setup_of(int requests, std::vector<CostlyDrafter> drafts) {
  PolicySetup setup;
  setup.requests = requests;
  setup.drafts = std::move(drafts);
  setup.vocab = kVocab;
  setup.target = &target();
  return setup;
}

struct World {
  explicit World(const std::string& options = "", int requests = 1,
                 std::vector<CostlyDrafter> drafts = {{1, 0.1, true}}, std::optional<Gate> gate = {})
      : policy(*read_adaptive_options(*parse_call("adaptive(" + options + ")", "policy")),
               setup_of(requests, std::move(drafts)), std::move(gate)),
        trees(static_cast<std::size_t>(requests)),
        drawn(trees.size()),
        logs(trees.size()),
        decoding(trees.size()) {
    for (std::size_t r = 0; r < trees.size(); ++r) {
      logs[r].counts = &counts;
      logs[r].recent.reserve(DecisionLog::kMost);
      policy.begin(static_cast<int>(r), 100);
    }
  }

  void plan(std::optional<float> surprise = std::nullopt) {
    for (std::size_t r = 0; r < decoding.size(); ++r) {
      decoding[r] = {};
      decoding[r].slot = static_cast<int>(r);
      decoding[r].limit.nodes = 64;
      decoding[r].tokens_left = decoding[r].context_left = 1000;
      decoding[r].by_value = by_value;
      decoding[r].tree = &trees[r];
      decoding[r].first = passes == 0;
      decoding[r].surprise = surprise;
      decoding[r].log = &logs[r];
      if (with_state) decoding[r].state = state;
      trees[r].reset(7);
      logs[r].recent.clear();
    }
    policy.plan(decoding);
  }

  // A chain of guesses of this chance each, as far as the budget goes.
  void grow(std::size_t r, float chance) {
    const Budget& budget = decoding[r].budget;
    float value = 1;
    for (int n = 0; n < std::min(budget.nodes, budget.depth) && chance >= budget.least_chance; ++n)
      trees[r].add(n, 1, chance, value *= chance, 1);
  }

  // The target takes the first `taken` links, or as many as there are.
  void finish(std::size_t r, int taken) {
    const int there = std::min(taken, trees[r].size() - 1);
    drawn[r].assign(static_cast<std::size_t>(there), 1);
    drawn[r].push_back(2);
    decoding[r].drawn = drawn[r];
    tokens += drawn[r].size();
  }

  // A pass in which everybody guesses chains of `chance` and `taken` of them are right; returns the guesses
  // of the first.
  int pass(float chance, int taken, std::vector<TokenChance> chances = {}) {
    plan(3.0f);
    for (std::size_t r = 0; r < trees.size(); ++r)
      if (decoding[r].budget.nodes > 0) grow(r, chance);
    policy.trim(decoding, 0);
    const int guesses = trees[0].size() - 1;
    for (std::size_t r = 0; r < trees.size(); ++r) {
      finish(r, taken);
      if (decoding[r].budget.nodes > 0) decoding[r].chances = chances;
    }
    policy.learn(decoding, {});
    ++passes;
    return guesses;
  }

  std::uint64_t count(Rule rule) const { return counts[static_cast<std::size_t>(rule)]; }
  // The last decision of a rule in this pass.
  const Decision* said(Rule rule) const {
    const Decision* last = nullptr;
    for (const Decision& decision : logs[0].recent)
      if (decision.rule == rule) last = &decision;
    return last;
  }

  AdaptivePolicy policy;
  std::vector<TokenTree> trees;
  std::vector<std::vector<Token>> drawn;
  std::vector<DecisionLog> logs;
  std::vector<Decoding> decoding;
  std::array<std::uint64_t, kRules> counts{};
  bool by_value = true;
  std::vector<float> state = std::vector<float>(static_cast<std::size_t>(target().config().hidden));
  bool with_state = false;
  int passes = 0;
  std::size_t tokens = 0;
};

// ln of a chance, in nats below 0, for so many tokens.
std::vector<TokenChance> chances(double target_perplexity, double draft_perplexity, int count = 32) {
  const TokenChance chance{static_cast<float>(-std::log(target_perplexity)),
                           static_cast<float>(-std::log(draft_perplexity))};
  return std::vector<TokenChance>(static_cast<std::size_t>(count), chance);
}

// --- the perplexity analyser ---

TEST(AdaptivePolicy, APromptTheDraftIsSureOfIsDraftedForAndAnotherIsNot) {
  const auto surprise_of = [](double confidence) {
    return static_cast<float>((1 - confidence) * std::log(static_cast<double>(kVocab)));
  };
  for (const auto& [options, tau] : {std::pair("", 0.7), std::pair("task=maths", 0.6),
                                     std::pair("task=creative", 0.8), std::pair("tau=0.2", 0.2)}) {
    World sure(options), unsure(options);
    sure.plan(surprise_of(tau + 0.01));
    unsure.plan(surprise_of(tau - 0.01));
    EXPECT_GT(sure.decoding[0].budget.nodes, 0) << options;
    EXPECT_EQ(unsure.decoding[0].budget.nodes, 0) << options;
    ASSERT_NE(unsure.said(Rule::target_only), nullptr);
    EXPECT_NEAR(unsure.said(Rule::target_only)->number, tau - 0.01, 1e-4);
    EXPECT_EQ(unsure.said(Rule::target_only)->threshold, tau);
    EXPECT_EQ(sure.count(Rule::draft_led), 1u);
  }
}

TEST(AdaptivePolicy, AThresholdOfOneIsNeverReachedAndNoPromptIsReadForIt) {
  World world("tau=1");
  EXPECT_EQ(world.policy.wants().surprise, 0);
  world.plan();
  EXPECT_EQ(world.decoding[0].budget.nodes, 0);
  EXPECT_EQ(world.count(Rule::target_only), 1u);
  World nobody("tau=1", 1, {});
  nobody.plan();
  EXPECT_GT(nobody.decoding[0].budget.nodes, 0) << "cheap drafters are asked nothing and guess as ever";
}

TEST(AdaptivePolicy, TargetOnlyIsForTheWholeAnswer) {
  World world;
  world.plan(9.0f);
  for (int i = 0; i < 100; ++i) {
    world.passes = 1;
    EXPECT_EQ(world.pass(0.9f, 8), 0);
  }
  EXPECT_EQ(world.count(Rule::target_only), 1u);
  EXPECT_EQ(world.count(Rule::probe), 0u);
}

TEST(AdaptivePolicy, WhereNoDraftCanSayItDrafts) {
  World world("", 1, {});
  world.plan();
  EXPECT_GT(world.decoding[0].budget.nodes, 0);
  EXPECT_EQ(world.count(Rule::analyser_silent), 1u);
  EXPECT_EQ(world.policy.wants().surprise, 0);
  EXPECT_FALSE(world.policy.wants().chances);
  EXPECT_EQ(World().policy.wants().surprise, 128);
}

// --- adaptive draft selection ---

std::optional<Gate> gate_of(float alpha) { return Gate::constant(alpha, target().config().hidden, 1); }

TEST(AdaptivePolicy, TheGateIsAskedEveryEightTokensAndItsAlphaIsTheDraftsCapacity) {
  World world("stop=off, window=static, again=off", 1, {{1, 0.1, true}}, gate_of(1.25f));
  world.with_state = true;
  EXPECT_EQ(world.policy.wants().state_layer, 1);
  for (const int asked : {1, 1, 2, 2, 3}) {  // four tokens a pass
    world.pass(0.9f, 3);
    EXPECT_NEAR(world.decoding[0].budget.capacity, 1.25f, 1e-3);
    EXPECT_EQ(world.count(Rule::gate), static_cast<unsigned>(asked));
  }
  World ungated;
  EXPECT_EQ(ungated.policy.wants().state_layer, -1);
}

TEST(AdaptivePolicy, TheGateIsAskedAtOnceWhenAcceptanceFalls) {
  World world("stop=off, window=static, every=1000, monitor=8", 1, {{1, 0.1, true}}, gate_of(1.0f));
  world.with_state = true;
  for (int i = 0; i < 4; ++i) world.pass(0.9f, 7);
  EXPECT_EQ(world.count(Rule::gate), 1u);
  world.pass(0.9f, 6);  // 6 of the last 8
  world.pass(0.9f, 6);
  EXPECT_EQ(world.count(Rule::gate), 2u);
  world.pass(0.9f, 6);
  EXPECT_EQ(world.count(Rule::gate), 2u) << "it has not fallen again";
}

TEST(AdaptivePolicy, ANarrowDraftStopsAtItsExitAndAnUpgradeLiftsIt) {
  World world("stop=off", 1, {{1, 0.1, true}}, gate_of(0.6f));
  world.with_state = true;
  world.pass(0.9f, 8);
  EXPECT_TRUE(world.decoding[0].budget.exit);
  EXPECT_EQ(world.count(Rule::exit), 1u);
  world.pass(0.9f, 8, chances(2, 2 * 1.3));
  EXPECT_TRUE(world.decoding[0].budget.exit);
  world.pass(0.9f, 8);
  EXPECT_FALSE(world.decoding[0].budget.exit);
  EXPECT_NEAR(world.decoding[0].budget.capacity, 0.85f, 1e-3);
  World without_states("", 1, {{1, 0.1, true}}, gate_of(0.6f));
  without_states.pass(0.9f, 8);
  EXPECT_EQ(without_states.decoding[0].budget.capacity, 1.0f);
}

// --- batched verification ---

TEST(AdaptivePolicy, APassTakesSixteenGuessesOfAllRequestsTogether) {
  for (const auto& [options, most] :
       {std::pair("", 16), std::pair("batch=8", 8), std::pair("batch=32", 32)}) {
    World world(options, 6);
    world.pass(0.95f, 0);
    int guesses = 0;
    for (const TokenTree& tree : world.trees) guesses += tree.size() - 1;
    EXPECT_EQ(guesses, most);
    EXPECT_EQ(world.count(Rule::left_out), 6 * 8u - static_cast<unsigned>(most));
  }
  World all("batch=off", 6);
  EXPECT_EQ(all.pass(0.95f, 0), 8) << "its whole window";
}

TEST(AdaptivePolicy, UnlikelyGuessesAreNotGrown) {
  World world, brave("reject=off");
  world.plan(3.0f);
  EXPECT_EQ(world.decoding[0].budget.least_chance, 0.3f);
  brave.plan(3.0f);
  EXPECT_EQ(brave.decoding[0].budget.least_chance, 0.0f);
  world.decoding[0].rejected = 5;
  world.policy.trim(world.decoding, 0);
  EXPECT_EQ(world.count(Rule::early_rejection), 5u);
}

TEST(AdaptivePolicy, TheWindowGrowsWithConfidenceThatIsRightAndHalvesWithoutConfidence) {
  World world("stop=off");
  EXPECT_EQ(world.pass(0.9f, 8), 8);
  EXPECT_EQ(world.pass(0.9f, 9), 9);
  EXPECT_EQ(world.pass(0.9f, 5), 10) << "not all were taken";
  EXPECT_EQ(world.pass(0.5f, 10), 10);
  EXPECT_EQ(world.said(Rule::window_down)->decided, 5);
  EXPECT_EQ(world.pass(0.5f, 5), 5) << "all were taken, but nobody was sure";
  EXPECT_EQ(world.pass(0.9f, 2), 2);
  EXPECT_EQ(world.pass(0.9f, 3), 3);
  for (int i = 0; i < 40; ++i) world.pass(0.95f, 64);
  EXPECT_EQ(world.pass(0.95f, 64), 16) << "never more than a pass takes";
}

TEST(AdaptivePolicy, AStaticWindowStays) {
  World world("stop=off, window=static, first=5");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(world.pass(i % 2 == 0 ? 0.9f : 0.4f, i % 7), 5);
  EXPECT_EQ(world.count(Rule::window_up) + world.count(Rule::window_down), 0u);
}

// --- confidence evaluation ---

TEST(AdaptivePolicy, SpeculationEndsWhenFewerThanSeventyOfAHundredAreTakenAndComesBackAfterAGoodProbe) {
  World world("window=static, upgrade=off");
  EXPECT_EQ(world.pass(0.9f, 6), 8);
  EXPECT_EQ(world.pass(0.9f, 6), 8);
  EXPECT_EQ(world.pass(0.9f, 6), 8);
  EXPECT_EQ(world.pass(0.9f, 4), 8) << "22 of 32";
  ASSERT_NE(world.said(Rule::stop), nullptr);
  EXPECT_NEAR(world.said(Rule::stop)->number, 22.0 / 32, 1e-9);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(world.pass(0.9f, 8), 0) << i;
  EXPECT_EQ(world.pass(0.9f, 5), 8) << "a probe";
  EXPECT_TRUE(world.decoding[0].probe);
  EXPECT_EQ(world.count(Rule::stop), 2u) << "5 of 8 are not enough";
  for (int i = 0; i < 32; ++i) EXPECT_EQ(world.pass(0.9f, 8), 0);
  EXPECT_EQ(world.pass(0.9f, 6), 8);
  EXPECT_EQ(world.count(Rule::resume), 1u);
  EXPECT_EQ(world.pass(0.9f, 8), 8);
  EXPECT_FALSE(world.decoding[0].probe);
}

TEST(AdaptivePolicy, FewerThanAWindowOfGuessesEndNothing) {
  World world("window=static, upgrade=off");
  for (int i = 0; i < 3; ++i) world.pass(0.9f, 0);
  EXPECT_EQ(world.count(Rule::stop), 0u);
  world.pass(0.9f, 0);
  EXPECT_EQ(world.count(Rule::stop), 1u);
}

TEST(AdaptivePolicy, ASlidingWindowForgetsAndTheWholeDoesNot) {
  World sliding("window=static, upgrade=off"), whole("window=static, upgrade=off, acceptance=whole");
  for (int i = 0; i < 40; ++i) sliding.pass(0.9f, 8), whole.pass(0.9f, 8);
  for (int i = 0; i < 4; ++i) sliding.pass(0.9f, 2), whole.pass(0.9f, 2);
  EXPECT_GT(sliding.count(Rule::stop), 0u);
  EXPECT_EQ(whole.count(Rule::stop), 0u);
}

TEST(AdaptivePolicy, AProbeWithoutAGuessEndsToo) {
  World world("window=static, upgrade=off");
  for (int i = 0; i < 4; ++i) world.pass(0.9f, 0);
  for (int i = 0; i < 32; ++i) world.pass(0.9f, 0);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(world.pass(0.1f, 0), 0);
  EXPECT_EQ(world.count(Rule::stop), 2u);
}

TEST(AdaptivePolicy, ADraftWhosePerplexityIsTooHighIsWidenedThenReplaced) {
  World world("stop=off", 1, {{2, 0.1, true}, {0, 0.5, false}});
  world.plan(3.0f);
  EXPECT_EQ(world.decoding[0].budget.capacity, 1.0f);
  EXPECT_EQ(world.decoding[0].budget.drafters, SourceMask{1} << 2);
  world.pass(0.9f, 8, chances(2, 2 * 1.19));
  EXPECT_EQ(world.count(Rule::upgrade_width), 0u);
  world.pass(0.9f, 8, chances(2, 2 * 1.3));
  EXPECT_EQ(world.count(Rule::upgrade_width), 1u);
  EXPECT_NEAR(world.said(Rule::upgrade_width)->number, 0.3, 1e-3);
  world.pass(0.9f, 8, chances(2, 2 * 1.3));
  EXPECT_EQ(world.decoding[0].budget.capacity, 1.25f);
  world.pass(0.9f, 8, chances(2, 2 * 1.3));
  EXPECT_EQ(world.decoding[0].budget.capacity, 1.5f);
  EXPECT_EQ(world.count(Rule::upgrade_draft), 1u);
  world.pass(0.9f, 8);
  EXPECT_EQ(world.decoding[0].budget.drafters, SourceMask{1});
  EXPECT_EQ(world.count(Rule::failure), 0u);
}

TEST(AdaptivePolicy, AnUpgradeIsTakenBackWhenTheDraftIsNearAgain) {
  World world("stop=off");
  world.pass(0.9f, 8, chances(2, 2 * 1.3));
  world.pass(0.9f, 8, chances(2, 2 * 1.15));
  EXPECT_EQ(world.count(Rule::downgrade), 0u) << "near, but not near enough";
  world.pass(0.9f, 8, chances(2, 2 * 1.05));
  EXPECT_EQ(world.count(Rule::downgrade), 1u);
  world.pass(0.9f, 8);
  EXPECT_EQ(world.decoding[0].budget.capacity, 1.0f);
}

TEST(AdaptivePolicy, AFailureIsCountedOnceAsLongAsItLasts) {
  World world("stop=off");
  for (int i = 0; i < 4; ++i) world.pass(0.9f, 8, chances(2, 2 * 1.4));
  EXPECT_EQ(world.count(Rule::failure), 1u);
  world.pass(0.9f, 8, chances(2, 2));
  world.pass(0.9f, 8, chances(2, 2 * 1.4));
  EXPECT_EQ(world.count(Rule::failure), 2u);
}

// --- many requests, and rejection ---

TEST(AdaptivePolicy, RequestsHaveStatesOfTheirOwnAndASlotForgetsItsLastRequest) {
  World world("window=static, upgrade=off, batch=64", 2);
  for (int i = 0; i < 4; ++i) {
    world.plan(3.0f);
    for (std::size_t r = 0; r < 2; ++r) world.grow(r, 0.9f);
    world.policy.trim(world.decoding, 0);
    world.finish(0, 8);
    world.finish(1, 1);
    world.policy.learn(world.decoding, {});
    ++world.passes;
  }
  world.plan(3.0f);
  EXPECT_GT(world.decoding[0].budget.nodes, 0);
  EXPECT_EQ(world.decoding[1].budget.nodes, 0);
  world.policy.begin(1, 10);
  world.plan(3.0f);
  EXPECT_GT(world.decoding[1].budget.nodes, 0);
}

TEST(AdaptivePolicy, TreesOfRejectionAreSettledBeforeTheyGrowAndNeverTrimmed) {
  World world("stop=off", 4);
  world.by_value = false;
  for (int i = 0; i < 10; ++i) {
    world.plan(3.0f);
    int nodes = 0;
    for (std::size_t r = 0; r < 4; ++r) nodes += world.decoding[r].budget.nodes;
    EXPECT_LE(nodes, 16);
    EXPECT_GT(nodes, 0);
    for (std::size_t r = 0; r < 4; ++r) world.grow(r, 0.4f);
    const int grown = world.trees[0].size();
    world.policy.trim(world.decoding, 0);
    EXPECT_EQ(world.trees[0].size(), grown);
    for (std::size_t r = 0; r < 4; ++r) world.finish(r, 1);
    world.policy.learn(world.decoding, {});
    ++world.passes;
  }
}

}  // namespace
}  // namespace coppice::core
