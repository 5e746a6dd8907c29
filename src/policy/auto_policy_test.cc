// The controller in a world made for it: passes cost what a table says, guesses are taken as often as is
// decided here, and no clock is looked at.
#include "policy/auto_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace coppice::core {
namespace {

// Four rows for the price of one, then a fifth of a pass for each.
CostTable usual_costs() {
  CostTable t;
  t.points = {{1, 1}, {4, 1}, {104, 21}};
  return t;
}

struct World {
  explicit World(const CostTable& costs, int requests = 1, double draft_share = 0)
      : truth(costs), setup{requests, costs, true, draft_share}, policy(setup) {
    for (int r = 0; r < requests; ++r) {
      trees.emplace_back();
      drawn.emplace_back();
      policy.begin(r, 100);
    }
    decoding.resize(static_cast<std::size_t>(requests));
  }

  void plan() {
    for (std::size_t r = 0; r < decoding.size(); ++r) {
      decoding[r] = {};
      decoding[r].slot = static_cast<int>(r);
      decoding[r].limit.nodes = 16;
      decoding[r].tokens_left = 1000;
      decoding[r].context_left = 1000;
      decoding[r].length = 100;
      decoding[r].tree = &trees[r];
      trees[r].reset(7);
    }
    policy.plan(decoding);
  }

  // A chain below the root of request r: `chance` is what the mixer says of each link.
  void grow_chain(std::size_t r, float chance) {
    float value = 1;
    for (int n = 0; n < decoding[r].budget.nodes; ++n) {
      value *= chance;
      if (value < decoding[r].budget.price) break;
      trees[r].add(n, 1, chance, value, 1);
    }
  }

  // The target takes each link with chance `truly`, as far as the pass has them.
  void draw(std::size_t r, double truly) {
    drawn[r].clear();
    std::size_t depth = 0;
    const auto there = static_cast<std::size_t>(trees[r].size() - 1);
    while (std::uniform_real_distribution<>()(random) < truly) {
      drawn[r].push_back(1);
      if (depth++ == there) return;
    }
    drawn[r].push_back(2);
  }

  // One pass: every request's chain of `said` chances, taken with chance `truly`.
  void pass(float said, double truly) {
    plan();
    for (std::size_t r = 0; r < trees.size(); ++r)
      if (decoding[r].budget.nodes > 0) grow_chain(r, said);
    finish(truly, {});
  }

  void finish(double truly, const PassCost& draft) {
    policy.trim(decoding, 0);
    PassShape shape;
    for (std::size_t r = 0; r < trees.size(); ++r) shape.add_request(trees[r].size(), 100);
    PassTimes times;
    times.pass = truth.seconds(shape);
    times.draft = draft;
    times.drafting = draft.seconds + cheap_seconds;
    for (std::size_t r = 0; r < trees.size(); ++r) {
      draw(r, truly);
      decoding[r].drawn = drawn[r];
      tokens += static_cast<double>(drawn[r].size());
      nodes += trees[r].size() - 1;
    }
    policy.learn(decoding, times);
    seconds += times.pass + times.drafting;
    ++passes;
  }

  void begin_counting() { tokens = seconds = 0, nodes = passes = 0; }

  CostModel truth;
  PolicySetup setup;
  AutoPolicy policy;
  std::vector<TokenTree> trees;
  std::vector<std::vector<Token>> drawn;
  std::vector<Decoding> decoding;
  std::mt19937 random{5};
  double cheap_seconds = 0.005;
  double tokens = 0, seconds = 0;
  int nodes = 0, passes = 0;
};

TEST(AutoPolicy, KeepsThePrefixOfBestExpectedTokensPerSecond) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    CostTable costs;
    double seconds = 1;
    for (int rows = 1; rows <= 24; ++rows) {  // with steps
      costs.points.push_back({static_cast<double>(rows), seconds});
      seconds += random() % 3 == 0 ? 0.3 : 0.01;
    }
    World world(costs);
    world.plan();
    float value = 1;
    std::vector<float> values;
    for (int n = 0; n < 16; ++n) {
      value *= 1 - static_cast<float>(random() % 4) / 10;
      values.push_back(value);
      world.trees[0].add(n, 1, 1, value, 1);
    }
    double tokens = 1, best = 1 / costs.points[0].seconds;
    int expected = 0;
    for (int n = 1; n <= 16; ++n) {
      tokens += values[static_cast<std::size_t>(n - 1)];
      const double rate = tokens / costs.points[static_cast<std::size_t>(n)].seconds;
      if (rate > best) best = rate, expected = n;
    }
    world.policy.trim(world.decoding, 0);
    EXPECT_EQ(world.trees[0].size() - 1, expected);
    EXPECT_EQ(world.decoding[0].wanted, 16);
  }
}

TEST(AutoPolicy, PromptsReadBesideAreNoReasonToGuessMore) {
  CostTable costs;
  costs.points = {{1, 1}, {201, 41}};  // every row costs a fifth of a pass
  for (const float value : {0.1f, 0.3f, 0.6f, 0.9f}) {
    std::vector<int> kept;
    for (const int prompt_rows : {0, 10, 100}) {
      World world(costs);
      world.plan();
      for (int n = 0; n < 16; ++n) world.trees[0].add(n, 1, 1, std::pow(value, static_cast<float>(n + 1)), 1);
      world.policy.trim(world.decoding, prompt_rows);
      kept.push_back(world.trees[0].size() - 1);
    }
    EXPECT_EQ(kept[1], kept[0]) << value;
    EXPECT_EQ(kept[2], kept[0]) << value;
  }
}

TEST(AutoPolicy, NodesOfAllRequestsAreTakenInOrderOfValue) {
  World world(usual_costs(), 3);
  world.plan();
  const float chances[] = {0.9f, 0.3f, 0.6f};
  for (std::size_t r = 0; r < 3; ++r)
    for (int n = 0; n < 16; ++n)
      world.trees[r].add(n, 1, 1, std::pow(chances[r], static_cast<float>(n + 1)), 1);
  world.policy.trim(world.decoding, 0);
  float least_kept = 1, best_left = 0;
  for (std::size_t r = 0; r < 3; ++r) {
    const int kept = world.trees[r].size() - 1;
    if (kept > 0) least_kept = std::min(least_kept, std::pow(chances[r], static_cast<float>(kept)));
    if (kept < 16) best_left = std::max(best_left, std::pow(chances[r], static_cast<float>(kept + 1)));
  }
  EXPECT_GT(world.trees[0].size(), world.trees[2].size());
  EXPECT_GE(least_kept, best_left);
}

TEST(AutoPolicy, ManyAtOnceGetThinnerTrees) {
  World one(usual_costs()), three(usual_costs(), 3);
  for (int i = 0; i < 50; ++i) one.pass(0.8f, 0.8), three.pass(0.8f, 0.8);
  EXPECT_LT(three.nodes / 3.0, 0.8 * one.nodes);
  EXPECT_GT(three.nodes, 0);
}

// A row brings 0.8 tokens in a fifth of a pass, less than the 16 tokens of the 3.4 passes that 16 rows take.
TEST(AutoPolicy, SoManyAtOnceThatNoGuessPaysGoPlain) {
  World world(usual_costs(), 16);
  for (int i = 0; i < 100; ++i) world.pass(0.8f, 0.8);
  world.begin_counting();
  for (int i = 0; i < 400; ++i) world.pass(0.8f, 0.8);
  EXPECT_LT(world.nodes, 0.02 * 16 * 400) << "but for probes";
  EXPECT_GT(world.tokens / world.seconds, 0.97 * 16 / 3.4);
}

// Beside the guesses of the others those of one seem to cost nothing where rows come in a step.
TEST(AutoPolicy, AStepThatNobodyWouldPayAloneIsNotPaidTogether) {
  CostTable steps;
  steps.points = {{1, 1}, {4, 1}, {5, 2.6}, {12, 2.6}, {112, 22.6}};
  World world(steps, 4);
  for (int i = 0; i < 100; ++i) world.pass(0.8f, 0.8);
  world.begin_counting();
  for (int i = 0; i < 400; ++i) world.pass(0.8f, 0.8);
  EXPECT_GT(world.tokens / world.seconds, 0.97 * 4);
}

TEST(AutoPolicy, AStreamStandsStillForATenthOfASecondIfThatIsLonger) {
  CostTable fast;  // a hundred times as fast: four passes are 40 ms
  for (const CostPoint& point : usual_costs().points)
    fast.points.push_back({point.rows, point.seconds / 100});
  World world(fast);
  world.plan();
  const int rows = world.policy.prompt_rows(world.decoding, 512);
  EXPECT_LE(world.truth.seconds({1.0 + rows, 100, 100.0 * (1 + rows)}), 0.1);
  EXPECT_GT(world.truth.seconds({2.0 + rows, 100, 100.0 * (2 + rows)}), 0.1) << "one more would fit";
}

TEST(AutoPolicy, IsNeverMuchSlowerThanPlainWhateverTheMixerSays) {
  for (const float said : {0.05f, 0.3f, 0.6f, 0.95f}) {
    World world(usual_costs());
    for (int i = 0; i < 32; ++i) world.pass(said, 0);
    world.begin_counting();
    for (int i = 0; i < 500; ++i) world.pass(said, 0);
    EXPECT_LT(world.seconds / world.tokens, 1.02) << "the mixer says " << said;
  }
}

TEST(AutoPolicy, ComesBackToPlainSpeedIn32TokensAndToGuessesInAsMany) {
  World world(usual_costs());
  for (int i = 0; i < 300; ++i) world.pass(0.9f, 0.9);
  world.begin_counting();
  for (int i = 0; i < 32; ++i) world.pass(0.9f, 0);  // the mixer has not noticed
  world.begin_counting();
  for (int i = 0; i < 50; ++i) world.pass(0.9f, 0);
  EXPECT_LT(world.seconds / world.tokens, 1.05);
  world.begin_counting();
  while (world.tokens < 32) world.pass(0.9f, 0.9);
  world.begin_counting();
  for (int i = 0; i < 50; ++i) world.pass(0.9f, 0.9);
  EXPECT_GT(world.tokens / world.seconds, 2.2);
}

TEST(AutoPolicy, TreesOfRejectionAreCutByWhatEarlierOnesWereWorthAndNeverTrimmed) {
  World world(usual_costs());
  int nodes = 0;
  for (int i = 0; i < 100; ++i) {
    world.plan();
    world.decoding[0].by_value = false;
    world.policy.plan(world.decoding);
    nodes = world.decoding[0].budget.nodes;
    world.grow_chain(0, 0.4f);
    const int grown = world.trees[0].size();
    world.policy.trim(world.decoding, 0);
    EXPECT_EQ(world.trees[0].size(), grown);
  }
  EXPECT_GE(nodes, 2);
  EXPECT_LE(nodes, 4) << "three are free, a fourth is not worth it";
}

TEST(AutoPolicy, AChunkOfAPromptStallsNobodyForLong) {
  World world(usual_costs());
  EXPECT_EQ(world.policy.prompt_rows({}, 512), 512) << "nobody waits";
  world.plan();
  const int rows = world.policy.prompt_rows(world.decoding, 512);
  EXPECT_LE(world.truth.seconds({1.0 + rows, 100, 100.0 * (1 + rows)}), 4.0);
  EXPECT_GT(world.truth.seconds({2.0 + rows, 100, 100.0 * (2 + rows)}), 4.0) << "one more would fit";
  EXPECT_EQ(world.policy.prompt_rows(world.decoding, 3), 3);
}

// A draft model beside the cheap drafters: without it chains of `cheap` chances, with it of `costly` ones.
// What it has not read it reads first.
struct DraftWorld : World {
  explicit DraftWorld(double share) : World(usual_costs(), 1, share), a_pass(share) {}

  double rate(float cheap, float costly, int count) {
    begin_counting();
    for (int i = 0; i < count; ++i) {
      plan();
      const Budget& budget = decoding[0].budget;
      PassCost draft;
      if (budget.nodes > 0 && budget.costly) {
        draft = {3, static_cast<std::uint64_t>(3 + behind), 0, 3 * a_pass + behind * a_pass / 200};
        behind = 0;
      }
      probes += decoding[0].probe ? 1 : 0;
      const float chance = draft.passes > 0 ? costly : cheap;
      if (budget.nodes > 0) grow_chain(0, chance);
      finish(chance, draft);
      if (draft.passes == 0) behind += static_cast<int>(drawn[0].size());
    }
    return tokens / seconds;
  }

  double a_pass;
  int behind = 100, probes = 0;
};

double rate_without_draft(float chance) {
  World world(usual_costs());
  for (int i = 0; i < 2000; ++i) world.pass(chance, chance);
  return world.tokens / world.seconds;
}

TEST(AutoPolicy, PaysForADraftThatEarnsMoreThanItCosts) {
  DraftWorld world(0.05);
  world.rate(0.3f, 0.9f, 100);
  EXPECT_GT(world.rate(0.3f, 0.9f, 400), 1.4 * rate_without_draft(0.3f));
}

TEST(AutoPolicy, LeavesOutADraftThatDoesNotAndProbesItForLittle) {
  DraftWorld world(0.5);
  world.rate(0.6f, 0.65f, 100);
  world.probes = 0;
  EXPECT_GT(world.rate(0.6f, 0.65f, 3000), 0.97 * rate_without_draft(0.6f));
  EXPECT_GT(world.probes, 3);
  EXPECT_LT(world.probes, 100);
}

TEST(AutoPolicy, NoticesThatADraftHasBecomeWorthItsPasses) {
  DraftWorld world(0.1);
  world.rate(0.5f, 0.5f, 500);
  world.rate(0.5f, 0.95f, 500);
  EXPECT_GT(world.rate(0.5f, 0.95f, 300), 1.2 * rate_without_draft(0.5f));
}

TEST(Calibration, LearnsHowOftenGuessesOfAValueAreTaken) {
  Calibration calibration(0.95);
  for (int i = 0; i < 200; ++i) {
    calibration.next_cycle();
    calibration.add(0.8f, i % 5 == 0);
    calibration.add(0.3f, i % 3 == 0);
  }
  EXPECT_NEAR(calibration.chance(0.8f), 0.2, 0.06);
  EXPECT_NEAR(calibration.chance(0.3f), 0.33, 0.08);
  EXPECT_EQ(calibration.chance(0.1f), 0.1f) << "nothing was seen there";
}

}  // namespace
}  // namespace coppice::core
