// ngram and lookup as drafters.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "base/allocation_count.h"
#include "draft/lookup_drafter.h"
#include "draft/ngram_drafter.h"

namespace coppice::core {
namespace {

using Text = std::vector<Token>;
constexpr int kVocab = 64;

Text periodic(int length) {
  Text text;
  for (int i = 0; i < length; ++i) text.push_back(i % 13 == 12 ? 40 + i % 5 : i % 13);
  return text;
}

Vocabulary vocabulary() {
  Vocabulary v;
  for (int i = 0; i < kVocab; ++i) v.tokens.push_back("t" + std::to_string(i));
  return v;
}

std::string ngram_file(const Vocabulary& v) {
  KatzBuildOptions options;
  options.order = 5;
  options.vocab = kVocab;
  options.vocabulary_hash = vocabulary_hash(v.tokens);
  KatzBuilder builder(options);
  builder.add(periodic(400));
  std::string path = ::testing::TempDir() + "cheap_drafters_test.ngram";
  EXPECT_TRUE(builder.write(path));
  return path;
}

Sampler sampler(float temperature) {
  Sampling options;
  options.temperature = temperature;
  options.seed = 5;
  return *Sampler::make(options, kVocab, {});
}

struct Asked {
  Candidate candidates[kMaxCandidates];
  Query query;
  Asked(const Text& committed, std::span<const Token> path, const Sampler& s) {
    query.state = {committed, path};
    query.sampler = &s;
    query.candidates = candidates;
  }
};

std::vector<std::unique_ptr<Drafter>> both(const std::string& file, const Vocabulary& v) {
  DraftEnvironment environment;
  environment.vocabulary = &v;
  environment.context = 500;
  DrafterNode ngram;
  ngram.name = "ngram";
  ngram.files = {file};
  DrafterNode lookup;
  lookup.name = "lookup";
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(*make_ngram(ngram, environment));
  drafters.push_back(*make_lookup(lookup, environment));
  return drafters;
}

TEST(CheapDrafters, GuessWhatFollowedBefore) {
  const Vocabulary v = vocabulary();
  const Sampler greedy = sampler(0);
  const Text text = periodic(200);
  for (const auto& drafter : both(ngram_file(v), v)) {
    ASSERT_TRUE(drafter->begin(0, text, greedy));
    const Token next = periodic(201).back(), after = periodic(202).back();
    Asked here(text, {}, greedy);
    drafter->predict({&here.query, 1});
    ASSERT_GE(here.query.count, 1);
    EXPECT_EQ(here.candidates[0].token, next) << drafter->name();
    EXPECT_GT(here.candidates[0].logprob, std::log(0.5f));
    const Token path[] = {next};
    Asked below(text, path, greedy);
    drafter->predict({&below.query, 1});
    EXPECT_EQ(below.candidates[0].token, after) << drafter->name();
    for (int i = 1; i < here.query.count; ++i)
      EXPECT_LE(here.candidates[i].logprob, here.candidates[i - 1].logprob);
  }
}

TEST(CheapDrafters, DescribeTheRightTokenHigherAndUnseenContextsByTheTokenAlone) {
  const Vocabulary v = vocabulary();
  const Sampler greedy = sampler(0);
  const Text text = periodic(200);
  for (const auto& drafter : both(ngram_file(v), v)) {
    ASSERT_TRUE(drafter->begin(0, text, greedy));
    const int features = drafter->shape().features;
    const int stride = features + 3;
    const Token tokens[] = {periodic(201).back(), 63};
    std::vector<float> x(2 * static_cast<std::size_t>(stride), 7.0f);
    Asked here(text, {}, greedy);
    drafter->describe(here.query, tokens, x.data(), stride);
    for (int f = 0; f < features; ++f) EXPECT_GT(x[f], x[stride + f]) << drafter->name() << f;
    EXPECT_EQ(x[features], 7.0f);
    const Token strange[] = {61, 62};
    Asked unseen(text, strange, greedy);
    drafter->describe(unseen.query, tokens, x.data(), stride);
    constexpr int kOfContexts = 10;  // at least
    for (int f = 0; f < kOfContexts; ++f) EXPECT_EQ(x[f], 0.0f) << drafter->name() << f;
    EXPECT_GT(x[drafter->name() == "lookup" ? 14 : kOfContexts], 0.0f);  // how common it is
    if (drafter->name() != "lookup") continue;
    for (int f = 0; f < features; ++f) EXPECT_EQ(x[stride + f], 0.0f) << f;  // 63 never stood there
  }
}

TEST(CheapDrafters, SampledRequestsRankWithTheDrawsOwnNoise) {
  const Vocabulary v = vocabulary();
  const Sampler sampled = sampler(1);
  const Text text = periodic(220);
  for (const auto& drafter : both(ngram_file(v), v)) {
    ASSERT_TRUE(drafter->begin(0, text, sampled));
    Asked here(text, {}, sampled);
    here.query.wanted = kMaxCandidates;
    drafter->predict({&here.query, 1});
    for (int i = 1; i < here.query.count; ++i) {
      const auto score = [&](int c) {
        return here.candidates[c].logprob + sampled.noise(220, here.candidates[c].token);
      };
      EXPECT_GE(score(i - 1), score(i));
    }
  }
}

TEST(CheapDrafters, LookupBucketIsTheLongestMatch) {
  const Vocabulary v = vocabulary();
  const Sampler greedy = sampler(0);
  LookupDrafter lookup(1, 100);
  ASSERT_TRUE(lookup.begin(0, Text{1, 2, 3, 4, 5, 6, 1, 2, 3}, greedy));
  const Text committed{1, 2, 3, 4, 5, 6, 1, 2, 3};
  EXPECT_EQ(lookup.bucket(Asked(committed, {}, greedy).query), 3);
  const Token path[] = {4};
  EXPECT_EQ(lookup.bucket(Asked(committed, path, greedy).query), 4);
  const Token unseen[] = {9};
  EXPECT_EQ(lookup.bucket(Asked(committed, unseen, greedy).query), 0);
}

TEST(CheapDrafters, LookupKnowsHowOftenItsMatchesWereRight) {
  const Sampler greedy = sampler(0);
  const auto said_of_the_match = [&](const Text& text) {
    LookupDrafter lookup(1, 100);
    EXPECT_TRUE(lookup.begin(0, text, greedy));
    Asked here(text, {}, greedy);
    const Token followed[] = {2};
    std::vector<float> x(static_cast<std::size_t>(lookup.shape().features));
    lookup.describe(here.query, followed, x.data(), lookup.shape().features);
    return std::vector<float>(x.end() - 5, x.end());
  };
  const auto right = said_of_the_match({1, 2, 1, 2, 1, 2, 1, 2, 1});
  const auto wrong = said_of_the_match({1, 3, 1, 4, 1, 5, 1, 2, 1});
  EXPECT_EQ(right[0], 1.0f);
  EXPECT_EQ(wrong[0], 1.0f);
  EXPECT_GT(right[1], wrong[1]);  // a longer match
  EXPECT_GT(right[2], 0.0f);
  EXPECT_LT(wrong[2], 0.0f);
}

TEST(CheapDrafters, LookupForgetsAtBegin) {
  const Sampler greedy = sampler(0);
  LookupDrafter lookup(2, 100);
  ASSERT_TRUE(lookup.begin(1, Text{1, 2, 1}, greedy));
  lookup.end(1);
  ASSERT_TRUE(lookup.begin(1, Text{5, 1}, greedy));
  const Text committed{5, 1};
  Asked here(committed, {}, greedy);
  here.query.sequence = 1;
  lookup.predict({&here.query, 1});
  EXPECT_EQ(here.query.count, 0);
}

TEST(CheapDrafters, AllocateNothingAfterBegin) {
  const Vocabulary v = vocabulary();
  const Sampler sampled = sampler(1);
  const Text text = periodic(450);
  const Text prompt(text.begin(), text.begin() + 100);
  for (const auto& drafter : both(ngram_file(v), v)) {
    ASSERT_TRUE(drafter->begin(0, prompt, sampled));
    std::vector<float> x(64 * 16);
    Asked here(text, {}, sampled);
    const testing::AllocationCount count;
    for (std::size_t i = prompt.size(); i < text.size(); ++i) {
      here.query.state.committed = std::span(text).first(i);
      drafter->predict({&here.query, 1});
      drafter->describe(here.query, std::span(text).first(16), x.data(), 64);
      drafter->bucket(here.query);
      drafter->observe(0, std::span(text).subspan(i, 1));
    }
    EXPECT_EQ(count.so_far(), 0) << drafter->name();
  }
}

TEST(CheapDrafters, AnNgramFileOfAnotherVocabularyIsRefused) {
  Vocabulary v = vocabulary();
  const std::string file = ngram_file(v);
  v.tokens[7] = "other";
  DraftEnvironment environment;
  environment.vocabulary = &v;
  DrafterNode node;
  node.name = "ngram";
  node.files = {file};
  const auto refused = make_ngram(node, environment);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("another vocabulary"), std::string::npos);
}

}  // namespace
}  // namespace coppice::core
