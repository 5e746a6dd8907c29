// Which piece two neighbouring pieces, or a character, are in a text that is being encoded: the same few come
// again and again, and a look here costs a third of one into the vocabulary's table of spellings. For as long
// as the text is encoded.
#pragma once

#include <coppice/token.h>

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "text/flat_map.h"

namespace coppice::core {

class JoinMemo {
 public:
  // Short texts are not worth a table.
  explicit JoinMemo(std::size_t text_bytes) : slots_(text_bytes < kWorthIt ? 0 : kSlots) {}

  // What `ask()` says of the pair, asked at most once while the pair stays in the table. Neither is negative.
  template <class Ask>
  Token of_pair(Token left, Token right, const Ask& ask) {
    return look_up(std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right),
                   ask);
  }

  // The same of a character of 1 to 4 bytes.
  template <class Ask>
  Token of_character(std::string_view bytes, const Ask& ask) {
    std::uint32_t code = 0;
    std::memcpy(&code, bytes.data(), bytes.size());
    // No token is negative, so no pair has this bit.
    return look_up(kCharacter | std::uint64_t{bytes.size()} << 32 | code, ask);
  }

 private:
  static constexpr std::size_t kSlots = 8192, kWorthIt = 16384;
  static constexpr std::uint64_t kCharacter = std::uint64_t{1} << 63, kFree = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key = kFree;
    Token token = kNoToken;
  };

  template <class Ask>
  Token look_up(std::uint64_t key, const Ask& ask) {
    if (slots_.empty()) return ask();
    Slot& slot = slots_[mix_bits(key) % kSlots];
    if (slot.key != key) slot = {key, ask()};
    return slot.token;
  }

  std::vector<Slot> slots_;
};

}  // namespace coppice::core
