// What a draw depends on besides logits and key: where it stands. One per tree node; views, no ownership.
#pragma once

#include <coppice/token.h>

#include <cstdint>
#include <span>

namespace coppice::core {

struct PathState {
  std::span<const Token> committed;  // the request's token ids, prompt included, the root last
  std::span<const Token> path;       // guesses from below the root to the node, in order

  // The ordinal of the token to be drawn: L + depth (numerics 2).
  std::int64_t index() const { return static_cast<std::int64_t>(committed.size() + path.size()); }
  // The i-th last token (0: the newest) of committed + path; i < index().
  Token back(std::size_t i) const {
    return i < path.size() ? path[path.size() - 1 - i] : committed[committed.size() - 1 - (i - path.size())];
  }
};

}  // namespace coppice::core
