// Tokens to text one by one: joined, it is what decode() gives.
#include <coppice/token_texts.h>
#include <gtest/gtest.h>

#include "api/impl.h"
#include "text/test_vocabulary.h"
#include "text/testing.h"

namespace coppice {
namespace {

Tokenizer tokenizer_of(core::Vocabulary vocabulary) {
  return Tokenizer(std::make_shared<Tokenizer::Impl>(
      Tokenizer::Impl{core::testing::make_tokenizer(std::move(vocabulary))}));
}

TEST(TokenTexts, ACharacterOverSeveralTokensComesWithItsLastOne) {
  const Tokenizer tokenizer = tokenizer_of(core::testing::small_vocabulary());
  TokenTexts texts(tokenizer);
  const auto tokens = tokenizer.encode("a\u00fc", false, false);
  ASSERT_EQ(tokens.size(), 3u);
  EXPECT_EQ(texts.next(tokens[0]).text, "a");
  const auto half = texts.next(tokens[1]);
  EXPECT_EQ(half.text, "");
  EXPECT_EQ(half.bytes, "\xC3");
  EXPECT_EQ(texts.next(tokens[2]).text, "\u00fc");
  EXPECT_EQ(texts.finish(), "");
}

TEST(TokenTexts, ACharacterThatNeverEndsIsOneReplacement) {
  const Tokenizer tokenizer = tokenizer_of(core::testing::small_vocabulary());
  TokenTexts texts(tokenizer);
  EXPECT_EQ(texts.next(tokenizer.encode("\u00fc", false, false)[0]).text, "");
  EXPECT_EQ(texts.finish(), "\uFFFD");
  EXPECT_EQ(texts.finish(), "");
}

TEST(TokenTexts, ASpaceThatATextBeginsWithIsLeftOutOnlyWhereItBegins) {
  const Tokenizer tokenizer = tokenizer_of(core::testing::small_pieces());
  const Token hello = tokenizer.encode("hello", false, false)[0];
  EXPECT_EQ(TokenTexts(tokenizer).next(hello).text, "hello");
  EXPECT_EQ(TokenTexts(tokenizer, false, 2).next(hello).text, "hello");  // behind </s>
  EXPECT_EQ(TokenTexts(tokenizer, false, hello).next(hello).text, " hello");
}

}  // namespace
}  // namespace coppice
