// What each sampling option does, one fact a test; the filters against brute force.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "sample/sampler.h"
#include "sample/testing.h"

namespace coppice::core {
namespace {

// The distribution that draws follow.
std::vector<float> distribution(const Sampling& options, std::span<const float> logits, PathState state = {},
                                std::vector<Token> end_tokens = {}) {
  const int vocab = static_cast<int>(logits.size());
  const auto sampler = Sampler::make(options, vocab, std::move(end_tokens));
  EXPECT_TRUE(sampler) << sampler.error().message;
  Sampler::Scratch scratch(vocab);
  const Status status = sampler->distribution(logits, state, scratch);
  EXPECT_TRUE(status);
  return scratch.probabilities;
}

std::set<Token> survivors(const Sampling& options, std::span<const float> logits) {
  std::set<Token> ids;
  const std::vector<float> p = distribution(options, logits);
  for (std::size_t id = 0; id < p.size(); ++id)
    if (p[id] > 0) ids.insert(static_cast<Token>(id));
  return ids;
}

Sampling at_one() {
  Sampling options;
  options.temperature = 1;
  return options;
}

// Logits of a known distribution: 1/2, 1/4, 1/8, 1/16, 1/16.
std::vector<float> halves() {
  const float ln2 = 0.6931472f;
  return {-ln2, -2 * ln2, -3 * ln2, -4 * ln2, -4 * ln2};
}

TEST(Options, EveryFieldOutOfRangeIsNamed) {
  const auto message = [](auto change) {
    Sampling options;
    change(options);
    const Status status = options.validate(100);
    return status ? std::string("valid") : status.error().message;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  const std::pair<std::string, std::string> named[] = {
      {"temperature", message([&](Sampling& s) { s.temperature = -0.1f; })},
      {"temperature", message([&](Sampling& s) { s.temperature = nan; })},
      {"top_k", message([&](Sampling& s) { s.top_k = -1; })},
      {"top_p", message([&](Sampling& s) { s.top_p = 0; })},
      {"min_p", message([&](Sampling& s) { s.min_p = 1.5f; })},
      {"typical_p", message([&](Sampling& s) { s.typical_p = nan; })},
      {"repetition_penalty", message([&](Sampling& s) { s.repetition_penalty = 0; })},
      {"presence_penalty", message([&](Sampling& s) { s.presence_penalty = infinity; })},
      {"frequency_penalty", message([&](Sampling& s) { s.frequency_penalty = nan; })},
      {"penalty_window", message([&](Sampling& s) { s.penalty_window = -2; })},
      {"logit_bias", message([&](Sampling& s) {
         s.logit_bias = {{100, 1.0f}};
       })},
      {"logit_bias", message([&](Sampling& s) {
         s.logit_bias = {{1, -infinity}};
       })},
      {"banned", message([&](Sampling& s) { s.banned = {-1}; })},
      {"stop", message([&](Sampling& s) {
         s.stop = {"a", ""};
       })},
      {"stream", message([&](Sampling& s) { s.stream = 1u << 24; })},
      {"max_tokens", message([&](Sampling& s) { s.max_tokens = 0; })},
      {"logprobs", message([&](Sampling& s) { s.logprobs = -2; })},
  };
  for (const auto& [field, text] : named) EXPECT_EQ(text.rfind(field, 0), 0u) << field << ": " << text;
  EXPECT_EQ(message([](Sampling&) {}), "valid");
  EXPECT_FALSE(Sampler::make(
      [] {
        Sampling s;
        s.top_k = -1;
        return s;
      }(),
      100, {}));
}

TEST(Options, TopKKeepsTheLargestAndTheLowestIdsOfATie) {
  Sampling options = at_one();
  options.top_k = 4;
  EXPECT_EQ(survivors(options, halves()), (std::set<Token>{0, 1, 2, 3}));
  options.top_k = 3;
  const std::vector<float> tied{1, 2, 1, 1, 2, 1};
  EXPECT_EQ(survivors(options, tied), (std::set<Token>{0, 1, 4}));
  options.top_k = 100;
  EXPECT_EQ(survivors(options, tied).size(), 6u);
}

TEST(Options, TopKEqualsSortingForEveryK) {
  std::vector<float> logits = random_logits(333, 5);
  for (float& x : logits) x = std::round(x);  // ties
  std::vector<int> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  for (int k = 1; k < 333; ++k) {
    Sampling options = at_one();
    options.top_k = k;
    ASSERT_EQ(survivors(options, logits), std::set<Token>(order.begin(), order.begin() + k)) << k;
  }
}

TEST(Options, TopPKeepsTheShortestPrefixThatReachesIt) {
  Sampling options = at_one();
  const auto kept = [&](float p) {
    options.top_p = p;
    return survivors(options, halves()).size();
  };
  EXPECT_EQ(kept(0.01f), 1u);
  EXPECT_EQ(kept(0.49f), 1u);
  EXPECT_EQ(kept(0.51f), 2u);
  EXPECT_EQ(kept(0.74f), 2u);
  EXPECT_EQ(kept(0.76f), 3u);
  EXPECT_EQ(kept(0.9f), 4u);  // the lower id of the two equal ones
  EXPECT_TRUE(survivors(options, halves()).count(3));
  EXPECT_EQ(kept(0.95f), 5u);
}

TEST(Options, MinPKeepsWhatIsAtLeastThatShareOfTheLargest) {
  Sampling options = at_one();
  const auto kept = [&](float p) {
    options.min_p = p;
    return survivors(options, halves()).size();
  };
  EXPECT_EQ(kept(0.51f), 1u);
  EXPECT_EQ(kept(0.49f), 2u);
  EXPECT_EQ(kept(0.26f), 2u);
  EXPECT_EQ(kept(0.24f), 3u);
  EXPECT_EQ(kept(0.12f), 5u);
  EXPECT_EQ(kept(1.0f), 1u);
}

TEST(Options, TemperatureComesBeforeTheFilters) {
  Sampling options;
  options.top_p = 0.51f;
  options.temperature = 0.5f;  // 1/2 becomes 4/4 : 1 : 1/4 ..., 0.74 of the whole
  EXPECT_EQ(survivors(options, halves()).size(), 1u);
  options.temperature = 2;
  EXPECT_EQ(survivors(options, halves()).size(), 2u);
}

TEST(Options, EachFilterSeesWhatTheOneBeforeLeft) {
  Sampling options = at_one();
  options.top_k = 2;      // 2/3, 1/3
  options.top_p = 0.66f;  // reached by the first alone; of the whole it would take three
  EXPECT_EQ(survivors(options, halves()), (std::set<Token>{0}));
}

// Typical-p by its definition, in double and with logarithms.
std::set<Token> typical_reference(std::span<const float> logits, float share) {
  double total = 0, entropy = 0, reached = 0;
  for (const float x : logits) total += std::exp(double{x});
  for (const float x : logits) entropy -= std::exp(double{x}) / total * (x - std::log(total));
  std::vector<std::pair<double, Token>> order;
  for (std::size_t id = 0; id < logits.size(); ++id)
    order.push_back({std::fabs(-(logits[id] - std::log(total)) - entropy), static_cast<Token>(id)});
  std::sort(order.begin(), order.end());
  std::set<Token> kept;
  for (const auto& [distance, id] : order) {
    if (!kept.empty() && reached >= share) break;
    reached += std::exp(double{logits[id]}) / total;
    kept.insert(id);
  }
  return kept;
}

TEST(Options, TypicalPEqualsItsDefinition) {
  for (int seed = 0; seed < 60; ++seed) {
    const std::vector<float> logits = random_logits(20 + seed * 10, seed);
    for (const float share : {0.1f, 0.5f, 0.9f}) {
      Sampling options = at_one();
      options.typical_p = share;
      ASSERT_EQ(survivors(options, logits), typical_reference(logits, share)) << seed << " " << share;
    }
  }
}

// top-p by sorting everything.
TEST(Options, TopPEqualsSortingEverything) {
  for (int seed = 0; seed < 60; ++seed) {
    const std::vector<float> logits = random_logits(20 + seed * 10, seed);
    for (const float share : {0.1f, 0.5f, 0.9f, 0.999f}) {
      const std::vector<float> all = distribution(at_one(), logits);
      std::vector<int> order(logits.size());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
      std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
      std::set<Token> expected;
      double reached = 0;
      for (std::size_t i = 0; i < order.size() && (i == 0 || reached < share); ++i) {
        reached += all[order[i]];
        expected.insert(order[i]);
      }
      Sampling options = at_one();
      options.top_p = share;
      ASSERT_EQ(survivors(options, logits), expected) << seed << " " << share;
    }
  }
}

TEST(Options, PenaltiesCountTheWindowAndSparePositionsBeyondIt) {
  const std::vector<float> logits{2, 2, -2, 2, 2};
  const std::vector<Token> committed{4, 0, 2, 1, 1};
  Sampling options;
  options.logprobs = 5;
  options.repetition_penalty = 2;
  options.presence_penalty = 0.5f;
  options.frequency_penalty = 0.25f;
  const auto processed = [&](int window, PathState state) {
    options.penalty_window = window;
    Sampler::Scratch scratch(5);
    EXPECT_TRUE(Sampler::make(options, 5, {})->draw(logits, state, scratch));
    return scratch.logits;
  };
  using Logits = std::vector<float>;
  EXPECT_EQ(processed(0, {committed, {}}), logits);
  EXPECT_EQ(processed(1, {committed, {}}), (Logits{2, 0.25f, -2, 2, 2}));
  EXPECT_EQ(processed(3, {committed, {}}), (Logits{2, 0, -4.75f, 2, 2}));
  EXPECT_EQ(processed(4, {committed, {}}), (Logits{0.25f, 0, -4.75f, 2, 2}));
  EXPECT_EQ(processed(5, {committed, {}}), (Logits{0.25f, 0, -4.75f, 2, 0.25f}));
  EXPECT_EQ(processed(-1, {committed, {}}), processed(5, {committed, {}}));
  EXPECT_EQ(processed(64, {committed, {}}), processed(5, {committed, {}}));
  const std::vector<Token> path{3};  // the window moves along with the path
  EXPECT_EQ(processed(1, {committed, path}), (Logits{2, 2, -2, 0.25f, 2}));
  EXPECT_EQ(processed(2, {committed, path}), (Logits{2, 0.25f, -2, 0.25f, 2}));
}

TEST(Options, PenaltiesFollowThePathAndNotOtherBranches) {
  const std::vector<float> logits{1, 1.1f, 1.2f};
  Sampling options;
  options.presence_penalty = 1;
  const auto sampler = Sampler::make(options, 3, {});
  Sampler::Scratch scratch(3);
  const std::vector<Token> committed{0};
  const std::vector<Token> branch{2}, other{1};
  EXPECT_EQ(sampler->draw(logits, {committed, branch}, scratch)->token, 1);
  EXPECT_EQ(sampler->draw(logits, {committed, other}, scratch)->token, 2);  // 2 was on a branch not taken
}

TEST(Options, BiasIsAddedBeforeThePenalty) {
  Sampling options;
  options.logit_bias = {{0, 3.0f}};
  options.repetition_penalty = 2;
  const auto sampler = Sampler::make(options, 2, {});
  Sampler::Scratch scratch(2);
  const std::vector<Token> committed{0};
  ASSERT_TRUE(sampler->draw(std::vector<float>{-1, 0}, {committed, {}}, scratch));
  EXPECT_EQ(scratch.logits[0], 1.0f);  // (-1 + 3) / 2, not -1 * 2 + 3
}

TEST(Options, BannedTokensAndIgnoredEndsAreNeverDrawn) {
  Sampling options = at_one();
  options.banned = {0};
  options.logit_bias = {{0, 100.0f}};
  EXPECT_EQ(survivors(options, halves()), (std::set<Token>{1, 2, 3, 4}));
  EXPECT_EQ(distribution(options, halves(), {}, {1})[1] > 0, true);
  options.ignore_eos = true;
  EXPECT_EQ(distribution(options, halves(), {}, {1, 2})[1], 0.0f);
  EXPECT_EQ(distribution(options, halves(), {}, {1, 2})[2], 0.0f);
}

TEST(Options, ATinyTemperatureIsGreedyAndNotNaN) {
  Sampling options;
  for (const float temperature : {1e-45f, 1e-30f, 1e-6f}) {
    options.temperature = temperature;
    options.min_p = 0.5f;
    const std::vector<float> p = distribution(options, halves());
    EXPECT_EQ(p, (std::vector<float>{1, 0, 0, 0, 0}));
  }
}

}  // namespace
}  // namespace coppice::core
