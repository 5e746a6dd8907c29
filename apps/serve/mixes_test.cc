#include "mixes.h"

#include <gtest/gtest.h>

namespace coppice::serve {
namespace {

SpeculationAsk asks(const char* drafters, const char* policy = nullptr) {
  SpeculationAsk ask;
  if (drafters != nullptr) ask.drafters = drafters;
  if (policy != nullptr) ask.policy = policy;
  return ask;
}

TEST(Mixes, WithoutAWordLookupGuesses) {
  const Mixes mixes("fixed");
  EXPECT_EQ(mixes.first().drafters, "lookup");
  EXPECT_EQ(mixes.choose(std::nullopt)->policy, "fixed");
}

TEST(Mixes, TheFirstIsTheDefaultAndTheOthersHaveNames) {
  Mixes mixes;
  ASSERT_TRUE(mixes.add("fast=lookup | ngram(a.ngram)"));
  ASSERT_TRUE(mixes.add("staged=stage(d.gguf, lookup, nodes=4)"));
  EXPECT_EQ(mixes.choose(std::nullopt)->name, "fast");
  EXPECT_EQ(mixes.choose(asks("staged"))->drafters, "stage(d.gguf, lookup, nodes=4)");
  EXPECT_EQ(mixes.choose(asks("none"))->drafters, "none");
  EXPECT_EQ(mixes.choose(asks("lookup"))->name, "lookup");
}

TEST(Mixes, AnExpressionThatNamesAFileIsTheOperatorsAlone) {
  Mixes mixes;
  ASSERT_TRUE(mixes.add("ngram(/secret/a.ngram)"));
  EXPECT_EQ(mixes.first().name, "default") << "no path in an answer";
  for (const char* expression : {"lookup(max=8)", "lookup | lookup", "ngram(/etc/passwd)",
                                 "lookup | ngram(a)", "model(m.gguf)", "", "lookup |", "fast"}) {
    const auto mix = mixes.choose(asks(expression));
    ASSERT_FALSE(mix) << expression;
    EXPECT_EQ(mix.error().status, 400);
    EXPECT_EQ(mix.error().param, "speculation.drafters");
    EXPECT_NE(mix.error().message.find("there is default, lookup, none"), std::string::npos)
        << mix.error().message;
  }
}

TEST(Mixes, APolicyThatReadsAFileIsTheOperatorsAlone) {
  const Mixes mixes("adaptive(gate=/secret/g.gate)");
  EXPECT_EQ(mixes.first().shown_policy(), "adaptive");
  EXPECT_EQ(mixes.choose(asks(nullptr, "adaptive(batch=8)"))->policy, "adaptive(batch=8)");
  for (const char* policy : {"adaptive(gate = x)", "adaptive(from=/etc/passwd)", "clever"}) {
    const auto mix = mixes.choose(asks(nullptr, policy));
    ASSERT_FALSE(mix) << policy;
    EXPECT_EQ(mix.error().param, "speculation.policy");
  }
}

TEST(Mixes, ALongNameIsNotSaidBackInWhole) {
  const std::string longest(100000, 'k');
  const auto mix = Mixes().choose(asks(longest.c_str()));
  ASSERT_FALSE(mix);
  EXPECT_LT(mix.error().message.size(), 400u);
  const auto policy = Mixes().choose(asks(nullptr, longest.c_str()));
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().message, "speculation.policy is longer than the 200 characters possible here");
}

TEST(Mixes, TwoOfOneNameAreRefused) {
  Mixes mixes;
  ASSERT_TRUE(mixes.add("a=lookup"));
  EXPECT_EQ(mixes.add("a=none").error().message,
            "--drafters a=none: there are two mixes \"a\"; NAME=EXPRESSION gives each a name of its own");
}

}  // namespace
}  // namespace coppice::serve
