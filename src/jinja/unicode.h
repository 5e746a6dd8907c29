// Characters as Python's str methods see them. Text is UTF-8; a byte of no valid sequence is a character of
// its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace coppice::core::jinja {

enum CharacterFlag : std::uint16_t {
  kUpper = 1,
  kLower = 2,
  kAlpha = 4,
  kDecimal = 8,
  kDigit = 16,
  kNumeric = 32,
  kPrintable = 64,
  kSpace = 128,
  kTitle = 256,
  kCased = 512,
  kIgnorable = 1024,  // a word's end is looked for behind it (final sigma)
};

struct CharacterRow {
  std::uint32_t first;  // code point; up to the next row's
  std::uint16_t flags;
  std::int32_t upper, lower, title;  // what to add
};
struct LongCaseRow {
  std::uint32_t code;
  const char *upper, *lower, *title;
};
extern const std::size_t kCharacterRows, kLongCaseRows;
extern const CharacterRow kCharacters[];
extern const LongCaseRow kLongCases[];

struct Character {
  char32_t code;       // kNoCode for a byte of no valid sequence
  std::uint8_t bytes;  // 1 to 4
};
constexpr char32_t kNoCode = 0xFFFFFFFF;

Character character_at(std::string_view text, std::size_t at);
std::size_t count_characters(std::string_view text);
// Where the character before text[end] begins; `end` > 0.
std::size_t character_before(std::string_view text, std::size_t end);
std::uint16_t character_flags(char32_t code);
void append_code(std::string& out, char32_t code);

enum class Case { upper, lower, title };
// `text` from `at`: the character there in another case. `lower` looks around it for a final sigma.
std::string change_case(std::string_view text, std::size_t at, Case wanted);

}  // namespace coppice::core::jinja
