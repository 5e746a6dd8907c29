#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "text/test_vocabulary.h"
#include "text/testing.h"
#include "text/tokenizer.h"

namespace coppice::core {
namespace {

using testing::error_of;
using testing::id_of;
using testing::make_tokenizer;
using testing::small_pieces;
using Tokens = std::vector<Token>;

// The spellings of a text's tokens, joined by "|".
std::string pieces(const Tokenizer& tokenizer, std::string_view text, bool parse_special = false) {
  std::string joined;
  for (const Token token : tokenizer.encode(text, parse_special)) {
    joined += joined.empty() ? "" : "|";
    joined += tokenizer.vocabulary().tokens[static_cast<std::size_t>(token)];
  }
  return joined;
}

TEST(SentencePieceBpe, ThePairOfTheHighestScoreIsJoinedFirst) {
  const auto tokenizer = make_tokenizer(small_pieces());
  EXPECT_EQ(pieces(*tokenizer, "hello"), "▁hello");
  EXPECT_EQ(pieces(*tokenizer, "hell he"), "▁hell|▁he");
  // "ll" has a higher score than "el", "lo" a lower one.
  EXPECT_EQ(pieces(*tokenizer, "ello"), "▁|e|ll|o");
}

TEST(SentencePieceBpe, EqualScoresFallToTheLeft) {
  Vocabulary vocabulary = small_pieces();
  testing::add_piece(vocabulary, "xx", -50);
  EXPECT_EQ(pieces(*make_tokenizer(vocabulary), "xxx"), "▁|xx|<0x78>");
}

TEST(SentencePieceBpe, ASpaceIsPutBeforeATextAndTakenAwayAgain) {
  const auto tokenizer = make_tokenizer(small_pieces());
  EXPECT_EQ(pieces(*tokenizer, " he"), "▁|▁he");
  EXPECT_EQ(pieces(*tokenizer, ""), "");
  for (const char* text : {"he", " he", "  he  ", "\nhe", "", " "}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

TEST(SentencePieceBpe, WithoutThatRuleTheTextStaysAsItIs) {
  Vocabulary vocabulary = small_pieces();
  vocabulary.add_space_prefix = false;
  const auto tokenizer = make_tokenizer(vocabulary);
  EXPECT_EQ(pieces(*tokenizer, "he he"), "he|▁he");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(" he")), " he");
}

TEST(SentencePieceBpe, ASpaceIsPutBehindAControlTokenAsWell) {
  const auto tokenizer = make_tokenizer(small_pieces());
  EXPECT_EQ(pieces(*tokenizer, "<s>he</s> he", true), "<s>|▁he|</s>|▁|▁he");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("<s>he</s> he", true), true), "<s>he</s> he");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("he<s>", false)), "he<s>");
}

TEST(SentencePieceBpe, TokensOneByOneAreTheTextOfAllOfThem) {
  const auto tokenizer = make_tokenizer(small_pieces());
  for (const char* text : {" he hello", "he</s>he", "</s>  he", "é he"}) {
    const Tokens tokens = tokenizer->encode(text, true);
    TokenBytes bytes(*tokenizer);
    std::string joined;
    for (const Token token : tokens) joined += bytes.next(token);
    EXPECT_EQ(joined, tokenizer->decode(tokens));
  }
  // What goes on with a text keeps its space.
  TokenBytes goes_on(*tokenizer, false, false);
  EXPECT_EQ(goes_on.next(id_of(tokenizer->vocabulary(), "▁he")), " he");
}

TEST(SentencePieceBpe, ACharacterWithoutAPieceIsItsBytes) {
  const auto tokenizer = make_tokenizer(small_pieces());
  EXPECT_EQ(pieces(*tokenizer, "é"), "▁|<0xC3>|<0xA9>");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("é\xFF\xE4\xB8")), "é\xFF\xE4\xB8");
}

TEST(SentencePieceBpe, WithoutBytesItIsTheUnknownTokenOnceForARun) {
  Vocabulary vocabulary = small_pieces();
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (vocabulary.kinds[i] != TokenKind::byte) continue;
    vocabulary.kinds[i] = TokenKind::normal;
  }
  EXPECT_EQ(pieces(*make_tokenizer(vocabulary), "heéüheé"), "▁he|<unk>|he|<unk>");
  EXPECT_FALSE(make_tokenizer(vocabulary)->gives_back());
  vocabulary.kinds[0] = TokenKind::control;  // text never becomes a control token
  EXPECT_EQ(pieces(*make_tokenizer(vocabulary), "heéhe"), "▁he|he");
}

TEST(SentencePieceBpe, UserDefinedPiecesAreCutOutFirst) {
  Vocabulary vocabulary = small_pieces();
  testing::add_piece(vocabulary, "lo w", 0, TokenKind::user_defined);
  testing::add_piece(vocabulary, "\n\n", 0, TokenKind::user_defined);
  const auto tokenizer = make_tokenizer(vocabulary);
  EXPECT_EQ(pieces(*tokenizer, "hello w\n\n\nhe"), "▁hel|lo w|\n\n|<0x0A>|he");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("hello w\n\n\nhe")), "hello w\n\n\nhe");
}

TEST(SentencePieceBpe, APieceThatIsNotToBeUsedFallsApartAgain) {
  Vocabulary vocabulary = small_pieces();
  const auto hell = static_cast<std::size_t>(id_of(vocabulary, "▁hell"));
  vocabulary.kinds[hell] = TokenKind::unused;
  EXPECT_EQ(pieces(*make_tokenizer(vocabulary), "hell"), "▁he|ll");
  EXPECT_EQ(pieces(*make_tokenizer(vocabulary), "hello"), "▁hello");
}

TEST(SentencePieceBpe, APieceMayReachAcrossASpace) {
  Vocabulary vocabulary = small_pieces();
  testing::add_piece(vocabulary, "e▁", 5);
  EXPECT_EQ(pieces(*make_tokenizer(vocabulary), "he he"), "▁|h|e▁|he");
}

TEST(SentencePieceBpe, SpacesAreSqueezedWhereTheFileSaysSo) {
  Vocabulary vocabulary = small_pieces();
  vocabulary.remove_extra_whitespaces = true;
  const auto tokenizer = make_tokenizer(vocabulary);
  EXPECT_EQ(pieces(*tokenizer, "  he   he  "), "▁he|▁he");
  EXPECT_EQ(pieces(*tokenizer, "   "), "");
  EXPECT_FALSE(tokenizer->gives_back());
}

// The definition on a whole text at once, against words one by one and heaps for long ones.
TEST(SentencePieceBpe, ShortAndLongTextsFollowTheDefinition) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    Vocabulary vocabulary = small_pieces(false);
    for (int i = 0; i < 40; ++i) {
      std::string piece;
      for (std::size_t n = 2 + random() % 4; n > 0; --n)
        piece += random() % 4 ? std::string(1, "abc"[random() % 3]) : "▁";
      testing::add_piece(vocabulary, piece, -static_cast<float>(random() % 12));
    }
    vocabulary.add_space_prefix = false;
    const auto tokenizer = make_tokenizer(vocabulary);
    for (const std::size_t length : {3u, 20u, 100u}) {
      std::string text;
      for (std::size_t i = 0; i < length; ++i) text += "abc "[random() % 4];
      EXPECT_EQ(tokenizer->encode(text), testing::join_by_definition(vocabulary, text)) << text;
    }
  }
}

// Long texts remember what their words became.
TEST(SentencePieceBpe, TheWordsOfALongTextAreTheSameTokensAsAlone) {
  for (const bool has_bytes : {true, false}) {
    Vocabulary vocabulary = small_pieces();
    vocabulary.add_space_prefix = false;
    testing::add_piece(vocabulary, "!", 0, TokenKind::user_defined);
    for (TokenKind& kind : vocabulary.kinds) {
      if (kind == TokenKind::byte && !has_bytes) kind = TokenKind::normal;
    }
    const auto tokenizer = make_tokenizer(vocabulary);
    const std::vector<std::string> words = {" hello",    " hellohe", " lll", " \u00E9he",
                                            " he\u00E9", "!",        " lolo"};
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
}

TEST(SentencePieceBpe, AMillionOfOneCharacterIsNotQuadratic) {
  const auto tokenizer = make_tokenizer(small_pieces());
  for (const char* piece : {" ", "h", "é", "\xFF", " he", "hello"}) {
    std::string text;
    while (text.size() < 1'000'000) text += piece;
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

TEST(SentencePiece, ContradictionsAreRefused) {
  Vocabulary vocabulary = small_pieces();
  vocabulary.scores.pop_back();
  EXPECT_NE(error_of(vocabulary).find("tokenizer.ggml.scores"), std::string::npos);
  vocabulary = small_pieces();
  vocabulary.tokens[static_cast<std::size_t>(id_of(vocabulary, "<0x41>"))] = "<0x4>";
  EXPECT_NE(error_of(vocabulary).find("\"<0x4>\""), std::string::npos);
  vocabulary = small_pieces();
  vocabulary.character_map = "abc";
  EXPECT_NE(error_of(vocabulary).find("precompiled_charsmap"), std::string::npos);
  vocabulary.character_map = std::string("\xFF\xFF\0\0abc", 7);
  EXPECT_NE(error_of(vocabulary).find("precompiled_charsmap"), std::string::npos);
  vocabulary = small_pieces();
  vocabulary.model = "t5";
  vocabulary.scores[4] = std::numeric_limits<float>::infinity();
  EXPECT_NE(error_of(vocabulary).find("token 4"), std::string::npos);
}

TEST(SentencePiece, EmptyAndDoublePiecesDoNoHarm) {
  for (const char* model : {"llama", "t5"}) {
    Vocabulary vocabulary = small_pieces();
    vocabulary.model = model;
    testing::add_piece(vocabulary, "", 0);
    testing::add_piece(vocabulary, "", 0, TokenKind::user_defined);
    testing::add_piece(vocabulary, "▁he", 0);
    testing::add_piece(vocabulary, "\xE4", 0);
    const auto tokenizer = make_tokenizer(vocabulary);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode("he \xE4 中")), "he \xE4 中") << model;
    EXPECT_EQ(tokenizer->encode("he"), Tokens{id_of(vocabulary, "▁he")}) << model;
  }
}

Vocabulary unigram_pieces() {
  Vocabulary vocabulary = small_pieces();
  vocabulary.model = "t5";
  return vocabulary;
}

TEST(Unigram, TheSumOfTheScoresDecides) {
  Vocabulary vocabulary = unigram_pieces();
  for (const auto& [piece, score] :
       {std::pair("ab", -3.0f), {"bc", -1.0f}, {"a", -2.0f}, {"c", -9.0f}, {"abc", -3.5f}})
    testing::add_piece(vocabulary, piece, score);
  EXPECT_EQ(pieces(*make_tokenizer(vocabulary), "abc"), "▁|a|bc");
  vocabulary.scores.back() = -2.5f;
  EXPECT_EQ(pieces(*make_tokenizer(vocabulary), "abc"), "▁|abc");
}

TEST(Unigram, UserDefinedPiecesCostNothing) {
  Vocabulary vocabulary = small_pieces(false);
  vocabulary.model = "t5";
  testing::add_piece(vocabulary, "he", -150);
  testing::add_piece(vocabulary, "llo", -150);
  EXPECT_EQ(pieces(*make_tokenizer(vocabulary), "hello"), "▁|he|llo");
  testing::add_piece(vocabulary, "ell", -1000, TokenKind::user_defined);
  EXPECT_EQ(pieces(*make_tokenizer(vocabulary), "hello"), "▁|h|ell|o");
}

TEST(Unigram, ACharacterWithoutAPieceIsItsBytesOrUnknown) {
  const auto tokenizer = make_tokenizer(unigram_pieces());
  EXPECT_EQ(pieces(*tokenizer, "heé"), "▁he|<0xC3>|<0xA9>");
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(" é\xFF he")), " é\xFF he");
}

TEST(Unigram, AMillionOfOneCharacterIsNotQuadratic) {
  const auto tokenizer = make_tokenizer(unigram_pieces());
  for (const char* piece : {" ", "h", "é", "hello"}) {
    std::string text;
    while (text.size() < 1'000'000) text += piece;
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

}  // namespace
}  // namespace coppice::core
