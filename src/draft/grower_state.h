// What a grower remembers: of each sequence, and of each tree while it grows. For grower.cc alone.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/thread_pool.h"
#include "draft/asking.h"
#include "draft/drawing.h"
#include "draft/grower.h"
#include "draft/mixture.h"

namespace coppice::core {
namespace growing {

constexpr int kStart = -1;  // no parent: where growing starts

struct Grown {
  int parent = kStart;      // in the job's list
  int tree_node = kNoNode;  // where it is in the caller's tree already
  int depth = 0;            // below its start
  int sibling = 0;          // place among its parent's children; of a start: among the starts
  Token token = kNoToken;
  float chance = 1;
  float value = 1;
  int drawn = -1;  // its children were drawn: where the sequence's Drawing has them
  SourceMask sources = 0;
};

struct Waiting {
  Grown node;
  std::uint32_t order = 0;
};

// The heap's top is the best value; of equals the one pushed first.
inline bool worse(const Waiting& a, const Waiting& b) {
  return a.node.value != b.node.value ? a.node.value < b.node.value : a.order > b.order;
}

struct JobState {
  GrowJob* job = nullptr;
  std::vector<Grown> grown;
  std::vector<Waiting> heap;
  std::vector<float> best;  // the best values of new nodes, descending, at most budget.nodes
  std::vector<int> parked;  // grown nodes that wait for a costly pass
  int rejected = 0;         // guesses worth a row, but under budget.least_chance
  std::uint32_t order = 0;
  bool cheap_only = false;

  // What a new node must be worth more than.
  float floor() const { return static_cast<int>(best.size()) < job->budget.nodes ? 0.0f : best.back(); }
  bool worth(float value) const { return value > 0.0f && value >= job->budget.price && value >= floor(); }
  bool before(int a, int b) const;
  void count(float value) {
    best.insert(std::upper_bound(best.begin(), best.end(), value, std::greater<float>()), value);
    if (static_cast<int>(best.size()) > job->budget.nodes) best.pop_back();
  }
};

struct Ask {
  int job = 0;
  int grown = 0;
};

struct Sequence {
  bool open = false;
  const Sampler* sampler = nullptr;
  Mixture mixture;
  OpinionStore store;
  Drawing drawing;
  Sequence(int features, int buckets, int nodes)
      : mixture(features, buckets), store(nodes, features), drawing(nodes * 3) {}
};

}  // namespace growing

struct Grower::State {
  using Ask = growing::Ask;
  using Grown = growing::Grown;
  using JobState = growing::JobState;
  using Sequence = growing::Sequence;

  explicit State(std::vector<std::unique_ptr<Drafter>> drafters) : panel(std::move(drafters)) {}

  Panel panel;
  std::vector<float> prior;
  std::vector<Sequence> sequences;
  std::vector<JobState> jobs;
  LessonListener* listener = nullptr;

  ThreadPool* pool = nullptr;
  std::vector<Asking> askings;  // [threads]; the first is for passes of costly drafters too
  std::vector<Ask> fresh, next;

  int capacity() const { return askings[0].capacity(); }
  void set_query(Asking& asking, int i, const Ask& ask);
  void expand(Asking& asking, std::span<const Ask> asks, bool with_costly);
  void push_children(JobState& job, int parent, const Opinions& opinions, const float* chances);
  bool draw_children(JobState& job, int parent, const Query& query);
  bool push(JobState& job, int parent, Grown child);
  bool known(const Query& query) const;
  void start(JobState& state, GrowJob& job);
  void pop_all(Asking& asking, int job);
  void grow_cheaply(Asking& asking, int job);
  void grow_cheap_ones(int count);
  void park_or_go_on(int job);
  void write(JobState& state);
  void learn(Sequence& q, const Opinions& opinions, Token drawn) {
    if (listener != nullptr) listener->hear(opinions, drawn);
    q.mixture.learn(opinions, drawn);
  }
  Sequence& sequence(int s) {
    COPPICE_CHECK(s >= 0 && s < static_cast<int>(sequences.size()) && sequences[s].open);
    return sequences[s];
  }
};

}  // namespace coppice::core
