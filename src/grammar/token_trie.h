// A vocabulary's tokens by their bytes, as a tree that is walked in the order it lies in memory. Made once
// for a model, immutable, shared.
#pragma once

#include <coppice/token.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::core::grammar {

struct TokenBytesList {
  std::vector<std::string> bytes;  // [vocab]; empty: no text, as control tokens: never allowed by a grammar
  std::vector<Token> ends;         // end the text: allowed where a grammar may end
};

class TokenTrie {
 public:
  explicit TokenTrie(const TokenBytesList& tokens);

  int vocab() const { return static_cast<int>(begins_.size()) - 1; }
  std::string_view bytes(Token token) const {
    if (token < 0 || token >= vocab()) return {};
    const auto t = static_cast<std::size_t>(token);
    return std::string_view(all_bytes_).substr(begins_[t], begins_[t + 1] - begins_[t]);
  }
  std::span<const Token> ends() const { return ends_; }
  bool ends_text(Token token) const;

  // How many nodes there are. Each lies before those below it, those before its siblings; 0 is the root.
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(nodes_.size()) - 1; }
  std::size_t deepest() const { return deepest_; }
  struct Node {
    std::uint8_t byte = 0;
    std::uint16_t depth = 0;
    std::uint32_t beyond = 0;       // the next node that is not below it
    std::uint32_t first_token = 0;  // tokens_ from here to the next node's are spelled by it
  };
  const Node& node(std::uint32_t n) const { return nodes_[n]; }
  std::span<const Token> tokens_at(std::uint32_t n) const {
    return std::span<const Token>(tokens_).subspan(nodes_[n].first_token,
                                                   nodes_[n + 1].first_token - nodes_[n].first_token);
  }

 private:
  std::string all_bytes_;
  std::vector<std::size_t> begins_;  // [vocab + 1]
  std::vector<Token> ends_;
  std::vector<Node> nodes_;    // one more than there are
  std::vector<Token> tokens_;  // in the order of the nodes
  std::size_t deepest_ = 0;
};

}  // namespace coppice::core::grammar
