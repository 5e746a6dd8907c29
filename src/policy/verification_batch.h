// Which guesses of all requests go into one pass, where a pass takes only so many: greedy clustering that
// prefers contiguous runs. The best guess left, of whatever request, begins a run; the run goes on along its
// best child while that is worth at least 1 / `patience` of the best guess elsewhere; then the next run
// begins. patience = 1 takes guesses in order of value alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tree/token_tree.h"

namespace coppice::core {

class VerificationBatch {
 public:
  explicit VerificationBatch(int requests);  // at most

  void begin() { entries_ = 0; }
  // A tree whose best guesses come first, of which at most `most` guesses may go; it must live until fill().
  void add(const TokenTree& tree, int most);
  void fill(int room, double patience);

  // Of the i-th tree added.
  std::span<const std::uint8_t> taken(std::size_t i) const;  // [tree size], for TokenTree::keep()
  int guesses(std::size_t i) const { return entry_[i].guesses; }
  int runs(std::size_t i) const { return entry_[i].runs; }

 private:
  struct Entry {
    const TokenTree* tree = nullptr;
    int most = 0, guesses = 0, runs = 0;
    int next = 1;  // the best guess left: everything before it is taken
    std::vector<std::uint8_t> taken;
  };
  bool open(const Entry& entry) const {
    return entry.guesses < entry.most && entry.next < entry.tree->size();
  }
  Entry* best();
  void take(Entry& entry, int node);
  static int best_child_left(const Entry& entry, int node);

  std::vector<Entry> entry_;
  std::size_t entries_ = 0;
};

}  // namespace coppice::core
