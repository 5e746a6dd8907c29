#include "jinja/text.h"

#include <gtest/gtest.h>

namespace coppice::core::jinja {
namespace {

std::vector<TextRange> ranges(const Text& text) { return {text.data().begin(), text.data().end()}; }
using Ranges = std::vector<TextRange>;

TEST(Text, RangesThatTouchBecomeOneAndEmptyOnesNone) {
  Text text("ab", Origin::data);
  text.append("cd", Origin::data);
  text.append("", Origin::data);
  text.append("own");
  text.append("", Origin::data);
  text.append("e", Origin::data);
  EXPECT_EQ(text.bytes(), "abcdowne");
  EXPECT_EQ(ranges(text), (Ranges{{0, 4}, {7, 8}}));
}

TEST(Text, APartKeepsWhatOfItCameFromData) {
  Text text("<|");
  text.append("user", Origin::data);
  text.append("|>");
  EXPECT_EQ(ranges(text.slice(0, 8)), (Ranges{{2, 6}}));
  EXPECT_EQ(ranges(text.slice(3, 5)), (Ranges{{0, 2}}));
  EXPECT_EQ(ranges(text.slice(0, 2)), Ranges{});
  EXPECT_EQ(ranges(text.slice(6, 8)), Ranges{});
  EXPECT_EQ(ranges(text.slice(5, 7)), (Ranges{{0, 1}}));
  Text twice;
  twice.append(text);
  twice.append(text, 4, 8);
  EXPECT_EQ(twice.bytes(), "<|user|>er|>");
  EXPECT_EQ(ranges(twice), (Ranges{{2, 6}, {8, 10}}));
}

TEST(Text, AnyDataLooksAtOverlapOnly) {
  Text text("ab");
  text.append("cd", Origin::data);
  text.append("ef");
  EXPECT_FALSE(text.any_data(0, 2));
  EXPECT_TRUE(text.any_data(1, 3));
  EXPECT_TRUE(text.any_data(3, 6));
  EXPECT_FALSE(text.any_data(4, 6));
}

}  // namespace
}  // namespace coppice::core::jinja
