// The compiled form: for each rule an automaton without empty steps, whose edges are bytes or calls of rules.
// Immutable, shared by everybody who walks it.
//
// A call of a rule that may be empty can also be stepped over; that is written out as edges here, so whoever
// walks enters a rule only to take at least one byte of it. From every position the end of its rule can be
// reached: what cannot end was taken out.
#pragma once

#include <coppice/error.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "grammar/expression.h"

namespace coppice::core::grammar {

using Position = std::uint32_t;

struct ByteEdge {
  std::uint8_t first, last;
  Position to;
};

struct CallEdge {
  std::uint32_t rule;
  Position to;  // where the caller goes on
};

class Compiled {
 public:
  // Refuses left recursion, what no text could satisfy, and what needs too much memory.
  static Result<Compiled> make(const RuleSet& rules, RuleId root);

  std::span<const ByteEdge> bytes(Position p) const {
    return slice(byte_edges_, positions_[p].bytes, positions_[p + 1].bytes);
  }
  std::span<const CallEdge> calls(Position p) const {
    return slice(call_edges_, positions_[p].calls, positions_[p + 1].calls);
  }
  // The rule may end here; and there is nothing else to do here.
  bool final(Position p) const { return positions_[p].final; }
  bool only_final(Position p) const { return positions_[p].final && bytes(p).empty() && calls(p).empty(); }
  // The fewest bytes to the end of the rule.
  std::uint32_t least(Position p) const { return positions_[p].least; }

  Position start(std::uint32_t rule) const { return starts_[rule]; }
  // Ascends along calls that come before any byte: whoever calls is below whom it calls.
  std::uint32_t rank(std::uint32_t rule) const { return ranks_[rule]; }
  std::size_t rules() const { return starts_.size(); }
  std::size_t positions() const { return positions_.size() - 1; }
  std::uint32_t root() const { return root_; }
  bool root_may_be_empty() const { return final(start(root_)); }

  // Bytes of one class have the same edges everywhere.
  int classes() const { return classes_; }
  int byte_class(std::uint8_t byte) const { return class_of_[byte]; }

 private:
  friend class Compiler;
  struct Entry {
    std::uint32_t bytes = 0, calls = 0;  // where its edges begin
    std::uint32_t least = 0;
    bool final = false;
  };
  template <class T>
  static std::span<const T> slice(const std::vector<T>& all, std::uint32_t begin, std::uint32_t end) {
    return std::span<const T>(all).subspan(begin, end - begin);
  }

  std::vector<Entry> positions_;  // [positions + 1]
  std::vector<ByteEdge> byte_edges_;
  std::vector<CallEdge> call_edges_;
  std::vector<Position> starts_;      // [rules]
  std::vector<std::uint32_t> ranks_;  // [rules]
  std::uint32_t root_ = 0;
  int classes_ = 1;
  std::array<std::uint8_t, 256> class_of_{};
};

}  // namespace coppice::core::grammar
