#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "text/test_vocabulary.h"
#include "text/testing.h"

namespace coppice::core {
namespace {

using testing::error_of;
using testing::id_of;
using testing::make_tokenizer;
using testing::small_vocabulary;
using Tokens = std::vector<Token>;

TEST(Tokenizer, MergesInsideWordsAndNotAcrossThem) {
  const auto tokenizer = make_tokenizer(small_vocabulary());
  const Token hello = id_of(tokenizer->vocabulary(), "hello");
  const Token space_w = id_of(tokenizer->vocabulary(), "Ġw");
  EXPECT_EQ(tokenizer->encode("hello"), Tokens{hello});
  EXPECT_EQ(tokenizer->encode("hello wo"), (Tokens{hello, space_w, 'o'}));
  // "ow" is a merge, but "o" and "w" are in two words here.
  EXPECT_EQ(tokenizer->encode("o w"), (Tokens{'o', space_w}));
}

TEST(Tokenizer, NumbersMergeInGpt2AndNotInSmollm) {
  const auto gpt2 = make_tokenizer(small_vocabulary("gpt-2")),
             smollm = make_tokenizer(small_vocabulary("smollm"));
  EXPECT_EQ(gpt2->encode("12"), Tokens{id_of(gpt2->vocabulary(), "12")});
  EXPECT_EQ(smollm->encode("12"), (Tokens{'1', '2'}));
}

TEST(Tokenizer, EveryByteStringComesBack) {
  const auto tokenizer = make_tokenizer(small_vocabulary());
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::string text(random() % 40, ' ');
    for (char& byte : text)
      byte = static_cast<char>(random() % 4 ? "helo w12\n'"[random() % 10] : random() % 256);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

TEST(Tokenizer, ControlTokensAreTextUnlessAskedFor) {
  const auto tokenizer = make_tokenizer(small_vocabulary());
  const Token end = tokenizer->vocabulary().eos;
  for (const Token token : tokenizer->encode("a<|im_end|>b")) EXPECT_NE(token, end);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a<|im_end|>b")), "a<|im_end|>b");
  EXPECT_EQ(tokenizer->encode("a<|im_end|>b", true), (Tokens{'a', end, 'b'}));
  EXPECT_EQ(tokenizer->encode("<|im_end|><|im_end|>", true), (Tokens{end, end}));
}

TEST(Tokenizer, ControlTokensHaveNoBytesUnlessShown) {
  const auto tokenizer = make_tokenizer(small_vocabulary());
  const Token end = tokenizer->vocabulary().eos;
  EXPECT_EQ(tokenizer->bytes(end), "");
  EXPECT_EQ(tokenizer->bytes(end, true), "<|im_end|>");
  EXPECT_EQ(tokenizer->decode(Tokens{'a', end}), "a");
  EXPECT_EQ(tokenizer->decode(Tokens{'a', end}, true), "a<|im_end|>");
  EXPECT_EQ(tokenizer->bytes(-1), "");
  EXPECT_EQ(tokenizer->bytes(tokenizer->size()), "");
  EXPECT_TRUE(tokenizer->ends_text(end));
  EXPECT_FALSE(tokenizer->ends_text('a'));
}

TEST(Tokenizer, UserDefinedTokensAreAlwaysFoundTheLongestFirst) {
  const auto tokenizer = make_tokenizer(small_vocabulary());
  const Token tool = id_of(tokenizer->vocabulary(), "<tool");
  const Token tool_call = id_of(tokenizer->vocabulary(), "<tool call>");
  EXPECT_EQ(tokenizer->encode("a<tool call>b"), (Tokens{'a', tool_call, 'b'}));
  EXPECT_EQ(tokenizer->encode("<tool cal"), (Tokens{tool, ' ', 'c', 'a', 'l'}));
  EXPECT_EQ(tokenizer->decode(Tokens{tool_call}), "<tool call>");
}

TEST(Tokenizer, AByteWithoutATokenIsTheUnknownTokenOrNothingButNeverControl) {
  Vocabulary vocabulary = small_vocabulary();
  vocabulary.tokens['!'] = "a token that no text makes";
  vocabulary.unknown = vocabulary.eos;
  EXPECT_EQ(make_tokenizer(vocabulary)->encode("a!a"), (Tokens{'a', 'a'}));
  vocabulary.unknown = 'q';
  EXPECT_EQ(make_tokenizer(vocabulary)->encode("a!a"), (Tokens{'a', 'q', 'a'}));
}

TEST(Tokenizer, AMergeNeverMakesAControlToken) {
  Vocabulary vocabulary = small_vocabulary();
  vocabulary.kinds[static_cast<std::size_t>(id_of(vocabulary, "hello"))] = TokenKind::control;
  EXPECT_EQ(make_tokenizer(vocabulary)->encode("hello"), (Tokens{id_of(vocabulary, "hell"), 'o'}));
}

// Such a token stands for its spelling, not for the bytes the alphabet would make of it.
TEST(Tokenizer, AMergeNeverMakesAUserDefinedToken) {
  Vocabulary vocabulary = small_vocabulary();
  vocabulary.kinds[static_cast<std::size_t>(id_of(vocabulary, "\u0120w"))] = TokenKind::user_defined;
  const auto tokenizer = make_tokenizer(vocabulary);
  EXPECT_EQ(tokenizer->encode(" w"), (Tokens{' ', 'w'}));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(" w \u0120w")), " w \u0120w");
}

TEST(Tokenizer, ATokenThatMergesDoNotReachIsNotUsed) {
  Vocabulary vocabulary = small_vocabulary();
  vocabulary.tokens.push_back("xyz");
  vocabulary.kinds.push_back(TokenKind::normal);
  EXPECT_EQ(make_tokenizer(vocabulary)->encode("xyz"), (Tokens{'x', 'y', 'z'}));
}

TEST(Tokenizer, AWordIsTheSameTokensWhenItComesAgain) {
  // The second token of a spelling is what merges make; the first is only spelled like it.
  Vocabulary vocabulary = small_vocabulary();
  vocabulary.tokens[3] = "hell";
  const auto tokenizer = make_tokenizer(vocabulary);
  for (const char* text : {"hello", "hell", "ow", "helloo", "wow"}) {
    const Tokens first = tokenizer->encode(text);
    EXPECT_EQ(tokenizer->encode(text), first) << text;
    EXPECT_EQ(tokenizer->encode(std::string(text) + " w").front(), first.front()) << text;
  }
}

// Long texts remember what their words became.
TEST(Tokenizer, TheWordsOfALongTextAreTheSameTokensAsAlone) {
  const auto tokenizer = make_tokenizer(small_vocabulary());
  const std::vector<std::string> words = {" hello", " hellow", " owl", " lowell", " 1212", " \u00E9", " w"};
  std::mt19937 random(2);
  std::string text;
  Tokens expected;
  while (text.size() < 50'000) {
    const std::string& word = words[random() % words.size()];
    const Tokens tokens = tokenizer->encode(word);
    text += word;
    expected.insert(expected.end(), tokens.begin(), tokens.end());
  }
  EXPECT_EQ(tokenizer->encode(text), expected);
}

TEST(Tokenizer, WhatIsUnknownIsRefusedByNameWithTheNearest) {
  Vocabulary vocabulary = small_vocabulary("smolllm");
  EXPECT_NE(error_of(vocabulary).find("\"smolllm\""), std::string::npos);
  EXPECT_NE(error_of(vocabulary).find("the nearest are smollm,"), std::string::npos) << error_of(vocabulary);
  vocabulary.pre = "qwen3";
  EXPECT_NE(error_of(vocabulary).find("the nearest are qwen2, qwen35"), std::string::npos)
      << error_of(vocabulary);
  vocabulary.model = "bert";
  EXPECT_NE(error_of(vocabulary).find("\"bert\""), std::string::npos);
}

TEST(Tokenizer, AFileThatNamesNoRuleIsNotGuessed) {
  EXPECT_NE(error_of(small_vocabulary("")).find("tokenizer.ggml.pre is missing"), std::string::npos);
  EXPECT_NE(error_of(small_vocabulary("default")).find("names no rule"), std::string::npos);
}

TEST(Tokenizer, WhereARuleSaysSoAWholeWordIsItsTokenWithoutMerges) {
  Vocabulary vocabulary = small_vocabulary("llama-bpe");
  vocabulary.tokens.push_back("xyz");
  vocabulary.kinds.push_back(TokenKind::normal);
  const Token xyz = id_of(vocabulary, "xyz");
  EXPECT_EQ(make_tokenizer(vocabulary)->encode("xyz"), Tokens{xyz});
  EXPECT_EQ(make_tokenizer(vocabulary)->encode("xyzx"), (Tokens{'x', 'y', 'z', 'x'}));
}

TEST(Tokenizer, ARuleWithFormCComposesFirst) {
  const auto tokenizer = make_tokenizer(small_vocabulary("qwen2"));
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("e\u0301")), "\u00E9");
  EXPECT_FALSE(tokenizer->gives_back());
  EXPECT_TRUE(make_tokenizer(small_vocabulary("gpt-2"))->gives_back());
}

TEST(Tokenizer, PartsAreOneTextButForControlTokens) {
  const auto tokenizer = make_tokenizer(small_vocabulary());
  const Token start = tokenizer->vocabulary().bos, end = tokenizer->vocabulary().eos;
  const Token hello = id_of(tokenizer->vocabulary(), "hello");
  const TextPart parts[] = {{"<|im_start|>he", true}, {"llo<|im_end|>", false}, {"<|im_end|>", true}};
  Tokens expected = {start, hello};
  for (const char c : std::string("<|im_end|>")) expected.push_back(c);
  expected.push_back(end);
  EXPECT_EQ(tokenizer->encode(parts), expected);
  // A control token is never made of two parts, a user's token may be.
  const TextPart halves[] = {{"<|im_", true}, {"end|>", true}, {"<tool", true}, {" call>", false}};
  const Tokens halved = tokenizer->encode(halves);
  EXPECT_EQ(std::count(halved.begin(), halved.end(), end), 0);
  EXPECT_EQ(halved.back(), id_of(tokenizer->vocabulary(), "<tool call>"));
}

TEST(Tokenizer, ContradictionsAreRefused) {
  Vocabulary vocabulary = small_vocabulary();
  vocabulary.kinds.pop_back();
  EXPECT_NE(error_of(vocabulary), "");
  vocabulary = small_vocabulary();
  vocabulary.merges.push_back("zz zz");
  EXPECT_NE(error_of(vocabulary).find("\"zz\""), std::string::npos);
  vocabulary = small_vocabulary();
  vocabulary.merges.push_back("one");
  EXPECT_NE(error_of(vocabulary), "");
  vocabulary = small_vocabulary();
  vocabulary.eos = 100000;
  EXPECT_NE(error_of(vocabulary).find("100000"), std::string::npos);
  EXPECT_NE(error_of(Vocabulary{}), "");
}

TEST(Tokenizer, OneInstanceServesManyThreads) {
  const auto tokenizer = make_tokenizer(small_vocabulary());
  const Tokens expected = tokenizer->encode("hello world 12 <tool call>");
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) wrong[t] += tokenizer->encode("hello world 12 <tool call>") != expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(Tokenizer, AWordOfAMegabyteIsNotQuadratic) {
  const auto tokenizer = make_tokenizer(small_vocabulary());
  const auto begin = std::chrono::steady_clock::now();
  std::string text;
  while (text.size() < (1u << 20)) text += "hellolleh";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(SameVocabulary, EqualOnesPassAndTheErrorSaysWhereTheyDiffer) {
  const Vocabulary target = small_vocabulary();
  Vocabulary draft = target;
  EXPECT_TRUE(same_vocabulary(target, draft));
  draft.tokens[70] = "other";
  EXPECT_NE(same_vocabulary(target, draft).error().message.find("token 70"), std::string::npos);
  draft = target;
  draft.tokens.pop_back();
  EXPECT_NE(same_vocabulary(target, draft).error().message.find("267"), std::string::npos);
}

}  // namespace
}  // namespace coppice::core
