// SentencePiece's precompiled character map (tokenizer.ggml.precompiled_charsmap): strings and what they are
// replaced by, as a double-array trie. Layout: u32 bytes of the trie, little endian; the trie, u32 units as
// darts-clone writes them; the replacements, each ended by a zero byte.
#pragma once

#include <coppice/error.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::core {

class CharacterMap {
 public:
  CharacterMap() = default;  // maps nothing
  static Result<CharacterMap> read(std::string_view bytes);

  struct Match {
    std::size_t length;            // of what is replaced
    std::string_view replacement;  // valid while the map lives
  };
  // The longest string of the map that `text` begins with. Strings longer than 256 bytes are not found.
  std::optional<Match> find(std::string_view text) const;
  bool empty() const { return units_.empty(); }

 private:
  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace coppice::core
