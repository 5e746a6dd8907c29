#include "text/byte_alphabet.h"

#include <array>

namespace coppice::core {
namespace {

struct Alphabet {
  std::array<char16_t, 256> character{};  // of each byte
  std::array<int, 512> byte{};            // of each character below 512; -1 for none
};

// Bytes that print keep their place in Latin-1; the others follow from U+0100 in order.
Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte.fill(-1);
  char16_t next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    const char16_t character = prints ? static_cast<char16_t>(byte) : next++;
    alphabet.character[static_cast<std::size_t>(byte)] = character;
    alphabet.byte[character] = byte;
  }
  return alphabet;
}

const Alphabet& alphabet() {
  static const Alphabet instance = make_alphabet();
  return instance;
}

}  // namespace

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  bytes.reserve(spelling.size());
  for (std::size_t at = 0; at < spelling.size();) {
    // All of the alphabet is below U+0200: one byte, or two that begin with 0xC2 to 0xC7.
    std::size_t code = static_cast<unsigned char>(spelling[at++]);
    if (code >= 0x80) {
      if (code < 0xC2 || code > 0xC7 || at == spelling.size()) return std::nullopt;
      const auto next = static_cast<unsigned char>(spelling[at++]);
      if ((next & 0xC0) != 0x80) return std::nullopt;
      code = ((code & 0x1F) << 6) | (next & 0x3F);
    }
    const int byte = alphabet().byte[code];
    if (byte < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte));
  }
  return bytes;
}

std::string spelling_of_bytes(std::string_view bytes) {
  std::string spelling;
  spelling.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    const char16_t code = alphabet().character[static_cast<unsigned char>(byte)];
    if (code < 0x80) {
      spelling.push_back(static_cast<char>(code));
    } else {
      spelling.push_back(static_cast<char>(0xC0 | (code >> 6)));
      spelling.push_back(static_cast<char>(0x80 | (code & 0x3F)));
    }
  }
  return spelling;
}

}  // namespace coppice::core
