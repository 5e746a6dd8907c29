// Byte pair encoding (Sennrich et al., arXiv:1508.07909): of all neighbouring pairs the merge of lowest rank
// is applied, the leftmost first among equals, until none applies.
#pragma once

#include <coppice/token.h>

#include <cstdint>
#include <span>
#include <vector>

#include "text/flat_map.h"

namespace coppice::core {

class Merges {
 public:
  explicit Merges(std::size_t capacity = 0) : table_(capacity) {}

  // The rank of a merge is the number of those added before. A pair that is there keeps its first rank.
  void add(Token left, Token right, Token merged);

  // Merges `word` as far as it goes and appends what is left of it to `out`. `word` is used as scratch. O(n
  // log n); short words, which are nearly all of them, are done without a heap and without allocation.
  void apply(std::span<Token> word, std::vector<Token>& out) const;

 private:
  struct Merge {
    std::uint32_t rank;
    Token merged;
  };
  const Merge* find(Token left, Token right) const {
    return table_.find(static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right));
  }
  void apply_short(std::span<Token> word, std::vector<Token>& out) const;
  void apply_long(std::span<Token> word, std::vector<Token>& out) const;

  PairMap<Merge> table_;
  std::uint32_t count_ = 0;
};

}  // namespace coppice::core
