// The spellings that are looked for in a text before it is split into words: tokens a user added, always, and
// control tokens when they are asked for. The leftmost is taken, of several there the longest.
#pragma once

#include <coppice/token.h>

#include <array>
#include <string_view>
#include <vector>

#include "text/flat_map.h"

namespace coppice::core {

class SpecialTokens {
 public:
  struct Spelling {
    std::string_view text;  // not empty
    Token token;
    bool control;
  };
  struct Match {
    std::size_t begin = std::string_view::npos, end = 0;
    Token token = kNoToken;  // kNoToken: there is none
  };

  explicit SpecialTokens(const std::vector<Spelling>& spellings = {});

  // The first one that begins in text[from, until); those of control tokens only if `with_control`, and if
  // they end there too.
  Match find(std::string_view text, std::size_t from, std::size_t until, bool with_control) const;

 private:
  struct Node {
    Token user_defined = kNoToken, control = kNoToken;  // whose spelling ends here
  };
  // Control tokens count if they end at `control_end` or before.
  Match longest_at(std::string_view text, std::size_t begin, std::size_t control_end) const;

  std::vector<Node> nodes_;       // a trie; node 0 is its root
  PairMap<std::uint32_t> edges_;  // (node, byte) -> node
  std::array<bool, 256> starts_{}, starts_user_defined_{};
};

}  // namespace coppice::core
