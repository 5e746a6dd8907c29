#include "grammar/code_points.h"

#include <gtest/gtest.h>

#include <set>

namespace coppice::core::grammar {
namespace {

std::string utf8(char32_t point) {
  std::string out;
  append_utf8(out, point);
  return out;
}

TEST(CodePoints, SequencesOfBytesAreTheRangesCharactersAndNoOthers) {
  const PointRange ranges[] = {{0, 0x10FFFF},    {0x7F, 0x80},      {0x123, 0x9ABC},    {0xD000, 0xD7FF},
                               {0xE000, 0xFFFF}, {0xFFFF, 0x10000}, {0x1F600, 0x1F64F}, {'a', 'a'}};
  for (const PointRange& range : ranges) {
    CodePoints set{range};
    std::size_t characters = 0;
    for (const PointRange& part : set.ranges()) {
      for (const auto& sequence : utf8_sequences(part)) {
        std::size_t product = 1;
        for (const ByteRange& byte : sequence) product *= byte.last - byte.first + 1u;
        characters += product;
      }
    }
    std::size_t wanted = 0;
    for (char32_t p = range.first; p <= range.last; ++p) wanted += is_surrogate(p) ? 0 : 1;
    EXPECT_EQ(characters, wanted) << static_cast<unsigned>(range.first);
    for (const char32_t p : {range.first, range.last}) {
      const std::string bytes = utf8(p);
      bool found = false;
      for (const auto& sequence : utf8_sequences({p, p})) {
        found = found || sequence.size() == bytes.size();
        for (std::size_t i = 0; i < bytes.size(); ++i)
          EXPECT_EQ(sequence[i].first, static_cast<std::uint8_t>(bytes[i]));
      }
      EXPECT_TRUE(found);
    }
  }
}

TEST(CodePoints, EveryCharacterComesBackFromItsBytes) {
  for (char32_t p = 0; p <= kLastPoint; p += p < 0x3000 ? 1 : 97) {
    if (is_surrogate(p)) continue;
    std::size_t at = 0;
    const std::string bytes = utf8(p);
    ASSERT_TRUE(next_point(bytes, at) == p) << static_cast<unsigned>(p);
    ASSERT_EQ(at, bytes.size());
  }
  for (const char* wrong :
       {"\x80", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF0\x9F\x98", "\xFF"})
    EXPECT_EQ(utf8_length(wrong), 0u);
  EXPECT_EQ(utf8_length("ab\xC3"), 2u);
}

TEST(CodePoints, SetsAreJoinedAndTakenApart) {
  CodePoints set{{'a', 'c'}, {'x', 'z'}, {'d', 'e'}};
  ASSERT_EQ(set.ranges().size(), 2u);  // a to e, x to z
  const CodePoints rest = set.without({{'b', 'b'}, {'y', 0x10FFFF}});
  std::string left;
  for (char32_t p = 0; p < 128; ++p)
    if (rest.has(p)) left += static_cast<char>(p);
  EXPECT_EQ(left, "acdex");
  EXPECT_FALSE(CodePoints::all().has(0xD800));
  EXPECT_TRUE(CodePoints::all().without(CodePoints::all()).empty());
}

}  // namespace
}  // namespace coppice::core::grammar
