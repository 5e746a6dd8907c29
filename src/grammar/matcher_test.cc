#include "grammar/matcher.h"

#include <gtest/gtest.h>

#include "grammar/testing.h"

namespace coppice::core::grammar {
namespace {

// 0 to 255: the bytes. Then words, two that are spelled alike, a control token and the end.
TokenBytesList small_vocabulary() {
  TokenBytesList list;
  for (int byte = 0; byte < 256; ++byte) list.bytes.emplace_back(1, static_cast<char>(byte));
  for (const char* word :
       {"{\"", "\":", "\": ", "true", "tru", "truest", "\", \"", " {\"", " ", "}}", "a\"", "12", "12"})
    list.bytes.emplace_back(word);
  list.bytes.emplace_back();  // a control token
  list.bytes.emplace_back();
  list.ends = {static_cast<Token>(list.bytes.size()) - 1};
  return list;
}

bool has(std::span<const std::uint32_t> mask, Token token) {
  return (mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0;
}

TEST(Matcher, TheMaskIsWhatIsAllowedTokenByToken) {
  const TokenBytesList list = small_vocabulary();
  const auto trie = std::make_shared<const TokenTrie>(list);
  const int vocab = trie->vocab() + 40;  // the model has some more
  const auto grammar =
      schema(R"({"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"$ref": "#"},
      "c": {"type": "integer", "minimum": -3, "maximum": 1234}}, "additionalProperties": {"type": "string", "maxLength": 3}})");
  for (const bool drops_space : {false, true}) {
    std::uint64_t random = 5;
    std::size_t allowed = 0, ended = 0;
    for (int walk = 0; walk < 40; ++walk) {
      Matcher matcher(grammar, trie, vocab);
      matcher.start({2, drops_space});
      std::vector<Token> tokens = {7, 9};
      for (int length = 0; length < 30; ++length) {
        const State state = matcher.at(tokens, {});
        const auto mask = matcher.mask(state);
        const std::vector<std::uint32_t> copy(mask.begin(), mask.end());
        ASSERT_EQ(copy.size(), static_cast<std::size_t>(vocab + 31) / 32);
        std::vector<Token> next;
        for (Token token = 0; token < vocab; ++token) {
          ASSERT_EQ(has(copy, token), matcher.allows(state, token)) << token;
          if (has(copy, token)) next.push_back(token);
        }
        ASSERT_FALSE(next.empty());
        allowed += next.size();
        random = random * 6364136223846793005u + 1442695040888963407u;
        tokens.push_back(next[(random >> 33) % next.size()]);
        if (trie->ends_text(tokens.back())) {
          ++ended;
          break;
        }
      }
    }
    EXPECT_GT(allowed, 1000u);
    EXPECT_GT(ended, 0u);
  }
}

TEST(Matcher, APathLeadsToWhereTheSameTokensCommittedDo) {
  const TokenBytesList list = small_vocabulary();
  const auto trie = std::make_shared<const TokenTrie>(list);
  const auto grammar = gbnf("root ::= \"a\" [b-c]* \"d\"");
  Matcher matcher(grammar, trie, trie->vocab());
  matcher.start({1, false});
  const std::vector<Token> text = {0, 'a', 'b', 'c', 'b', 'd'};
  const std::span<const Token> all(text);
  for (std::size_t committed = 1; committed <= text.size(); ++committed) {
    Matcher other(grammar, trie, trie->vocab());
    other.start({1, false});
    const State there = matcher.at(all.first(committed), all.subspan(committed));
    EXPECT_EQ(matcher.may_end(there), true);
    EXPECT_EQ(other.may_end(other.at(all, {})), true);
    EXPECT_FALSE(matcher.allows(there, 'd'));
  }
  // Back to an earlier point: what was committed does not only grow.
  EXPECT_TRUE(matcher.allows(matcher.at(all.first(2), {}), 'd'));
}

TEST(Matcher, TheEndIsAllowedWhereTheGrammarMayEndAndNothingAfterIt) {
  const TokenBytesList list = small_vocabulary();
  const auto trie = std::make_shared<const TokenTrie>(list);
  const Token end = list.ends[0], control = end - 1;
  Matcher matcher(gbnf("root ::= \"a\"+"), trie, trie->vocab());
  const State before = matcher.at({}, {});
  EXPECT_FALSE(matcher.allows(before, end));
  EXPECT_FALSE(matcher.allows(before, control));
  const std::vector<Token> a = {'a'}, over = {'a', end};
  EXPECT_TRUE(matcher.allows(matcher.at({}, a), end));
  EXPECT_TRUE(matcher.allows(matcher.at({}, a), 'a'));
  const State after = matcher.at({}, over);
  for (Token token = 0; token < trie->vocab(); ++token) EXPECT_FALSE(matcher.allows(after, token));
}

TEST(Matcher, ASpaceThatDecodingTakesAwayIsNoPartOfTheText) {
  const TokenBytesList list = small_vocabulary();
  const auto trie = std::make_shared<const TokenTrie>(list);
  const auto spaced = static_cast<Token>(256 + 7), space = static_cast<Token>(256 + 8);
  ASSERT_EQ(trie->bytes(spaced), " {\"");
  Matcher matcher(gbnf("root ::= \"{\\\"\" \" \""), trie, trie->vocab());
  matcher.start({0, true});
  EXPECT_TRUE(matcher.allows(matcher.at({}, {}), spaced));
  EXPECT_TRUE(matcher.allows(matcher.at({}, {}), space));
  EXPECT_TRUE(matcher.allows(matcher.at({}, {}), '{'));
  const std::vector<Token> written = {spaced}, nothing = {space};
  EXPECT_TRUE(matcher.allows(matcher.at({}, written), space));
  EXPECT_FALSE(matcher.allows(matcher.at({}, nothing), spaced));  // only the first
  EXPECT_TRUE(matcher.allows(matcher.at({}, nothing), '{'));
  matcher.start({0, false});
  EXPECT_FALSE(matcher.allows(matcher.at({}, {}), spaced));
}

TEST(Matcher, ALongAnswerForgetsWhatItNoLongerNeeds) {
  const TokenBytesList list = small_vocabulary();
  const auto trie = std::make_shared<const TokenTrie>(list);
  Matcher matcher(gbnf("root ::= \"(\"{0,20000} \")\""), trie, trie->vocab());
  std::vector<Token> tokens;
  for (int i = 0; i < 12000; ++i) {  // each a state of its own
    tokens.push_back('(');
    if (i % 1000 == 0) {
      EXPECT_EQ(matcher.mask(matcher.at(tokens, {}))['(' / 32] >> ('(' % 32) & 1, 1u);
    }
  }
  EXPECT_TRUE(matcher.allows(matcher.at(tokens, {}), ')'));
}

}  // namespace
}  // namespace coppice::core::grammar
