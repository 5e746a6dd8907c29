#include "text/nfc.h"

#include <gtest/gtest.h>

namespace coppice::core {
namespace {

std::string nfc(std::string_view text) { return to_nfc(text).value_or(std::string(text)); }

TEST(Nfc, ATextThatIsInFormCIsLeftAlone) {
  for (const char* text :
       {"", "abc", "\u00E9", "\u4E2D\u6587", "\uD55C", "\U0001F600", "a\u0338", "\xFF\xC3"}) {
    EXPECT_FALSE(to_nfc(text)) << text;
  }
}

TEST(Nfc, AccentsJoinTheCharacterBeforeThem) {
  EXPECT_EQ(nfc("e\u0301"), "\u00E9");
  EXPECT_EQ(nfc("caf\u0065\u0301 e\u0301e"), "caf\u00E9 \u00E9e");
  EXPECT_EQ(nfc("\u00E9\u0323"), "\u1EB9\u0301");
  EXPECT_EQ(nfc("a\u0327\u0301"), "\u00E1\u0327");
  EXPECT_EQ(nfc("\u0301a"), "\u0301a");
}

TEST(Nfc, MarksAreSortedByTheirClass) { EXPECT_EQ(nfc("q\u0307\u0323"), "q\u0323\u0307"); }

TEST(Nfc, KoreanSyllablesAreComposed) {
  EXPECT_EQ(nfc("\u1100\u1161"), "\uAC00");
  EXPECT_EQ(nfc("\u1100\u1161\u11A8"), "\uAC01");
  EXPECT_EQ(nfc("\uAC00\u11A8"), "\uAC01");
  EXPECT_EQ(nfc("\uAC01\u11A8"), "\uAC01\u11A8");
}

TEST(Nfc, SomeCharactersBecomeOthersAndSomeFallApart) {
  EXPECT_EQ(nfc("\u212B\u2126\u1FBE"), "\u00C5\u03A9\u03B9");
  EXPECT_EQ(nfc("\uFB1D"), "\u05D9\u05B4");
  EXPECT_EQ(nfc("\u0344"), "\u0308\u0301");
}

TEST(Nfc, BytesThatAreNoCharacterJoinNothing) {
  EXPECT_EQ(nfc("e\xFF\u0301"), "e\xFF\u0301");
  EXPECT_EQ(nfc("\xFF\u0344\xE4\xB8"), "\xFF\u0308\u0301\xE4\xB8");
}

TEST(Nfc, AMillionMarksAreNotQuadratic) {
  std::string text = "a";
  for (int i = 0; i < 500'000; ++i) text += i % 2 == 0 ? "\u0301" : "\u0323";
  const std::string composed = nfc(text);
  EXPECT_EQ(composed.substr(0, 5), "\u1EA1\u0323");
  EXPECT_EQ(nfc(composed), composed);
}

}  // namespace
}  // namespace coppice::core
