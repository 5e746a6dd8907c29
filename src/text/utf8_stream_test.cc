#include <gtest/gtest.h>

#include <random>

#include "text/tokenizer.h"
#include "text/unicode.h"

namespace coppice::core {
namespace {

std::string whole(std::string_view bytes) {
  Utf8Stream stream;
  std::string text = stream.push(bytes);
  return text + stream.finish();
}

TEST(Utf8Stream, HoldsACharacterBackUntilItIsComplete) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("a\xF0\x9F"), "a");
  EXPECT_EQ(stream.push("\x98"), "");
  EXPECT_EQ(stream.push("\x80"
                        "b"),
            "\xF0\x9F\x98\x80"
            "b");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, WhatCanNeverBecomeACharacterIsReplacedAtOnce) {
  EXPECT_EQ(whole("\x80"), "\uFFFD");
  EXPECT_EQ(whole("\xC0\x80"), "\uFFFD\uFFFD");                      // overlong
  EXPECT_EQ(whole("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");            // a surrogate
  EXPECT_EQ(whole("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // above U+10FFFF
  EXPECT_EQ(whole("\xE2\x82x"), "\uFFFDx");  // one for the longest part that could have begun one
  Utf8Stream stream;
  stream.push("\xE2\x82");
  EXPECT_EQ(stream.push("x"), "\uFFFDx");
}

TEST(Utf8Stream, AnUnfinishedCharacterAtTheEndIsReplacedOnce) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xF0\x9F\x98"), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
  EXPECT_EQ(stream.push("ok"), "ok");
}

TEST(Utf8Stream, HowTheBytesArriveDoesNotMatter) {
  std::mt19937 random(3);
  constexpr unsigned char kBytes[] = {'a',  0x80, 0xBF, 0xC3, 0xE2, 0x82, 0xAC,
                                      0xED, 0xA0, 0xF0, 0x9F, 0x98, 0xF4, 0xFF};
  for (int round = 0; round < 3000; ++round) {
    std::string bytes(random() % 20, ' ');
    for (char& byte : bytes) byte = static_cast<char>(kBytes[random() % sizeof kBytes]);
    Utf8Stream stream;
    std::string text;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t count = 1 + random() % 3;
      text += stream.push(std::string_view(bytes).substr(at, count));
      at += count;
    }
    text += stream.finish();
    EXPECT_EQ(text, whole(bytes));
    for (std::size_t at = 0; at < text.size();) {
      const int length = utf8_length(std::string_view(text).substr(at));
      ASSERT_GT(length, 0);
      at += static_cast<std::size_t>(length);
    }
  }
}

TEST(Unicode, ClassesOfSomeCharacters) {
  EXPECT_EQ(char_class('a'), CharClass::lower);
  EXPECT_EQ(char_class(0x1C5), CharClass::upper);  // title case
  EXPECT_EQ(char_class(0x4E2D), CharClass::uncased);
  EXPECT_EQ(char_class(0x301), CharClass::mark);
  EXPECT_EQ(char_class('7'), CharClass::number);
  EXPECT_EQ(char_class('_'), CharClass::punctuation);
  EXPECT_EQ(char_class('+'), CharClass::symbol);
  EXPECT_EQ(char_class(0x85), CharClass::space);
  EXPECT_EQ(char_class(0x200B), CharClass::other);   // zero width space is no White_Space
  EXPECT_EQ(char_class(0x2167), CharClass::number);  // roman numeral eight
  EXPECT_EQ(char_class(0x1F600), CharClass::symbol);
  EXPECT_EQ(char_class(0x10FFFF), CharClass::unassigned);
  EXPECT_EQ(char_class(0xFFFFFFFF), CharClass::other);
}

}  // namespace
}  // namespace coppice::core
