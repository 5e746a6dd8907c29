#include "grammar/token_trie.h"

#include <algorithm>

namespace coppice::core::grammar {
namespace {

constexpr std::size_t kLongest = 60000;  // bytes of a token; depths are 16-bit. There is none nearly as long

}  // namespace

TokenTrie::TokenTrie(const TokenBytesList& tokens) : ends_(tokens.ends) {
  for (const std::string& bytes : tokens.bytes) {
    begins_.push_back(all_bytes_.size());
    if (bytes.size() <= kLongest) all_bytes_ += bytes;
  }
  begins_.push_back(all_bytes_.size());
  for (Token token = 0; token < vocab(); ++token)
    if (!bytes(token).empty() && !ends_text(token)) tokens_.push_back(token);
  std::sort(tokens_.begin(), tokens_.end(), [&](Token a, Token b) {
    const auto x = bytes(a), y = bytes(b);
    return x != y ? x < y : a < b;
  });
  nodes_.emplace_back();
  std::vector<std::uint32_t> open = {0};  // the nodes from the root to the last one
  std::string_view last;
  const auto close = [&](std::size_t depth) {
    for (; open.size() > depth + 1; open.pop_back())
      nodes_[open.back()].beyond = static_cast<std::uint32_t>(nodes_.size());
  };
  for (std::uint32_t t = 0; t < tokens_.size(); ++t) {
    const std::string_view now = bytes(tokens_[t]);
    const auto differ = std::mismatch(last.begin(), last.end(), now.begin(), now.end());
    const auto shared = static_cast<std::size_t>(differ.second - now.begin());
    close(shared);
    for (std::size_t depth = shared; depth < now.size(); ++depth) {
      open.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back({static_cast<std::uint8_t>(now[depth]), static_cast<std::uint16_t>(depth + 1), 0, t});
    }
    deepest_ = std::max(deepest_, now.size());
    last = now;
  }
  close(0);
  nodes_[0].beyond = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({0, 0, 0, static_cast<std::uint32_t>(tokens_.size())});
}

bool TokenTrie::ends_text(Token token) const {
  return std::find(ends_.begin(), ends_.end(), token) != ends_.end();
}

}  // namespace coppice::core::grammar
