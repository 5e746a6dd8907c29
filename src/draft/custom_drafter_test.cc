// What an adapter makes of a custom drafter's answers, good and bad.
#include "draft/custom_drafter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <stdexcept>

namespace coppice::core {
namespace {

using Text = std::vector<Token>;
constexpr int kVocab = 64;

// Answers as the test says, and keeps what it was told.
class Puppet final : public CustomDrafter {
 public:
  using Answer = std::function<Result<std::vector<Guess>>(const DraftPlace&)>;
  explicit Puppet(Answer answer) : answer_(std::move(answer)) {}

  void begin(std::uint64_t text, std::span<const Token> prompt) override {
    told += "begin " + std::to_string(prompt.size()) + "; ";
    texts.push_back(text);
  }
  Result<std::vector<Guess>> propose(const DraftPlace& place) override {
    asked.emplace_back(place.path.begin(), place.path.end());
    texts.push_back(place.text);
    return answer_(place);
  }
  void accepted(std::uint64_t text, std::span<const Token> tokens) override {
    told += "accepted " + std::to_string(tokens.size()) + "; ";
    texts.push_back(text);
  }
  void end(std::uint64_t) override { told += "end; "; }

  std::vector<Text> asked;
  std::vector<std::uint64_t> texts;
  std::string told;

 private:
  Answer answer_;
};

Sampler sampler(float temperature) {
  Sampling options;
  options.temperature = temperature;
  options.seed = 5;
  return *Sampler::make(options, kVocab, {});
}

struct Adapted {
  std::shared_ptr<Puppet> puppet;
  CustomAdapter adapter;
  Sampler greedy = sampler(0);
  Text committed{1, 2, 3};

  explicit Adapted(Puppet::Answer answer)
      : puppet(std::make_shared<Puppet>(std::move(answer))), adapter({"mine", puppet}, 2, kVocab) {
    EXPECT_TRUE(adapter.begin(0, committed, greedy));
  }
  std::vector<Candidate> at(const Text& path, const Sampler& s) {
    Candidate candidates[kMaxCandidates];
    Query query;
    query.state = {committed, path};
    query.sampler = &s;
    query.wanted = kMaxCandidates;
    query.candidates = candidates;
    adapter.predict({&query, 1});
    return {candidates, candidates + query.count};
  }
  Text tokens_at(const Text& path) {
    Text tokens;
    for (const Candidate& candidate : at(path, greedy)) tokens.push_back(candidate.token);
    return tokens;
  }
  std::string problem() { return std::string(adapter.trouble(0).first); }
};

TEST(CustomDrafter, GuessesAreCandidatesTheLikeliestFirst) {
  Adapted mine([](const DraftPlace&) {
    return std::vector<Guess>{{7, 0.1f}, {8, 0.6f}, {9, 0.3f}, {8, 0.9f}};
  });
  EXPECT_EQ(mine.tokens_at({}), (Text{8, 9, 7})) << "of a token said twice the first counts";
  EXPECT_NEAR(mine.at({}, mine.greedy)[0].logprob, std::log(0.6f), 1e-6f);
  EXPECT_EQ(mine.adapter.trouble(0).times, 0u);
}

TEST(CustomDrafter, ATreeIsAskedForOnceAndAFlatAnswerAnewAtEveryNode) {
  // 7 -> 8 -> 9 in one answer; behind 9 it may be asked again, behind 6 not.
  Adapted tree([](const DraftPlace& place) {
    if (!place.path.empty()) return std::vector<Guess>{{50, 0.5f}};
    return std::vector<Guess>{{7, 0.5f}, {8, 0.5f, 0}, {9, 0.5f, 1}, {6, 0.2f, -1, true}};
  });
  EXPECT_EQ(tree.tokens_at({}), (Text{7, 6}));
  EXPECT_EQ(tree.tokens_at({7}), (Text{8}));
  EXPECT_EQ(tree.tokens_at({7, 8}), (Text{9}));
  EXPECT_EQ(tree.tokens_at({6}), (Text{}));
  EXPECT_EQ(tree.puppet->asked, (std::vector<Text>{{}}));
  EXPECT_EQ(tree.tokens_at({7, 8, 9}), (Text{50}));
  EXPECT_EQ(tree.tokens_at({33}), (Text{50})) << "another drafter's guess";
  EXPECT_EQ(tree.tokens_at({33}), (Text{50}));
  EXPECT_EQ(tree.puppet->asked, (std::vector<Text>{{}, {7, 8, 9}, {33}})) << "once at each place";
}

TEST(CustomDrafter, ItIsAskedAnewWhenTheTextHasGrown) {
  Adapted mine([](const DraftPlace&) { return std::vector<Guess>{{7, 0.5f}}; });
  (void)mine.tokens_at({});
  const Text accepted{7, 5};
  mine.adapter.observe(0, accepted);
  mine.committed.insert(mine.committed.end(), accepted.begin(), accepted.end());
  (void)mine.tokens_at({});
  EXPECT_EQ(mine.puppet->asked.size(), 2u);
  mine.adapter.end(0);
  EXPECT_EQ(mine.puppet->told, "begin 3; accepted 2; end; ");
}

TEST(CustomDrafter, EachTextHasANumberOfItsOwn) {
  Adapted mine([](const DraftPlace&) { return std::vector<Guess>{}; });
  (void)mine.tokens_at({});
  ASSERT_TRUE(mine.adapter.begin(1, mine.committed, mine.greedy));
  mine.adapter.end(0);
  ASSERT_TRUE(mine.adapter.begin(0, mine.committed, mine.greedy));
  const auto& texts = mine.puppet->texts;
  ASSERT_EQ(texts.size(), 4u);
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[2], texts[0]);
  EXPECT_NE(texts[3], texts[2]);
  EXPECT_NE(texts[3], texts[0]);
}

TEST(CustomDrafter, AnAnswerThatIsWrongIsNoGuessAndSaidOnce) {
  struct Bad {
    std::vector<Guess> answer;
    const char* sentence;
  };
  const Bad bad[] = {
      {{{7, 0.5f}, {kVocab, 0.5f}}, "drafter `mine`: guess 2 is token 64; the vocabulary has 0 to 63"},
      {{{-1, 0.5f}}, "guess 1 is token -1"},
      {{{7, 0}}, "guess 1 (token 7) has a chance of 0; it should be above 0 and at most 1"},
      {{{7, 1.5f}}, "a chance of 1.5"},
      {{{7, std::nanf("")}}, "a chance of nan"},
      {{{7, 0.5f, 0}}, "guess 1 follows guess 1; it should follow an earlier one"},
      {std::vector<Guess>(kMostGuesses + 1, Guess{7}),
       "1025 guesses in one answer are too many; at most 1024"},
  };
  for (const Bad& b : bad) {
    Adapted mine([&](const DraftPlace&) { return b.answer; });
    EXPECT_EQ(mine.tokens_at({}), Text{}) << b.sentence;
    EXPECT_NE(mine.problem().find(b.sentence), std::string::npos) << mine.problem();
    EXPECT_EQ(mine.adapter.trouble(0).times, 1u);
  }
}

TEST(CustomDrafter, WhatItThrowsIsNoGuessAndTheFirstSentenceIsKept) {
  int times = 0;
  Adapted mine([&](const DraftPlace&) -> Result<std::vector<Guess>> {
    if (++times == 1) throw std::runtime_error("no idea what to say");
    if (times == 2) throw 42;
    return fail("an error");
  });
  EXPECT_EQ(mine.tokens_at({}), Text{});
  EXPECT_EQ(mine.tokens_at({5}), Text{});
  EXPECT_EQ(mine.tokens_at({6}), Text{});
  EXPECT_EQ(mine.problem(), "drafter `mine`: no idea what to say");
  EXPECT_EQ(mine.adapter.trouble(0).times, 3u);
  mine.adapter.end(0);
  ASSERT_TRUE(mine.adapter.begin(0, mine.committed, mine.greedy));
  EXPECT_EQ(mine.problem(), "") << "another text";
}

TEST(CustomDrafter, SampledRequestsRankWithTheDrawsOwnNoise) {
  Adapted mine([](const DraftPlace&) {
    std::vector<Guess> guesses;
    for (Token token = 0; token < 40; ++token) guesses.push_back({token, 0.02f});
    return guesses;
  });
  const Sampler sampled = sampler(1);
  const auto candidates = mine.at({}, sampled);
  ASSERT_EQ(candidates.size(), static_cast<std::size_t>(kMaxCandidates));
  for (std::size_t i = 1; i < candidates.size(); ++i)
    EXPECT_GE(sampled.noise(3, candidates[i - 1].token), sampled.noise(3, candidates[i].token));
}

TEST(CustomDrafter, DescribesItsOwnGuessesAboveOthersAndIsSilentWhereItSaysNothing) {
  Adapted mine([](const DraftPlace& place) {
    return place.path.empty() ? std::vector<Guess>{{8, 0.8f}, {9, 0.1f}} : std::vector<Guess>{};
  });
  (void)mine.tokens_at({});
  (void)mine.tokens_at({8});
  const int features = mine.adapter.shape().features;
  const Token tokens[] = {8, 9, 10};
  std::vector<float> x(3 * static_cast<std::size_t>(features));
  Query query;
  query.state = {mine.committed, {}};
  mine.adapter.describe(query, tokens, x.data(), features);
  EXPECT_EQ(x[0], 1.0f);
  EXPECT_GT(x[1], x[features + 1]);
  EXPECT_GT(x[features + 1], x[2 * features + 1]);
  const Token below[] = {8};
  query.state.path = below;
  std::fill(x.begin(), x.end(), 0.0f);
  mine.adapter.describe(query, tokens, x.data(), features);
  EXPECT_EQ(x, std::vector<float>(x.size(), 0.0f));
}

}  // namespace
}  // namespace coppice::core
