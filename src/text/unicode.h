// Characters as splitting rules see them: their classes, and where a UTF-8 sequence ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coppice::core {

// The general categories of Unicode, as far as rules tell them apart.
enum class CharClass : std::uint8_t {
  other = 0,        // C but Cn; and bytes that are no character
  upper = 1,        // Lu, Lt
  lower = 2,        // Ll
  uncased = 3,      // Lm, Lo
  mark = 4,         // M
  number = 5,       // N
  punctuation = 6,  // P
  symbol = 7,       // S
  space = 8,        // the property White_Space
  unassigned = 9,   // Cn; for every rule like `other`
};

// A set of classes, one bit each.
using CharSet = std::uint32_t;
constexpr CharSet set_of(CharClass kind) { return CharSet{1} << static_cast<unsigned>(kind); }
constexpr bool has(CharSet set, CharClass kind) { return (set & set_of(kind)) != 0; }
constexpr CharSet kLetters = set_of(CharClass::upper) | set_of(CharClass::lower) | set_of(CharClass::uncased);
constexpr CharSet kMarks = set_of(CharClass::mark), kNumbers = set_of(CharClass::number);
constexpr CharSet kSpaces = set_of(CharClass::space), kEverything = (CharSet{1} << 10) - 1;

// Generated: two stages, so that the whole of Unicode is 24 KiB (unicode_tables.cc).
extern const std::uint8_t kUnicodeIndex[0x1100];
extern const std::uint8_t kUnicodeBlocks[][128];

inline CharClass char_class(char32_t code) {
  if (code > 0x10FFFF) return CharClass::other;
  const std::uint8_t two = kUnicodeBlocks[kUnicodeIndex[code >> 8]][(code & 255) >> 1];
  return static_cast<CharClass>((two >> (4 * (code & 1))) & 15);
}

constexpr char32_t kNoCharacter = 0xFFFFFFFF;  // the code of a byte that is no character

struct Character {
  char32_t code;
  CharClass kind;
  std::uint8_t bytes;  // 1 to 4
};

// How the UTF-8 sequence at the start of `bytes` continues: its length if it is complete and valid, 0 if what
// is there could still become one, and minus the number of bytes that never will (at least one).
int utf8_length(std::string_view bytes);

// The character at text[at], whatever its bytes.
Character wide_character_at(std::string_view text, std::size_t at);

// The character at text[at]. A byte that belongs to no valid sequence is a character of its own, of class
// `other`: so every text splits, and the bytes come back.
inline Character character_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, char_class(first), 1};
  return wide_character_at(text, at);
}

}  // namespace coppice::core
