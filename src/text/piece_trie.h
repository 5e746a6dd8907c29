// The pieces of a vocabulary as a trie that is built once and then only read: all pieces that a text begins
// with are found by one walk.
#pragma once

#include <coppice/token.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace coppice::core {

class PieceTrie {
 public:
  using Node = std::uint32_t;
  static constexpr Node kRoot = 0, kNone = 0xFFFFFFFFu;

  // Pieces that are not empty; of equal ones the first stays.
  explicit PieceTrie(std::vector<std::pair<std::string_view, Token>> pieces = {});

  Node child(Node node, unsigned char byte) const {
    if (node == kRoot) return of_root_[byte];
    const unsigned char* first = labels_.data() + children_[node];
    const void* found = std::memchr(first, byte, children_[node + 1] - children_[node]);
    if (found == nullptr) return kNone;
    return children_[node] + static_cast<Node>(static_cast<const unsigned char*>(found) - first);
  }
  Token token(Node node) const { return tokens_[node]; }  // kNoToken: no piece ends here

 private:
  // The children of a node are those from children_[node] to children_[node + 1].
  std::vector<Node> children_;         // [nodes + 1]
  std::vector<unsigned char> labels_;  // [nodes]
  std::vector<Token> tokens_;          // [nodes]
  std::array<Node, 256> of_root_{};
};

}  // namespace coppice::core
