#include "grammar/gbnf.h"

#include <gtest/gtest.h>

#include "grammar/testing.h"

namespace coppice::core::grammar {
namespace {

struct Sample {
  const char* grammar;
  std::vector<std::string> in, out;
};

TEST(Gbnf, EverythingInItMeansWhatItSays) {
  const Sample samples[] = {
      {"root ::= \"yes\" | \"no\"", {"yes", "no"}, {"", "ye", "yesno", "maybe"}},
      {"root ::= [a-c]+ [^a-c]", {"ad", "abcabc!", "aé"}, {"a", "d", "abca"}},
      {"root ::= \"a\"* \"b\"? \"c\"{2}", {"cc", "aabcc", "bcc"}, {"c", "ccc", "abbcc"}},
      {"root ::= \"a\"{2,3} \"b\"{1,} \"c\"{,2}",
       {"aab", "aaabbcc", "aabc"},
       {"ab", "aaaab", "aa", "aabccc"}},
      {"root ::= (\"a\" | \"bc\")+ #comment\n  \"d\"\n\n", {"ad", "bcad"}, {"d", "bd"}},
      {"root ::= pair pair\npair ::= \"(\" pair \")\" | \".\"", {"..", "(.)((.))"}, {".", "(.)", "(..)"}},
      {"root ::= . \"x\"", {"ax", "\u00e9x", "\U0001F600x", "\nx"}, {"x", "abx", "\xc3x", "\xed\xa0\x80x"}},
      {"root ::= \"\\x41\\u00e9\\U0001F600\\n\\t\\\"\\\\\"", {"A\u00e9\U0001F600\n\t\"\\"}, {"A"}},
      {"root ::= [\\]\\-\\\\\\u00e9-\\u00ff]+", {"]", "-", "\\", "\u00f0", "]-"}, {"[", "\u0100", "e"}},
      {"root ::= [a-] [-z]", {"a-", "--", "az"}, {"b-"}},
      {"root ::=\n  \"a\" |\n  | \"b\"", {"a", "", "b"}, {"ab"}},
      {"root ::= x-1 y_2\nx-1 ::= \"1\"\ny_2 ::= \"2\"", {"12"}, {"1"}},
      {"\xEF\xBB\xBFroot ::= \"a\"",
       {"a"},
       {"\xEF\xBB\xBF"
        "a"}},
      // Rules that may be empty, in a row and repeated.
      {"root ::= a* b a b \"!\"\na ::= \"a\"?\nb ::= (\"b\" | \"\")",
       {"!", "aaabab!", "bab!", "ab!"},
       {"bb a!", "bbaa!"}},
      // The alternative that never ends is as if it were not there.
      {"root ::= \"a\" never | \"b\"\nnever ::= \"x\" never", {"b"}, {"a", "ax"}},
  };
  for (const Sample& sample : samples) {
    const auto grammar = gbnf(sample.grammar);
    for (const std::string& text : sample.in)
      EXPECT_TRUE(accepts(grammar, text)) << sample.grammar << "\n" << text;
    for (const std::string& text : sample.out)
      EXPECT_FALSE(accepts(grammar, text)) << sample.grammar << "\n" << text;
  }
}

TEST(Gbnf, WhatIsWrongIsSaidWithLineAndColumn) {
  const std::pair<const char*, const char*> wrong[] = {
      {"root ::= \"a", "line 1, column 10: the string that begins here has no end"},
      {"root ::= \"a\"\nroot ::= \"b\"",
       "line 2, column 1: rule root is defined twice; use | for alternatives"},
      {"root ::= other\n# nothing", "line 1, column 10: rule other is not defined"},
      {"a ::= \"x\"", "the grammar has no rule root, with which every text begins"},
      {"root ::= [z-a]", "line 1, column 11: the range runs backwards"},
      {"root ::= []", "line 1, column 10: the class is empty, nothing would match it"},
      {"root ::= (\"a\"", "line 1, column 14: ) is missing for the group that begins here or before"},
      {"root ::= \"a\" )", "line 1, column 14: ')' is not expected here"},
      {"root ::= \"a\"{3,2}", "line 1, column 13: {3,2}: the least is more than the most"},
      {"root ::= \"a\"{x}", "line 1, column 13: a repetition is {n}, {n,}, {,m} or {n,m}"},
      {"root ::= \"a\"**", "line 1, column 14: one repetition follows another; use a group"},
      {"root ::= \"a\"{999999999999}",
       "line 1, column 13: something is repeated too often; 100000 times are possible"},
      {"root ::= \"\\q\"",
       "line 1, column 11: no such escape; there are \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\xNN \\uNNNN "
       "\\UNNNNNNNN"},
      {"root ::= \"\\ud800\"", "line 1, column 11: there is no such character"},
      {"root ::= \"\\u12\"", "line 1, column 11: \\u is followed by 4 hexadecimal digits"},
      {"\u00e9\u00e9 ::= 1",
       "line 1, column 1: the name of a rule is wanted, as in: root ::= \"yes\" | \"no\""},
      {"root := 1", "line 1, column 6: ::= is wanted after the rule's name root"},
      {"root ::= \"\u00e9\u00e9\" %",
       "line 1, column 15: '%' is not expected here; a string, a class, a group or a rule is"},
  };
  for (const auto& [text, message] : wrong) EXPECT_EQ(refusal(parse_gbnf(text)), message) << text;
  EXPECT_EQ(refusal(parse_gbnf("root ::= \"a\" \xff")), "line 1, column 14: a byte that is no UTF-8");
}

TEST(Gbnf, LeftRecursionIsRefusedAlsoBehindWhatMayBeEmpty) {
  EXPECT_EQ(refusal(parse_gbnf("root ::= list\nlist ::= list \",\" \"x\" | \"x\"")),
            "line 2: rule list can begin with itself (list -> list): left recursion would never end; repeat "
            "with * or "
            "+ instead");
  EXPECT_EQ(refusal(parse_gbnf("root ::= a\na ::= b? c \"x\"\nb ::= \"b\"\nc ::= a | \"c\"")),
            "line 2: rule a can begin with itself (a -> c -> a): left recursion would never end; repeat with "
            "* or + "
            "instead");
  EXPECT_TRUE(gbnf("root ::= \"x\" | \"x\" \",\" root"));
}

TEST(Gbnf, AGrammarThatNoTextSatisfiesIsRefused) {
  EXPECT_EQ(refusal(parse_gbnf("root ::= \"a\" root")),
            "no text at all is allowed: line 1: rule root goes on for ever");
}

TEST(Gbnf, HostileOnesAreRefusedSoonAndWithASentence) {
  // Repetitions of repetitions are rules: their sizes add up, and do not multiply.
  const auto huge = gbnf("root ::= ((((\"a\"{1000}){1000}){1000}){1000}){1000}");
  EXPECT_LT(huge->positions(), 10000u);
  EXPECT_FALSE(accepts(huge, std::string(100000, 'a')));
  EXPECT_NE(refusal(parse_gbnf(
                "root ::= [^a]{100000} [^b]{100000} [^c]{100000} [^d]{100000} [^e]{100000} [^f]{100000}")),
            "compiled");
  EXPECT_EQ(refusal(parse_gbnf("root ::= " + std::string(1000, '('))),
            "line 1, column 110: groups are nested too deeply; 100 levels are possible");
  std::string empties = "root ::= ";
  for (int i = 0; i < 3000; ++i) empties += "\"a\"? ";
  EXPECT_NE(refusal(parse_gbnf(empties)).find("too large"), std::string::npos);
  EXPECT_NE(refusal(parse_gbnf(std::string(2000000, ' '))).find("too long"), std::string::npos);
}

}  // namespace
}  // namespace coppice::core::grammar
