// A tree of guesses. Structure of arrays; nodes in topological order (a parent before its children). Node 0
// is the root, the last accepted token, which is not a guess. Siblings have distinct tokens. A child's value
// (the chance that the target takes it) is at most its parent's.
#pragma once

#include <coppice/token.h>

#include <cstdint>
#include <span>
#include <vector>

namespace coppice::core {

using SourceMask = std::uint32_t;  // bit d: drafter d of the mix proposed this token here
inline constexpr int kNoNode = -1;
inline constexpr int kMaxTreeNodes = 256;  // root included
inline constexpr int kMaxTreeDepth = 64;
inline constexpr int kMaxBranches = 16;  // children considered at one node

class TokenTree {
 public:
  explicit TokenTree(int capacity = kMaxTreeNodes);

  void reset(Token root);
  // The child of `parent` with this token: a new one, or the one that is there (its sources are widened, its
  // value and score kept). kNoNode when the tree is full or too deep.
  int add(int parent, Token token, float score, float value, SourceMask sources);

  int size() const { return static_cast<int>(token_.size()); }  // root included
  int capacity() const { return capacity_; }
  Token token(int node) const { return token_[node]; }
  int parent(int node) const { return parent_[node]; }
  int depth(int node) const { return depth_[node]; }  // root: 0
  float score(int node) const { return score_[node]; }
  float value(int node) const { return value_[node]; }
  SourceMask sources(int node) const { return sources_[node]; }

  int child(int node, Token token) const;                         // kNoNode if nobody guessed it
  int first_child(int node) const { return first_child_[node]; }  // kNoNode; in order of adding
  int next_sibling(int node) const { return next_sibling_[node]; }
  int find(std::span<const Token> path) const;  // the node at the end of these tokens; kNoNode: not there
  // Tokens from below the root to `node`, in order; returns how many (the node's depth).
  int path(int node, Token* out) const;

  // Keeps the root and the `nodes` best by value (ties: the earlier node); order is kept, ancestors always
  // stay because values do not rise. `kept` (optional, [old size]) receives the new index of each node, or
  // kNoNode.
  void keep_best(int nodes, int* kept = nullptr);
  // Keeps the root and the nodes n with wanted[n] != 0, in order. Whoever is wanted has a parent that is.
  void keep(std::span<const std::uint8_t> wanted);

 private:
  void move_together(int* moved);

  int capacity_;
  std::vector<Token> token_;
  std::vector<int> parent_, depth_, first_child_, last_child_, next_sibling_;
  std::vector<float> score_, value_;
  std::vector<SourceMask> sources_;
};

// How much to grow.
struct Budget {
  int nodes = 8;  // guesses, root not counted
  int depth = 16;
  float price = 0.01f;    // the least value worth a node
  float capacity = 1.0f;  // width factor of a slimmable draft
  // The least gain, in expected tokens, that another pass of a costly drafter is worth. 0: no early stopping.
  float pass_price = 0.0f;
  int width = kMaxBranches;              // children a node may have; 1: a chain
  bool costly = true;                    // whether drafters that run a model are asked at all
  SourceMask drafters = ~SourceMask{0};  // which of those may be asked, by their bits in the mix
  float least_chance = 0.0f;             // of a guess, given that its parent is taken; 0: any
  bool exit = false;                     // a slimmable draft stops at its early exit, where it has one
};

}  // namespace coppice::core
