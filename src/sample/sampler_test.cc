// Draws against their definition written plainly, distributions against known ones, and the laws.
#include "sample/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "sample/survivors.h"
#include "sample/testing.h"

namespace coppice::core {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Sampler sampler_of(const Sampling& options, int vocab, std::vector<Token> end_tokens = {}) {
  auto sampler = Sampler::make(options, vocab, std::move(end_tokens));
  EXPECT_TRUE(sampler) << sampler.error().message;
  return *sampler;
}

std::vector<Token> tokens_to(int n) {
  std::vector<Token> tokens(n);
  for (int i = 0; i < n; ++i) tokens[i] = i;
  return tokens;
}

TEST(Sampler, GreedyTakesTheLargestLogitAndTheLowestIdOnTies) {
  const Sampler sampler = sampler_of({}, 5);
  Sampler::Scratch scratch(5);
  EXPECT_EQ(sampler.draw(std::vector<float>{1, 3, 2, 3, 0}, {}, scratch)->token, 1);
  EXPECT_EQ(sampler.draw(std::vector<float>{-0.0f, 0.0f, -1, -1, -1}, {}, scratch)->token, 0);
  EXPECT_EQ(sampler.draw(std::vector<float>{kNaN, kInfinity, -2, -1, -kInfinity}, {}, scratch)->token, 3);
}

TEST(Sampler, GreedyIsNotChangedByFilters) {
  Sampling options;
  options.typical_p = 0.1f;
  options.top_k = 1;
  const Sampler sampler = sampler_of(options, 4);
  Sampler::Scratch scratch(4);
  const std::vector<float> logits{5, 4.9f, 4.9f, 4.9f};
  EXPECT_EQ(sampler.draw(logits, {}, scratch)->token, 0);
  Ranked ranked[3];
  EXPECT_EQ(sampler.rank(logits, {}, scratch, ranked), 3);
  EXPECT_EQ(ranked[1].token, 1);
}

TEST(Sampler, NothingToDrawIsAnErrorWithTheReason) {
  Sampling options;
  options.banned = {0, 2};
  for (const float temperature : {0.0f, 1.0f}) {
    options.temperature = temperature;
    const Sampler sampler = sampler_of(options, 3);
    Sampler::Scratch scratch(3);
    const std::vector<float> logits{1, kNaN, 2};
    const auto draw = sampler.draw(logits, {}, scratch);
    ASSERT_FALSE(draw);
    EXPECT_NE(draw.error().message.find("banned"), std::string::npos);
    EXPECT_FALSE(sampler.distribution(logits, {}, scratch));
    Ranked ranked;
    EXPECT_EQ(sampler.rank(logits, {}, scratch, {&ranked, 1}), 0);
  }
}

// The definition: every drawable id, its noise, the best score, the lowest id on ties.
Token brute_force_draw(const Sampler& sampler, std::span<const float> logits, std::int64_t index) {
  Token best = kNoToken;
  double best_score = 0;
  for (Token id = 0; id < static_cast<Token>(logits.size()); ++id) {
    if (!std::isfinite(logits[id])) continue;
    const double score = logits[id] + double{sampler.options().temperature} * sampler.noise(index, id);
    if (best == kNoToken || score > best_score) best = id, best_score = score;
  }
  return best;
}

TEST(Sampler, UnfilteredDrawsEqualTheDefinitionWhateverIsSkipped) {
  constexpr int kVocab = 1000;  // not a multiple of a chunk
  Sampler::Scratch scratch(kVocab);
  for (const float temperature : {0.01f, 0.3f, 1.0f, 5.0f, 100.0f})
    for (int seed = 0; seed < 30; ++seed) {
      Sampling options;
      options.temperature = temperature;
      options.seed = seed;
      const Sampler sampler = sampler_of(options, kVocab);
      std::vector<float> logits = random_logits(kVocab, seed);
      logits[seed] = -kInfinity;
      const std::vector<Token> committed = tokens_to(seed + 1);
      ASSERT_EQ(sampler.draw(logits, {committed, {}}, scratch)->token,
                brute_force_draw(sampler, logits, seed + 1));
    }
}

// What a pass hands over with a row's logits.
std::vector<float> maxima_of(std::span<const float> logits) {
  std::vector<float> maxima((logits.size() + 31) / 32, -kInfinity);
  for (std::size_t i = 0; i < logits.size(); ++i) maxima[i / 32] = std::max(maxima[i / 32], logits[i]);
  return maxima;
}

TEST(Sampler, MaximaOfGroupsChangeNoDraw) {
  constexpr int kVocab = 1111;  // the last group is not whole
  const std::vector<Token> committed = tokens_to(20);
  const PathState state{committed, {}};
  std::vector<Sampling> cases(11);
  for (std::size_t i = 1; i < cases.size(); ++i) cases[i].temperature = i % 3 == 0 ? 0.5f : 1.5f;
  cases[2].top_k = 40;
  cases[3].top_k = 1000;
  cases[4].top_p = 0.9f;
  cases[5].min_p = 0.05f;
  cases[6].typical_p = 0.7f;
  cases[7].repetition_penalty = 1.3f;
  cases[8].top_k = 5;
  cases[8].top_p = 0.5f;
  cases[9].logprobs = 4;
  cases[10].acceptance = Acceptance::rejection;
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (int seed = 0; seed < 40; ++seed) {
      std::vector<float> logits = random_logits(kVocab, seed);
      if (seed % 4 == 0)  // ties, across groups and inside one
        for (float& x : logits) x = std::floor(x);
      const std::vector<float> maxima = maxima_of(logits);
      Sampling options = cases[i];
      options.seed = seed;
      const auto top = static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
      if (seed % 3 == 1) options.banned = {top, 3};
      if (seed % 3 == 2) options.logit_bias = {{top, -9.0f}, {1110, 11.0f}, {64, 3e38f}, {64, 3e38f}};
      const Sampler sampler = sampler_of(options, kVocab);
      Sampler::Scratch with(kVocab), without(kVocab);
      const auto expected = sampler.draw(logits, state, without),
                 got = sampler.draw({logits, maxima}, state, with);
      ASSERT_TRUE(expected && got);
      ASSERT_EQ(got->token, expected->token) << i << " " << seed;
      ASSERT_EQ(got->logprob, expected->logprob);
      for (int t = 0; t < got->top; ++t) ASSERT_EQ(with.top[t].token, without.top[t].token);
      Ranked first[7], second[7];
      ASSERT_EQ(sampler.rank(logits, state, without, first),
                sampler.rank({logits, maxima}, state, with, second));
      for (int r = 0; r < 7; ++r) {
        ASSERT_EQ(first[r].token, second[r].token);
        ASSERT_EQ(first[r].logprob, second[r].logprob);
      }
      ASSERT_TRUE(sampler.distribution(logits, state, without));
      ASSERT_TRUE(sampler.distribution({logits, maxima}, state, with));
      ASSERT_EQ(with.probabilities, without.probabilities);
    }
}

TEST(Sampler, TheBestOfALargeVocabularyAreThoseThatSortingFinds) {
  constexpr int kVocab = 20000;
  Sampler::Scratch scratch(kVocab);
  for (unsigned seed = 0; seed < 8; ++seed) {
    std::vector<float> logits = random_logits(kVocab, seed);
    if (seed % 2 == 1)  // ties, also where the last of them stands
      for (float& logit : logits) logit = std::round(2 * logit) / 2;
    if (seed >= 6)  // few that can be drawn
      for (int id = 0; id < kVocab; ++id)
        if (id % 997 != 0) logits[id] = -INFINITY;
    for (const int k : {1, 7, 50, 64, 65, 700}) {
      scratch.begin(LogitRow(logits));
      std::vector<std::uint64_t> all;
      for (int id = 0; id < kVocab; ++id)
        if (logits[id] != -INFINITY) all.push_back(rank_key(logits[id], id));
      std::sort(all.begin(), all.end());
      all.resize(std::min<std::size_t>(all.size(), static_cast<std::size_t>(k)));
      const int found = select_best(scratch, k);
      std::vector<std::uint64_t> best(scratch.keys.begin(), scratch.keys.begin() + found);
      std::sort(best.begin(), best.end());
      ASSERT_EQ(best, all) << "seed " << seed << ", " << k;
    }
  }
}

TEST(Sampler, GroupsWhoseMaximumCannotMatterAreNotLookedAt) {
  constexpr int kVocab = 320;
  std::vector<float> logits(kVocab, 0.0f);
  logits[100] = 50;
  const std::vector<float> maxima = maxima_of(logits);
  for (int id = 0; id < kVocab; ++id)
    if (id / 32 != 3) logits[id] = 99;  // whoever looked would draw these
  Sampling plain, tempered, few;
  tempered.temperature = 1;
  few.temperature = 1;
  few.top_k = 2;
  for (const Sampling& options : {plain, tempered}) {
    Sampler::Scratch scratch(kVocab);
    EXPECT_EQ(sampler_of(options, kVocab).draw({logits, maxima}, {}, scratch)->token, 100);
    EXPECT_EQ(std::count(scratch.made.begin(), scratch.made.end(), 1), 1);
  }
  logits.assign(kVocab, 0.0f);
  logits[3] = logits[4] = 40;
  Sampler::Scratch scratch(kVocab);
  sampler_of(few, kVocab).draw({logits, maxima_of(logits)}, {}, scratch);
  EXPECT_EQ(std::count(scratch.made.begin(), scratch.made.end(), 1), 1);
}

TEST(Sampler, NoNoiseIsAboveTheBoundThatSkippingRelyOn) {
  EXPECT_LT(-log_exact(-log_exact(1 - 0x1p-53)), 36.75);
  EXPECT_GT(-log_exact(-log_exact(1 - 0x1p-53)), 36.7);
}

TEST(Sampler, DrawsFollowTheSoftmax) {
  constexpr int kVocab = 12;
  for (const float temperature : {0.7f, 1.0f, 2.0f}) {
    Sampling options;
    options.temperature = temperature;
    options.seed = 17;
    const Sampler sampler = sampler_of(options, kVocab);
    Sampler::Scratch scratch(kVocab);
    std::vector<float> logits = random_logits(kVocab, 3);
    for (float& x : logits) x *= 0.2f;
    std::vector<double> chances;
    double total = 0;
    for (const float x : logits) total += std::exp(double{x} / temperature);
    for (const float x : logits) chances.push_back(std::exp(double{x} / temperature) / total);
    std::vector<std::int64_t> counts(kVocab);
    const std::vector<Token> context(200000);
    for (std::size_t i = 0; i < context.size(); ++i)
      ++counts[sampler.draw(logits, {{context.data(), i}, {}}, scratch)->token];
    EXPECT_GT(chi_squared_p(counts, chances), 1e-3) << temperature;

    ASSERT_TRUE(sampler.distribution(logits, {}, scratch));
    for (int id = 0; id < kVocab; ++id) EXPECT_NEAR(scratch.probabilities[id], chances[id], 1e-6);
    for (double& p : chances) p = 1.0 / kVocab;  // the test can fail
    EXPECT_LT(chi_squared_p(counts, chances), 1e-6);
  }
}

TEST(Sampler, TheDrawDependsOnTheKeyAndTheIndexAndNotOnThePathsSplit) {
  constexpr int kVocab = 400;
  const std::vector<float> logits(kVocab, 0.0f);
  Sampler::Scratch scratch(kVocab);
  const std::vector<Token> ids = tokens_to(10);
  const std::span<const Token> all(ids);
  const auto draw = [&](std::uint64_t seed, std::uint32_t choice, std::uint32_t stream, PathState state) {
    Sampling options;
    options.temperature = 1;
    options.seed = seed;
    options.choice = choice;
    options.stream = stream;
    return sampler_of(options, kVocab).draw(logits, state, scratch)->token;
  };
  const Token drawn = draw(1, 0, 0, {all, {}});
  for (int split = 1; split < 10; ++split)
    EXPECT_EQ(draw(1, 0, 0, {all.first(split), all.subspan(split)}), drawn);
  int different = 0;
  different += draw(2, 0, 0, {all, {}}) != drawn;
  different += draw(1, 1, 0, {all, {}}) != drawn;
  different += draw(1, 0, 1, {all, {}}) != drawn;
  different += draw(1, 0, 0, {all.first(9), {}}) != drawn;
  EXPECT_GE(different, 3);  // each equal by chance once in 400
}

Sampling with_everything(int seed) {
  Sampling o;
  o.seed = seed;
  o.temperature = seed % 4 == 0 ? 0.0f : 0.4f * static_cast<float>(seed % 5 + 1);
  if (seed & 1) o.top_k = 1 + seed * 7 % 300;
  if (seed & 2) o.top_p = 0.05f + 0.09f * static_cast<float>(seed % 10);
  if (seed & 4) o.min_p = 0.02f * static_cast<float>(seed % 7);
  if (seed & 8) o.typical_p = 0.1f + 0.08f * static_cast<float>(seed % 11);
  if (seed & 16) o.repetition_penalty = 1.3f;
  if (seed & 32) o.presence_penalty = 0.5f, o.frequency_penalty = 0.25f, o.penalty_window = -1;
  o.logit_bias = {{3, 2.5f}, {4, -1.0f}};
  o.banned = {5, 6};
  return o;
}

TEST(Sampler, TheFirstOfARankingIsTheDrawUnderEveryOption) {
  constexpr int kVocab = 700;
  Sampler::Scratch scratch(kVocab), other(kVocab);
  const std::vector<Token> ids = tokens_to(90);
  for (int seed = 0; seed < 256; ++seed) {
    const Sampler sampler = sampler_of(with_everything(seed), kVocab);
    const std::vector<float> logits = random_logits(kVocab, seed);
    const PathState state{{ids.data(), 40}, {ids.data() + 40, static_cast<std::size_t>(seed % 50)}};
    Ranked ranked[8];
    const int count = sampler.rank(logits, state, scratch, ranked);
    ASSERT_GE(count, 1);
    ASSERT_EQ(ranked[0].token, sampler.draw(logits, state, other)->token) << seed;
    ASSERT_EQ(ranked[0].token, sampler.draw(logits, state, scratch)->token) << "a used scratch, " << seed;
    const bool greedy = sampler.options().temperature == 0;
    ASSERT_TRUE(sampler.distribution(logits, state, other));
    for (int i = 0; i < count; ++i) {
      const bool falls = i == 0 || ranked[i - 1].score > ranked[i].score ||
                         (ranked[i - 1].score == ranked[i].score && ranked[i - 1].token < ranked[i].token);
      ASSERT_TRUE(falls) << seed;
      if (greedy) continue;
      ASSERT_GT(other.probabilities[ranked[i].token], 0.0f) << "a survivor of the filters, " << seed;
      ASSERT_NEAR(std::exp(ranked[i].logprob), other.probabilities[ranked[i].token], 1e-5);
    }
    ASSERT_NEAR(lane_sum(other.probabilities.data(), kVocab), 1.0f, 1e-5);
  }
}

TEST(Sampler, RankingIsTheOrderOfScores) {
  constexpr int kVocab = 900;
  Sampling options;
  options.temperature = 1.5f;
  options.seed = 8;
  const Sampler sampler = sampler_of(options, kVocab);
  Sampler::Scratch scratch(kVocab);
  const std::vector<float> logits = random_logits(kVocab, 8);
  std::vector<std::pair<double, Token>> scores;
  for (Token id = 0; id < kVocab; ++id) scores.push_back({-(logits[id] + 1.5 * sampler.noise(4, id)), id});
  std::sort(scores.begin(), scores.end());
  Ranked ranked[20];
  const std::vector<Token> ids = tokens_to(4);
  ASSERT_EQ(sampler.rank(logits, {ids, {}}, scratch, ranked), 20);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(ranked[i].token, scores[i].second);
    EXPECT_EQ(ranked[i].score, -scores[i].first);
  }
}

// Every ISA's table gives these; a change of a filter's order, of a tie or of the noise changes them.
std::uint64_t hash_of_draws(int vocab, int draws) {
  Sampler::Scratch scratch(vocab);
  std::vector<Token> ids{1, 2, 3};
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (int i = 0; i < draws; ++i) {
    Sampling options = with_everything(i);
    options.logprobs = 2;
    const auto draw = sampler_of(options, vocab).draw(random_logits(vocab, i), {ids, {}}, scratch);
    ids.push_back(draw->token % 50);
    for (const std::uint64_t word : {static_cast<std::uint64_t>(draw->token),
                                     static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(draw->logprob)),
                                     static_cast<std::uint64_t>(scratch.top[1].token)})
      hash = (hash ^ word) * 0x100000001b3u;
  }
  return hash;
}

TEST(Sampler, DrawnSequencesReproduceOnEveryMachine) {
  EXPECT_EQ(hash_of_draws(1000, 512), 15717060083191398271u);
  EXPECT_EQ(hash_of_draws(49152, 64), 14317469143482633916u);
}

TEST(Sampler, NoPlacesAskedForAreNoneGiven) {
  Sampling options;
  options.logprobs = 0;
  for (const float temperature : {0.0f, 1.0f}) {
    options.temperature = temperature;
    const Sampler sampler = sampler_of(options, 40);
    Sampler::Scratch scratch(40);
    scratch.keys[0] = ~std::uint64_t{0};
    const std::vector<float> logits = random_logits(40, 1);
    const auto draw = sampler.draw(logits, {}, scratch);
    EXPECT_EQ(draw->top, 0);
    EXPECT_LT(draw->logprob, 0);
    EXPECT_EQ(sampler.rank(logits, {}, scratch, {}), 0);
  }
}

TEST(Sampler, LogprobsAreThoseBeforeFiltersAndTemperature) {
  Sampling options;
  options.temperature = 2;
  options.top_k = 1;
  options.logprobs = 3;
  options.banned = {1};
  const Sampler sampler = sampler_of(options, 5);
  Sampler::Scratch scratch(5);
  const auto draw = sampler.draw(std::vector<float>{1, 9, 2, 0, 2}, {}, scratch);
  const double total = std::exp(1.0) + 2 * std::exp(2.0) + 1;
  EXPECT_EQ(draw->token, 2);
  EXPECT_NEAR(draw->logprob, 2 - std::log(total), 1e-6);
  ASSERT_EQ(draw->top, 3);
  EXPECT_EQ(scratch.top[0].token, 2);
  EXPECT_EQ(scratch.top[1].token, 4);
  EXPECT_EQ(scratch.top[2].token, 0);
  EXPECT_NEAR(scratch.top[2].logprob, 1 - std::log(total), 1e-6);
}

TEST(Sampler, TheChanceOfOneTokenIsThatOfItsRanking) {
  constexpr int kVocab = 300;
  for (const float temperature : {0.0f, 0.7f, 2.0f})
    for (const int top_k : {0, 5}) {
      Sampling options;
      options.temperature = temperature;
      options.top_k = top_k;
      const Sampler sampler = sampler_of(options, kVocab);
      Sampler::Scratch scratch(kVocab);
      const std::vector<float> logits = random_logits(kVocab, 3);
      Ranked ranked[8];
      const int count = sampler.rank(logits, {}, scratch, ranked);
      for (int i = 0; i < count; ++i)
        EXPECT_EQ(sampler.logprob(ranked[i].token, logits, {}, scratch), ranked[i].logprob);
      const bool filtered = temperature > 0 && top_k > 0;
      double sum = 0;
      int possible = 0;
      for (Token token = 0; token < kVocab; ++token) {
        const float logprob = sampler.logprob(token, logits, {}, scratch);
        sum += std::exp(static_cast<double>(logprob));
        possible += logprob > -kInfinity ? 1 : 0;
      }
      EXPECT_NEAR(sum, 1, 1e-4);
      EXPECT_EQ(possible, filtered ? top_k : kVocab);
    }
}

}  // namespace
}  // namespace coppice::core
