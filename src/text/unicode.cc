#include "text/unicode.h"

namespace coppice::core {
namespace {

// What may follow a lead byte: how many bytes in all, and the range of the second (Unicode 16.0, table 3-7:
// this is what excludes overlong forms, surrogates and values above U+10FFFF).
struct Lead {
  int length;  // 0: not a lead byte
  unsigned char low, high;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte < 0xF0) {
    const unsigned char low = byte == 0xE0 ? 0xA0 : 0x80;
    const unsigned char high = byte == 0xED ? 0x9F : 0xBF;
    return {3, low, high};
  }
  if (byte < 0xF5) {
    const unsigned char low = byte == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = byte == 0xF4 ? 0x8F : 0xBF;
    return {4, low, high};
  }
  return {0, 0, 0};
}

}  // namespace

int utf8_length(std::string_view bytes) {
  const Lead lead = lead_of(static_cast<unsigned char>(bytes[0]));
  if (lead.length == 0) return -1;
  for (int i = 1; i < lead.length; ++i) {
    if (static_cast<std::size_t>(i) == bytes.size()) return 0;
    const auto byte = static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
    const unsigned char low = i == 1 ? lead.low : 0x80;
    const unsigned char high = i == 1 ? lead.high : 0xBF;
    if (byte < low || byte > high) return -i;
  }
  return lead.length;
}

Character wide_character_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const int length = utf8_length(text.substr(at, 4));
  if (length <= 0) return {kNoCharacter, CharClass::other, 1};
  char32_t code = first & (0x7Fu >> length);
  if (length == 1) code = first;
  for (int i = 1; i < length; ++i) {
    code = (code << 6) | (static_cast<unsigned char>(text[at + static_cast<std::size_t>(i)]) & 0x3Fu);
  }
  return {code, char_class(code), static_cast<std::uint8_t>(length)};
}

}  // namespace coppice::core
