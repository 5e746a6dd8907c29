#include "text/character_map.h"

#include <gtest/gtest.h>

#include <cstring>

namespace coppice::core {
namespace {

// A double array with "a" -> "xy" and "ab" -> "z", units placed by hand: the root's children at 0x80 ^ label.
std::string small_map() {
  std::vector<std::uint32_t> units(512, 0);
  const auto unit = [](std::uint32_t offset, std::uint32_t label, bool leaf) {
    return offset << 10 | (leaf ? 0x100u : 0u) | label;
  };
  units[0] = unit(0x80, 0, false);
  const std::uint32_t a = 0x80 ^ 'a';
  units[a] = unit(a ^ 0x100, 'a', true);  // its leaf is at 0x100, its children at 0x100 ^ label
  units[0x100] = 0x80000000u;             // the value 0
  const std::uint32_t ab = 0x100 ^ 'b';
  units[ab] = unit(ab ^ 0x180, 'b', true);
  units[0x180] = 0x80000000u | 3;
  const auto bytes = static_cast<std::uint32_t>(units.size() * 4);
  std::string map(4, '\0');
  std::memcpy(map.data(), &bytes, 4);
  map.append(reinterpret_cast<const char*>(units.data()), bytes);
  return map.append("xy\0z\0", 5);
}

TEST(CharacterMap, TheLongestStringIsReplaced) {
  const auto map = CharacterMap::read(small_map());
  ASSERT_TRUE(map) << map.error().message;
  const auto short_one = map->find("ac"), long_one = map->find("abc");
  ASSERT_TRUE(short_one && long_one);
  EXPECT_EQ(short_one->length, 1u);
  EXPECT_EQ(short_one->replacement, "xy");
  EXPECT_EQ(long_one->length, 2u);
  EXPECT_EQ(long_one->replacement, "z");
  EXPECT_FALSE(map->find("b"));
  EXPECT_FALSE(map->find(""));
  EXPECT_FALSE(CharacterMap().find("a"));
}

TEST(CharacterMap, WhatDoesNotFitIsRefused) {
  const std::string whole = small_map();
  EXPECT_FALSE(CharacterMap::read(""));
  EXPECT_FALSE(CharacterMap::read(whole.substr(0, 100)));
  EXPECT_FALSE(CharacterMap::read(whole.substr(0, whole.size() - 1)));
  EXPECT_FALSE(CharacterMap::read(whole.substr(0, 4 + 2048)));
  EXPECT_FALSE(CharacterMap::read(std::string(4, '\0') + "abc"));
}

// Every unit replaced by every kind of nonsense: nothing is read out of bounds (the sanitizers look).
TEST(CharacterMap, NonsenseFindsNothingOutside) {
  const std::string whole = small_map();
  for (const std::uint32_t nonsense :
       {0xFFFFFFFFu, 0x7FFFFFFFu, 0x1FFu, 0x80000000u, 0xFFFFFD61u, 0x161u, 0xFFFFFF62u}) {
    for (std::size_t at = 4; at + 4 <= 4 + 2048; at += 4) {
      std::string changed = whole;
      std::memcpy(changed.data() + at, &nonsense, 4);
      const auto map = CharacterMap::read(changed);
      ASSERT_TRUE(map);
      for (const char* text : {"a", "ab", "abab", "\xFF\xFF"}) {
        const auto match = map->find(text);
        EXPECT_TRUE(!match || match->length <= std::strlen(text));
      }
    }
  }
}

}  // namespace
}  // namespace coppice::core
