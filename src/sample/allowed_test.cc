// A grammar at the draw: the filters first, then the mask, or the mask first where nothing would be left.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sample/sampler.h"
#include "sample/testing.h"

namespace coppice::core {
namespace {

constexpr int kVocab = 100;

// Tokens are the bytes of their ids; the last one ends the text.
std::shared_ptr<const grammar::TokenTrie> bytes_as_tokens() {
  grammar::TokenBytesList list;
  for (int byte = 0; byte < kVocab - 1; ++byte) list.bytes.emplace_back(1, static_cast<char>(byte));
  list.bytes.emplace_back();
  list.ends = {kVocab - 1};
  return std::make_shared<const grammar::TokenTrie>(list);
}

Sampler make(Sampling options, const char* text) {
  auto grammar = Grammar::parse(text);
  EXPECT_TRUE(grammar) << (grammar ? "" : grammar.error().message);
  options.grammar = *grammar;
  auto sampler = Sampler::make(options, kVocab, {kVocab - 1});
  EXPECT_TRUE(sampler);
  EXPECT_TRUE(sampler->constrain(bytes_as_tokens(), {0, false}));
  return std::move(*sampler);
}

Sampler without(Sampling options) { return std::move(*Sampler::make(options, kVocab, {kVocab - 1})); }

const std::pair<const char*, void (*)(Sampling&)> kSamplings[] = {
    {"greedy", [](Sampling&) {}},
    {"temperature", [](Sampling& s) { s.temperature = 1.3f; }},
    {"top_k", [](Sampling& s) { s.temperature = 1, s.top_k = 12; }},
    {"top_p", [](Sampling& s) { s.temperature = 2, s.top_p = 0.9f; }},
    {"typical_min_p", [](Sampling& s) { s.temperature = 3, s.typical_p = 0.9f, s.min_p = 0.001f; }},
    {"penalties",
     [](Sampling& s) {
       s.temperature = 1, s.repetition_penalty = 1.5f, s.banned = {50, 51};
     }},
};

// Brute force: the allowed survivor with the best score, among those of the distribution without a grammar;
// none left: of the distribution of logits that the mask was put into first.
Token by_definition(const Sampling& options, const std::vector<float>& logits, const PathState& state,
                    bool (*allows)(Token)) {
  const Sampler plain = without(options);
  Sampler::Scratch scratch(kVocab);
  const auto best_of = [&](const std::vector<float>& row) {
    EXPECT_TRUE(plain.distribution(row, state, scratch));
    Token best = kNoToken;
    double most = 0;
    for (Token t = 0; t < kVocab; ++t) {
      if (scratch.probabilities[t] <= 0 || !allows(t)) continue;
      const double score =
          scratch.logits[t] +
          double{options.temperature} * (options.temperature > 0 ? plain.noise(state.index(), t) : 0);
      if (best == kNoToken || score > most) best = t, most = score;
    }
    return best;
  };
  if (options.temperature > 0)
    if (const Token best = best_of(logits); best != kNoToken) return best;
  std::vector<float> masked = logits;
  for (Token t = 0; t < kVocab; ++t)
    if (!allows(t)) masked[t] = -std::numeric_limits<float>::infinity();
  return best_of(masked);
}

TEST(Allowed, TheDrawIsTheBestAllowedSurvivorByDefinition) {
  // No more than a few dozen of them, or one: often none survives the filters.
  const std::pair<const char*, bool (*)(Token)> grammars[] = {
      {"root ::= [0-Z] .*", [](Token t) { return t >= '0' && t <= 'Z'; }},
      {"root ::= \"7\" .*", [](Token t) { return t == '7'; }},
  };
  int same = 0, other = 0;
  for (const auto& [text, allows] : grammars) {
    for (const auto& [name, set] : kSamplings) {
      Sampling options;
      set(options);
      const Sampler sampler = make(options, text), plain = without(options);
      Sampler::Scratch scratch(kVocab);
      for (std::uint64_t seed = 0; seed < 60; ++seed) {
        const auto logits = random_logits(kVocab, seed);
        const auto drawn = sampler.draw(logits, {}, scratch);
        ASSERT_TRUE(drawn) << drawn.error().message;
        ASSERT_EQ(drawn->token, by_definition(options, logits, {}, allows))
            << name << " " << text << " " << seed;
        const Token free = plain.draw(logits, {}, scratch)->token;
        if (allows(free)) {
          EXPECT_EQ(drawn->token, free);
        }
        ++(drawn->token == free ? same : other);
      }
    }
  }
  EXPECT_GT(same, 50);
  EXPECT_GT(other, 50);
}

TEST(Allowed, TheRankingBeginsWithTheDrawAndHasNothingForbidden) {
  for (const auto& [name, set] : kSamplings) {
    Sampling options;
    set(options);
    const Sampler sampler = make(options, "root ::= [0-9] .*");
    Sampler::Scratch scratch(kVocab);
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      const auto logits = random_logits(kVocab, seed);
      Ranked ranked[8];
      const int count = sampler.rank(logits, {}, scratch, ranked);
      ASSERT_GE(count, 1);
      EXPECT_EQ(ranked[0].token, sampler.draw(logits, {}, scratch)->token) << name;
      for (int i = 0; i < count; ++i) {
        EXPECT_TRUE(ranked[i].token >= '0' && ranked[i].token <= '9');
        EXPECT_FLOAT_EQ(ranked[i].logprob, sampler.logprob(ranked[i].token, logits, {}, scratch));
      }
    }
  }
}

TEST(Allowed, TheDistributionIsThatOfTheSurvivorsThatAreAllowed) {
  Sampling options;
  options.temperature = 1;
  options.top_k = 40;
  options.acceptance = Acceptance::rejection;
  const Sampler sampler = make(options, "root ::= [0-Z] .*"), plain = without(options);
  Sampler::Scratch scratch(kVocab), other(kVocab);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto logits = random_logits(kVocab, seed);
    ASSERT_TRUE(sampler.distribution(logits, {}, scratch));
    ASSERT_TRUE(plain.distribution(logits, {}, other));
    double sum = 0, share = 0;
    for (Token t = '0'; t <= 'Z'; ++t) share += other.probabilities[t];
    if (share == 0) continue;
    for (Token t = 0; t < kVocab; ++t) {
      const bool inside = t >= '0' && t <= 'Z';
      EXPECT_NEAR(scratch.probabilities[t], inside ? other.probabilities[t] / share : 0.0, 1e-5);
      sum += scratch.probabilities[t];
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

TEST(Allowed, LogProbabilitiesAreThoseWithoutAGrammar) {
  for (const float temperature : {0.0f, 1.0f}) {
    Sampling options;
    options.temperature = temperature;
    options.logprobs = 5;
    const Sampler sampler = make(options, "root ::= \"7\" .*"), plain = without(options);
    Sampler::Scratch scratch(kVocab), other(kVocab);
    const auto logits = random_logits(kVocab, 3);
    const auto drawn = sampler.draw(logits, {}, scratch);
    ASSERT_TRUE(drawn);
    ASSERT_EQ(drawn->token, '7');
    ASSERT_TRUE(plain.draw(logits, {}, other));
    ASSERT_EQ(scratch.top.size(), other.top.size());
    for (std::size_t i = 0; i < scratch.top.size(); ++i) {
      EXPECT_EQ(scratch.top[i].token, other.top[i].token);
      EXPECT_EQ(scratch.top[i].logprob, other.top[i].logprob);
    }
    double sum = 0;
    for (const float logit : logits) sum += std::exp(double{logit} - logits['7']);
    EXPECT_NEAR(drawn->logprob, -std::log(sum), 1e-4);
  }
}

TEST(Allowed, WhatWasWrittenDecidesWhatMayFollow) {
  const Sampler sampler = make({}, "root ::= \"12\" | \"34\"");
  Sampler::Scratch scratch(kVocab);
  const std::vector<float> logits = random_logits(kVocab, 1);
  std::vector<Token> tokens;
  while (tokens.empty() || tokens.back() != kVocab - 1) {
    const auto drawn = sampler.draw(logits, {tokens, {}}, scratch);
    ASSERT_TRUE(drawn) << drawn.error().message;
    tokens.push_back(drawn->token);
    ASSERT_LE(tokens.size(), 3u);
  }
  EXPECT_EQ(tokens.size(), 3u);
  EXPECT_EQ(tokens[1], tokens[0] + 1);
}

TEST(Allowed, WhatLeavesNothingToDrawIsSaid) {
  Sampling options;
  options.banned = {'7'};
  const Sampler sampler = make(options, "root ::= \"7\"");
  Sampler::Scratch scratch(kVocab);
  const auto drawn = sampler.draw(random_logits(kVocab, 1), {}, scratch);
  ASSERT_FALSE(drawn);
  EXPECT_EQ(drawn.error().message,
            "no token can be drawn: of the tokens that the grammar allows here, each is banned or its logit "
            "is not a "
            "finite number; ban fewer tokens");
  Sampling endless;
  endless.ignore_eos = true;
  endless.grammar = Grammar::json_object();
  EXPECT_FALSE(endless.validate(kVocab));
}

}  // namespace
}  // namespace coppice::core
