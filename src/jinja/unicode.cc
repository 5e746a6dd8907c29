#include "jinja/unicode.h"

#include <algorithm>

namespace coppice::core::jinja {
namespace {

bool continues(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
}

const CharacterRow& row_of(char32_t code) {
  const CharacterRow* after =
      std::upper_bound(kCharacters, kCharacters + kCharacterRows, code,
                       [](char32_t c, const CharacterRow& row) { return c < row.first; });
  return after[-1];
}

// Python: a capital sigma after a cased letter and before none is a final one, ignorable characters aside.
bool is_final_sigma(std::string_view text, std::size_t at) {
  bool cased_before = false;
  for (std::size_t end = at; end > 0;) {
    const std::size_t begin = character_before(text, end);
    const std::uint16_t flags = character_flags(character_at(text, begin).code);
    end = begin;
    if (flags & kIgnorable) continue;
    cased_before = (flags & kCased) != 0;
    break;
  }
  if (!cased_before) return false;
  for (std::size_t next = at + 2; next < text.size();) {  // a sigma has two bytes
    const Character c = character_at(text, next);
    const std::uint16_t flags = character_flags(c.code);
    next += c.bytes;
    if (flags & kIgnorable) continue;
    return (flags & kCased) == 0;
  }
  return true;
}

}  // namespace

Character character_at(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {lead, 1};
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]) & 0x3F);
  };
  if (lead >= 0xC2 && lead < 0xE0 && continues(text, at + 1))
    return {(static_cast<char32_t>(lead & 0x1F) << 6) | byte(1), 2};
  if (lead >= 0xE0 && lead < 0xF0 && continues(text, at + 1) && continues(text, at + 2)) {
    const char32_t code = (static_cast<char32_t>(lead & 0x0F) << 12) | (byte(1) << 6) | byte(2);
    if (code >= 0x800 && (code < 0xD800 || code > 0xDFFF)) return {code, 3};
  }
  if (lead >= 0xF0 && lead < 0xF5 && continues(text, at + 1) && continues(text, at + 2) &&
      continues(text, at + 3)) {
    const char32_t code =
        (static_cast<char32_t>(lead & 0x07) << 18) | (byte(1) << 12) | (byte(2) << 6) | byte(3);
    if (code >= 0x10000 && code <= 0x10FFFF) return {code, 4};
  }
  return {kNoCode, 1};
}

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) at += character_at(text, at).bytes;
  return count;
}

std::size_t character_before(std::string_view text, std::size_t end) {
  for (std::size_t length = std::min<std::size_t>(4, end); length > 1; --length)
    if (character_at(text, end - length).bytes == length) return end - length;
  return end - 1;
}

std::uint16_t character_flags(char32_t code) { return code > 0x10FFFF ? 0 : row_of(code).flags; }

void append_code(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

std::string change_case(std::string_view text, std::size_t at, Case wanted) {
  const Character c = character_at(text, at);
  std::string out;
  if (c.code == kNoCode) return std::string(text.substr(at, 1));
  if (c.code == 0x3A3 && wanted == Case::lower) {
    append_code(out, is_final_sigma(text, at) ? 0x3C2 : 0x3C3);
    return out;
  }
  const LongCaseRow* longer =
      std::lower_bound(kLongCases, kLongCases + kLongCaseRows, c.code,
                       [](const LongCaseRow& row, char32_t code) { return row.code < code; });
  if (longer != kLongCases + kLongCaseRows && longer->code == c.code)
    return wanted == Case::upper ? longer->upper : wanted == Case::lower ? longer->lower : longer->title;
  const CharacterRow& row = row_of(c.code);
  const std::int32_t add = wanted == Case::upper ? row.upper : wanted == Case::lower ? row.lower : row.title;
  append_code(out, static_cast<char32_t>(static_cast<std::int64_t>(c.code) + add));
  return out;
}

}  // namespace coppice::core::jinja
