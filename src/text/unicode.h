// Characters as splitting rules see them: a letter, a number, whitespace, or something else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coppice::core {

enum class CharClass : std::uint8_t { other = 0, letter = 1, number = 2, space = 3 };

// Generated: two stages, so that the whole of Unicode is 16 KiB (unicode_tables.cc).
extern const std::uint8_t kUnicodeIndex[0x1100];
extern const std::uint8_t kUnicodeBlocks[][64];

inline CharClass char_class(char32_t code) {
  if (code > 0x10FFFF) return CharClass::other;
  const std::uint8_t four = kUnicodeBlocks[kUnicodeIndex[code >> 8]][(code & 255) >> 2];
  return static_cast<CharClass>((four >> (2 * (code & 3))) & 3);
}

struct Character {
  CharClass kind;
  std::uint32_t bytes;  // 1 to 4
};

// How the UTF-8 sequence at the start of `bytes` continues: its length if it is complete and valid, 0 if what
// is there could still become one, and minus the number of bytes that never will (at least one).
int utf8_length(std::string_view bytes);

// The character at text[at]. A byte that belongs to no valid sequence is a character of its own, of class
// `other`: so every text splits, and the bytes come back.
Character character_at(std::string_view text, std::size_t at);

}  // namespace coppice::core
