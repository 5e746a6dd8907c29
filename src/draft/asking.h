// What drafters say at nodes of trees: asks them, unites their candidates, and gathers what each thinks of
// all. Whoever grows in parallel has an Asking each.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <vector>

#include "draft/drafter.h"
#include "draft/mixture.h"

namespace coppice::core {

// The drafters of a grower, and how their features stand beside each other.
struct Panel {
  std::vector<std::unique_ptr<Drafter>> drafters;
  std::vector<DrafterShape> shapes;
  std::vector<int> offsets;  // of a drafter's features
  int features = kOwnFeatures;
  int buckets = 1;
  int bucket_drafter = -1;
  bool costly = false;              // one of them is
  std::vector<int> feature_layers;  // of all drafters

  explicit Panel(std::vector<std::unique_ptr<Drafter>> drafters);
  bool may_ask(std::size_t d, const Query& query) const {
    return !shapes[d].costly || (query.budget.drafters >> d & 1) != 0;
  }
};

class Asking {
 public:
  // For up to `capacity` nodes at once. The panel outlives it.
  Asking(const Panel& panel, int capacity);

  int capacity() const { return capacity_; }
  // Node i of the next ask(): where it is and whose, its path copied.
  void set(int i, const Query& node);
  const Query& query(int i) const { return queries_[static_cast<std::size_t>(i)]; }
  // The first n nodes; the costly drafters are left out where they are not wanted.
  void ask(int n, bool with_costly);
  void ask_one(std::size_t drafter, int n);
  // What a drafter said at node i; empty: nothing, or it was not asked.
  std::span<const Candidate> said(std::size_t drafter, int i) const {
    const std::size_t at = drafter * static_cast<std::size_t>(capacity_) + static_cast<std::size_t>(i);
    return {&candidates_[at * kMaxCandidates], static_cast<std::size_t>(std::max(0, counts_[at]))};
  }
  // What was said at node i, remembered in `store` where that has room: else valid until the next call.
  Opinions gather(int i, OpinionStore& store);

 private:
  int unite(int i);

  const Panel* panel_;
  int capacity_;
  std::vector<Query> queries_;
  std::vector<Query> some_;            // of them, those that may ask a drafter
  std::vector<Token> paths_;           // [capacity, kMaxTreeDepth]
  std::vector<Candidate> candidates_;  // [drafters, capacity, kMaxCandidates]
  std::vector<int> counts_;            // [drafters, capacity]; -1: not asked
  std::array<Token, kMaxUnion> tokens_;
  std::array<SourceMask, kMaxUnion> sources_;
  std::vector<float> x_, gumbel_, noise_;  // of opinions that no store keeps
};

}  // namespace coppice::core
