#include "keys.h"

#include <gtest/gtest.h>

namespace coppice::serve {
namespace {

TEST(Keys, ComparingInConstantTimeIsComparing) {
  EXPECT_TRUE(equal_in_constant_time("secret", "secret"));
  for (const char* other : {"", "s", "secre", "secret ", "secreT", "Secret", "secretsecret"})
    EXPECT_FALSE(equal_in_constant_time("secret", other)) << other;
}

TEST(Keys, AnyOfTheKeysOpensAndNothingElse) {
  ApiKeys keys;
  EXPECT_FALSE(keys.wanted());
  EXPECT_TRUE(keys.allow(""));
  ASSERT_TRUE(keys.add("one"));
  ASSERT_TRUE(keys.add("two"));
  EXPECT_TRUE(keys.wanted());
  for (const char* right : {"Bearer one", "Bearer two", "bearer  two "})
    EXPECT_TRUE(keys.allow(right)) << right;
  for (const char* wrong : {"", "one", "Bearer", "Bearer ", "Bearer three", "Bearer onetwo", "Basic one"})
    EXPECT_FALSE(keys.allow(wrong)) << wrong;
}

TEST(Keys, AFileHasOneKeyALine) {
  ApiKeys keys;
  ASSERT_TRUE(keys.add_lines("# mine\n\n  first\r\nsecond", "keys.txt"));
  EXPECT_TRUE(keys.allow("Bearer first"));
  EXPECT_TRUE(keys.allow("Bearer second"));
  EXPECT_FALSE(keys.allow("Bearer # mine"));
}

TEST(Keys, AFileThatIsWrongIsRefusedWithItsLine) {
  ApiKeys keys;
  EXPECT_EQ(keys.add_lines("first\ntwo words\n", "keys.txt").error().message,
            "keys.txt, line 2: an API key is letters, digits and signs without spaces, and not empty");
  ApiKeys none;
  EXPECT_EQ(none.add_lines("# nothing\n", "keys.txt").error().message,
            "keys.txt has no API key; one a line is wanted");
  EXPECT_FALSE(none.add(""));
}

}  // namespace
}  // namespace coppice::serve
