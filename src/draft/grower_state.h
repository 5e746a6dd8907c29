// What a grower remembers: of each sequence, and of each tree while it grows. For grower.cc alone.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "base/check.h"
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

  std::vector<std::unique_ptr<Drafter>> drafters;
  std::vector<DrafterShape> shapes;
  std::vector<int> offsets;  // of a drafter's features
  int features = kOwnFeatures;
  int buckets = 1;
  int bucket_drafter = -1;
  bool costly = false;
  std::vector<int> feature_layers;  // of all drafters
  std::vector<float> prior;
  std::vector<Sequence> sequences;
  std::vector<JobState> jobs;
  LessonListener* listener = nullptr;

  // One call of ask(): queries and what came back.
  int capacity = 0;
  std::vector<Ask> fresh, next;
  std::vector<Query> queries;
  std::vector<Query> some;            // of them, those that may ask a drafter
  std::vector<Token> paths;           // [capacity, kMaxTreeDepth]
  std::vector<Candidate> candidates;  // [drafters, capacity, kMaxCandidates]
  std::vector<int> counts;            // [drafters, capacity]; -1: not asked
  // For opinions the store has no room for.
  std::array<Token, kMaxUnion> tokens;
  std::array<SourceMask, kMaxUnion> sources;
  std::vector<float> x, gumbel, noise;

  void set_query(int i, int sequence, const PathState& at, const Budget& budget, float value);
  void ask(int n, bool with_costly);
  void ask_drafter(std::size_t d, int n);
  bool may_ask(std::size_t d, const Query& query) const {
    return !shapes[d].costly || (query.budget.drafters >> d & 1) != 0;
  }
  Opinions gather(int i);
  int unite(int i);
  void expand(std::span<const Ask> asks, bool with_costly);
  void push_children(JobState& job, int parent, const Opinions& opinions, const float* chances);
  bool draw_children(JobState& job, int parent, const Query& query);
  bool push(JobState& job, int parent, Grown child);
  bool known(const Query& query) const;
  void set_query(int i, const Ask& ask);
  void start(JobState& state, GrowJob& job);
  void pop_all(int job);
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
