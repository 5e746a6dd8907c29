// acceptance = rejection: children that are drawn from a draft's distribution q, without replacement.
//
// Exact only if a child is in the tree for reasons that were there before it was drawn. So a child's value is
// its parent's times a chance that depends on its rank and on how sure q is, learned from earlier cycles, and
// never on the token (numerics 5); and values never rise from one sibling to the next, so that whatever trims
// by value takes later siblings first.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sample/rejection.h"
#include "sample/sampler.h"

namespace coppice::core {

inline constexpr int kMaxDrawn = 16;  // children of one node

// The chance that the r-th of the siblings is what the target takes.
class SiblingChances {
 public:
  SiblingChances() { reset(); }
  void reset();
  // How sure q is, as a class of nodes: [0, kClasses).
  static int sureness(std::span<const float> q);
  // They sum to at most 1 and never rise.
  std::array<float, kMaxDrawn> chances(int sureness) const;
  // Of `siblings` that were in the tree, this one was taken; -1: none.
  void learn(int sureness, int siblings, int taken);

 private:
  static constexpr int kClasses = 4;
  struct Count {
    float tested = 0, taken = 0;
  };
  std::array<std::array<Count, kMaxDrawn>, kClasses> counts_;  // of those tested, given that it came to that
};

// The drawn children of one sequence's tree. Nothing allocates after start().
class Drawing {
 public:
  struct Node {
    std::uint64_t key = 0;  // of its path
    int drafter = 0;        // whose q it was
    int sureness = 0;
    int drawn = 0;
    int kept = 0;  // of the drawn ones, those in the tree: the first ones
    std::array<Token, kMaxDrawn> tokens{};
  };

  explicit Drawing(int nodes) { nodes_.reserve(static_cast<std::size_t>(nodes)); }
  // A request starts; on() if it wants its guesses drawn.
  void start(const Sampler& sampler);
  bool on() const { return rejection_.has_value(); }
  // A new tree: other draws than in the one before, also for equal paths.
  void new_tree();
  void forget() { nodes_.clear(); }

  SiblingChances& chances() { return chances_; }
  // Draws at most `count` children of the node at the end of `path`. The numbers of its draws follow from the
  // tree and the path: what was known in advance does not change a tree. The index into nodes(), or -1 when
  // there is no room.
  int draw(std::span<const Token> path, std::span<const float> q, int count);
  Node& node(int n) { return nodes_[static_cast<std::size_t>(n)]; }
  const Node* find(std::span<const Token> path) const;
  // The answer at this node was `token`.
  void learn(std::span<const Token> path, Token token);

 private:
  std::optional<Rejection> rejection_;
  std::uint64_t trees_ = 0;
  std::vector<Node> nodes_;
  SiblingChances chances_;
};

}  // namespace coppice::core
