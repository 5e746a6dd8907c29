#include "text/split_rules.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace coppice::core {
namespace {

using Words = std::vector<std::string>;

Words split(std::string_view rule_name, std::string_view text) {
  const SplitRule* rule = find_split_rule(rule_name);
  Words words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = rule->word_end(text, at);
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

TEST(SplitRules, WordsTakeTheSpaceBeforeThem) {
  EXPECT_EQ(split("gpt-2", "Hello, big world"), (Words{"Hello", ",", " big", " world"}));
}

TEST(SplitRules, ContractionsAreWordsOnlyInLowerCase) {
  EXPECT_EQ(split("gpt-2", "we'll don't I'VE x'd'"),
            (Words{"we", "'ll", " don", "'t", " I", "'", "VE", " x", "'d", "'"}));
  EXPECT_EQ(split("gpt-2", " 's ''s"), (Words{" '", "s", " ''", "s"}));
}

TEST(SplitRules, ARunOfSpacesLeavesItsLastToTheWordBehindIt) {
  EXPECT_EQ(split("gpt-2", "a   b"), (Words{"a", "  ", " b"}));
  EXPECT_EQ(split("gpt-2", "a \n\n b"), (Words{"a", " \n\n", " b"}));
  EXPECT_EQ(split("gpt-2", "a\n\nb"), (Words{"a", "\n", "\n", "b"}));
  EXPECT_EQ(split("gpt-2", "a   "), (Words{"a", "   "}));
}

TEST(SplitRules, NumbersStayTogetherInGpt2AndAreAloneInSmollm) {
  EXPECT_EQ(split("gpt-2", "x 1234  56"), (Words{"x", " 1234", " ", " 56"}));
  EXPECT_EQ(split("smollm", "x 1234  56"), (Words{"x", " ", "1", "2", "3", "4", "  ", "5", "6"}));
}

TEST(SplitRules, SmollmSeesTheEndOfTheTextBeforeANumber) {
  EXPECT_EQ(split("smollm", "a  \n7"), (Words{"a", "  \n", "7"}));
  EXPECT_EQ(split("smollm", "a  b"), (Words{"a", " ", " b"}));
}

TEST(SplitRules, LettersAndNumbersAreUnicode) {
  EXPECT_EQ(split("gpt-2", "Ünï–中文٣٤½"), (Words{"Ünï", "–", "中文", "٣٤½"}));
  EXPECT_EQ(split("smollm", "中٣½"), (Words{"中", "٣", "½"}));
  EXPECT_EQ(split("gpt-2", "a\u00A0\u3000b"), (Words{"a", "\u00A0", "\u3000", "b"}));
  // A combining mark is neither a letter nor a number.
  EXPECT_EQ(split("gpt-2", "e\u0301e"), (Words{"e", "\u0301", "e"}));
}

TEST(SplitRules, BytesThatAreNotUtf8AreNeitherLettersNorSpaces) {
  EXPECT_EQ(split("gpt-2", "a\xFF\xC3(b"), (Words{"a", "\xFF\xC3(", "b"}));
  EXPECT_EQ(split("gpt-2", " \xE4\xB8"), (Words{" \xE4\xB8"}));
}

TEST(SplitRules, AnUnknownNameHasNoRow) {
  EXPECT_EQ(find_split_rule("llama-bpe"), nullptr);
  EXPECT_EQ(find_split_rule(""), nullptr);
  EXPECT_NE(split_rule_names().find("smollm"), std::string::npos);
}

// Quadratic work on these would take minutes.
TEST(SplitRules, MillionsOfOneCharacterTakeLinearTime) {
  const auto begin = std::chrono::steady_clock::now();
  for (const char* piece : {" ", "a", "1", "!", "\n", "'", "\xFF", "\xE4\xB8", "é", " a"}) {
    std::string text;
    while (text.size() < 2'000'000) text += piece;
    for (const SplitRule& rule : split_rules()) {
      std::size_t at = 0;
      while (at < text.size()) at = rule.word_end(text, at);
      EXPECT_EQ(at, text.size());
    }
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace coppice::core
