#include "text/split_rules.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace coppice::core {
namespace {

using List = std::vector<std::string>;

List split(std::string_view rule_name, std::string_view text) {
  const SplitRule* rule = find_split_rule(rule_name);
  if (rule == nullptr) return {"no such rule"};
  List list;
  Words words(*rule, text);
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) list.emplace_back(word);
  return list;
}

TEST(SplitRules, WordsTakeTheSpaceBeforeThem) {
  EXPECT_EQ(split("gpt-2", "Hello, big world"), (List{"Hello", ",", " big", " world"}));
}

TEST(SplitRules, ContractionsAreWordsOnlyInLowerCase) {
  EXPECT_EQ(split("gpt-2", "we'll don't I'VE x'd'"),
            (List{"we", "'ll", " don", "'t", " I", "'", "VE", " x", "'d", "'"}));
  EXPECT_EQ(split("gpt-2", " 's ''s"), (List{" '", "s", " ''", "s"}));
}

TEST(SplitRules, ARunOfSpacesLeavesItsLastToTheWordBehindIt) {
  EXPECT_EQ(split("gpt-2", "a   b"), (List{"a", "  ", " b"}));
  EXPECT_EQ(split("gpt-2", "a \n\n b"), (List{"a", " \n\n", " b"}));
  EXPECT_EQ(split("gpt-2", "a\n\nb"), (List{"a", "\n", "\n", "b"}));
  EXPECT_EQ(split("gpt-2", "a   "), (List{"a", "   "}));
}

TEST(SplitRules, NumbersStayTogetherInGpt2AndAreAloneInSmollm) {
  EXPECT_EQ(split("gpt-2", "x 1234  56"), (List{"x", " 1234", " ", " 56"}));
  EXPECT_EQ(split("smollm", "x 1234  56"), (List{"x", " ", "1", "2", "3", "4", "  ", "5", "6"}));
}

TEST(SplitRules, SmollmSeesTheEndOfTheTextBeforeANumber) {
  EXPECT_EQ(split("smollm", "a  \n7"), (List{"a", "  \n", "7"}));
  EXPECT_EQ(split("smollm", "a  b"), (List{"a", " ", " b"}));
}

TEST(SplitRules, LettersAndNumbersAreUnicode) {
  EXPECT_EQ(split("gpt-2", "Ünï–中文٣٤½"), (List{"Ünï", "–", "中文", "٣٤½"}));
  EXPECT_EQ(split("smollm", "中٣½"), (List{"中", "٣", "½"}));
  EXPECT_EQ(split("gpt-2", "a\u00A0\u3000b"), (List{"a", "\u00A0", "\u3000", "b"}));
  // A combining mark is neither a letter nor a number.
  EXPECT_EQ(split("gpt-2", "e\u0301e"), (List{"e", "\u0301", "e"}));
}

TEST(SplitRules, BytesThatAreNotUtf8AreNeitherLettersNorSpaces) {
  EXPECT_EQ(split("gpt-2", "a\xFF\xC3(b"), (List{"a", "\xFF\xC3(", "b"}));
  EXPECT_EQ(split("gpt-2", " \xE4\xB8"), (List{" \xE4\xB8"}));
}

TEST(SplitRules, Llama3CutsNumbersInThreesAndLeadsWordsByAnything) {
  EXPECT_EQ(split("llama-bpe", "x12345 67"), (List{"x", "123", "45", " ", "67"}));
  EXPECT_EQ(split("llama-bpe", "(a-b).c"), (List{"(a", "-b", ").", "c"}));
  EXPECT_EQ(split("llama-bpe", "\ta\n\nb"), (List{"\ta", "\n\n", "b"}));
  EXPECT_EQ(split("llama-bpe", "it'S We'Ll'x"), (List{"it", "'S", " We", "'Ll", "'x"}));
}

TEST(SplitRules, Llama3KeepsLineBreaksWithTheMarksBeforeThem) {
  EXPECT_EQ(split("llama-bpe", "};\n\n  x"), (List{"};\n\n", " ", " x"}));
  EXPECT_EQ(split("llama-bpe", "a  \n \n  b"), (List{"a", "  \n \n", " ", " b"}));
  EXPECT_EQ(split("llama-bpe", "a   "), (List{"a", "   "}));
}

TEST(SplitRules, TheLongSMayEndAContractionInAnyCase) {
  EXPECT_EQ(split("llama-bpe", "a'\u017Fb"), (List{"a", "'\u017F", "b"}));
  EXPECT_EQ(split("gpt-2", "a'\u017Fb"), (List{"a", "'", "\u017Fb"}));
}

TEST(SplitRules, Qwen2CutsEveryNumberAndQwen35KeepsMarksInWords) {
  EXPECT_EQ(split("qwen2", "a12"), (List{"a", "1", "2"}));
  EXPECT_EQ(split("qwen2", "e\u0301e x"), (List{"e", "\u0301e", " x"}));
  EXPECT_EQ(split("qwen35", "e\u0301e x"), (List{"e\u0301e", " x"}));
  EXPECT_EQ(split("qwen35", "!\u0301 12"), (List{"!\u0301", " ", "1", "2"}));
}

TEST(SplitRules, Gpt4oCutsWordsWhereTheirCaseRises) {
  EXPECT_EQ(split("gpt-4o", "camelCaseWord"), (List{"camel", "Case", "Word"}));
  EXPECT_EQ(split("gpt-4o", " HTTPServer's"), (List{" HTTPServer's"}));
  EXPECT_EQ(split("gpt-4o", "HTTP SERVER'S x"), (List{"HTTP", " SERVER'S", " x"}));
  EXPECT_EQ(split("gpt-4o", "\u4E2DAB\u4E2DAB"), (List{"\u4E2DAB\u4E2D", "AB"}));
  EXPECT_EQ(split("gpt-4o", "\u0301AB"), (List{"\u0301", "AB"}));
  EXPECT_EQ(split("gpt-4o", "a //\n/\nb1234"), (List{"a", " //\n/\n", "b", "123", "4"}));
}

TEST(SplitRules, TekkenCutsAsGpt4oButForContractionsAndNumbers) {
  EXPECT_EQ(split("tekken", "camelCase's x12"), (List{"camel", "Case", "'s", " x", "1", "2"}));
}

TEST(SplitRules, DeepseekCutsAgainWhatItCutBefore) {
  EXPECT_EQ(split("deepseek-coder", "a b,\n 12"), (List{"a", " b", ",", "\n", " ", "1", "2"}));
  // The second cut's marks include ASCII's letters, so that a word with another letter falls apart.
  EXPECT_EQ(split("deepseek-llm", " na\u00EFve a"), (List{" na", "\u00EF", "ve", " a"}));
  EXPECT_EQ(split("deepseek-llm", "\u00E4b \u4E2D\u6587  "),
            (List{"\u00E4", "b", " ", "\u4E2D\u6587", "  "}));
}

TEST(SplitRules, FalconCutsMarksOffAndDigitsInThrees) {
  EXPECT_EQ(split("falcon", "a, b=12345!?"), (List{"a", ",", " b", "=", "123", "45", "!?"}));
  EXPECT_EQ(split("falcon", " 12"), (List{" ", "12"}));
  // A byte that the byte alphabet spells as a fraction (BD in U+00BD) stands alone.
  EXPECT_EQ(split("falcon", "\u00BD"), (List{"\xC2", "\xBD"}));
}

TEST(SplitRules, WordsAreTheWholeTextInOrder) {
  std::mt19937 random(3);
  const std::vector<std::string> pieces = {" ",      "a",      "B",        "1",      "!",      "\n",
                                           "'s",     "\xFF",   "\xE4\xB8", "\u00E9", "\u4E2D", "\u0301",
                                           "\u3000", "\u00BD", "  ",       "/",      "\r"};
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (std::size_t n = random() % 30; n > 0; --n) text += pieces[random() % pieces.size()];
    for (const SplitRule& rule : split_rules()) {
      std::string joined;
      for (const std::string& word : split(rule.name, text)) joined += word;
      EXPECT_EQ(joined, text) << rule.name;
    }
  }
}

TEST(SplitRules, AnAliasIsItsRule) {
  constexpr std::string_view kSame = "the same as ";
  int aliases = 0;
  for (const SplitRule& alias : split_rules()) {
    if (!alias.origin.starts_with(kSame)) continue;
    ++aliases;
    const SplitRule* rule = find_split_rule(alias.origin.substr(kSame.size()));
    ASSERT_NE(rule, nullptr) << alias.name << " is " << alias.origin << ", which has no row";
    EXPECT_EQ(alias.cuts.data(), rule->cuts.data()) << alias.name;
    EXPECT_EQ(alias.nfc, rule->nfc) << alias.name;
    EXPECT_EQ(alias.whole_words_first, rule->whole_words_first) << alias.name;
    EXPECT_EQ(alias.adds_begin, rule->adds_begin) << alias.name;
  }
  EXPECT_GE(aliases, 4);
}

TEST(SplitRules, AnUnknownNameHasNoRow) {
  EXPECT_EQ(find_split_rule("default"), nullptr);
  EXPECT_EQ(find_split_rule(""), nullptr);
  EXPECT_NE(split_rule_names().find("smollm"), std::string::npos);
}

// Quadratic work on these would take hours.
TEST(SplitRules, AMillionOfOneCharacterTakesLinearTime) {
  for (const char* piece : {" ", "a", "A", "1", "!", "\n", "'", "\xFF", "\xE4\xB8", "\u00E9", "\u4E2D",
                            "\u0301", " a", "\u4E2DA", "A\u4E2D", " \n", "!A"}) {
    std::string text;
    while (text.size() < 1'000'000) text += piece;
    for (const SplitRule& rule : split_rules()) {
      Words words(rule, text);
      std::size_t bytes = 0;
      for (std::string_view word = words.next(); !word.empty(); word = words.next()) bytes += word.size();
      EXPECT_EQ(bytes, text.size());
    }
  }
}

}  // namespace
}  // namespace coppice::core
