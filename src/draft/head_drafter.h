// The drafter `head`: one block that reads the target's own states (EAGLE-3, arXiv:2503.01840; head_model.h).
//
// Row p of the head needs the target's features of position p and token p + 1, and says what follows token
// p + 1. So with L committed tokens rows 0 .. L - 2 are committed ones; the last of them answers at the root.
// A node at depth d is row L - 2 + d in a scratch slot: the target has not been there, so it takes what the
// head itself gave at its parent. All of that is dropped when tokens are accepted, and they run again with
// the true features, in the same pass that answers at the new root.
//
// The target shows features as it computes them (see()). What it had in its cache when a request began it
// does not show: then the head goes on from its own cache of the same text, or starts at the first position
// shown. Finished requests leave their cache behind for those that begin alike.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "draft/drafter.h"
#include "draft/registry.h"
#include "draft/said.h"
#include "model/head_model.h"

namespace coppice::core {

class HeadDrafter final : public Drafter {
 public:
  struct Options {
    int sequences = 1;
    int context = 2048;  // positions per sequence
    CacheType cache_type = CacheType::f16;
  };
  static Result<std::unique_ptr<HeadDrafter>> make(std::shared_ptr<const HeadModel> model,
                                                   const Options& options, ThreadPool& pool);

  std::string_view name() const override { return "head"; }
  DrafterShape shape() const override { return {kSaidFeatures, 1, true}; }
  Status begin(int sequence, std::span<const Token> tokens, const Sampler& sampler) override;
  void end(int sequence) override;
  void predict(std::span<Query> queries) override;
  bool knows(const Query& query) const override;
  void describe(const Query& query, std::span<const Token> tokens, float* out, int stride) override;
  std::span<const float> distribution(const Query& query) const override;
  void observe(int sequence, std::span<const Token> accepted) override;
  std::span<const int> feature_layers() const override { return context_->model().config().feature_layers; }
  void see(int sequence, std::span<const Token> committed, const Features& features) override;
  std::size_t pass_bytes() const override;
  PassCost take_cost() override;

  const PassStats& stats() const { return context_->stats(); }

 private:
  // A text in the head's cache: of a request, or of one that is over.
  struct Lane {
    int cache = 0;  // the cache's number for it
    bool taken = false;
    std::uint64_t age = 0;
    int base = 0;                // position of its first row; above 0: the text before was never shown
    std::vector<Token> tokens;   // of the text, as far as known
    std::vector<float> waiting;  // [kWaiting, features] of the positions behind the cached ones
    int waiting_count = 0;
  };
  struct Sequence {
    bool open = false;
    bool stopped = false;  // a pass failed: no more guesses for this request
    Lane* lane = nullptr;
    int length = 0;  // committed tokens, the root last
    TokenTree tree;
    std::vector<Said> said;            // [node]
    std::vector<float> hidden;         // [node, hidden]: what the head gave, where it spoke
    std::vector<std::uint8_t> wanted;  // [node]
    bool offers_q = false;
    std::unique_ptr<float[]> q;        // [node, vocab], once a request wanted it
    std::span<const Token> committed;  // of the queries of this call
    const Sampler* sampler = nullptr;  // the same
  };
  struct Place {  // of a row
    int sequence = 0;
    int node = 0;
  };

  HeadDrafter(std::unique_ptr<HeadContext> context, const Options& options);
  int rows_of(const Lane& lane) const { return std::as_const(*context_).cache().length(lane.cache); }
  int next_position(const Lane& lane) const { return lane.base + rows_of(lane) + lane.waiting_count; }
  const float* waiting(const Lane& lane, int i) const {
    return lane.waiting.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(features_);
  }
  std::size_t vocab() const { return static_cast<std::size_t>(context_->model().config().block.vocab); }
  float* hidden_of(Sequence& s, int node) {
    return s.hidden.data() + static_cast<std::size_t>(node) * static_cast<std::size_t>(hidden_);
  }
  float* q_of(Sequence& s, int node) { return s.q.get() + static_cast<std::size_t>(node) * vocab(); }

  Lane& take_lane(std::span<const Token> tokens);
  void cut(Lane& lane, int position);
  void restart(Lane& lane, int position);
  bool run_all_but_last(Lane& lane);
  void add_waiting(const Lane& lane, int count);
  bool can_answer(const Sequence& s) const;
  bool out_of_reach(const Sequence& s, const PathState& at) const;
  int place(const Query& query);
  void want(int sequence, int node);
  void add_rows(int sequence);
  void add_node_row(int sequence, int node);
  bool run_rows();
  void hear(int row, const Place& place);

  std::unique_ptr<HeadContext> context_;
  int limit_ = 0;  // positions a sequence may have
  int hidden_ = 0, features_ = 0;
  std::vector<int> feature_at_;  // of see(): where each of our layers stands among those shown
  std::uint64_t clock_ = 0;
  std::vector<Lane> lanes_;
  std::vector<Sequence> sequences_;
  Sampler::Scratch scratch_;
  // Of one predict().
  std::vector<int> nodes_;    // of the queries
  std::vector<int> touched_;  // sequences with something to compute
  std::vector<HeadRow> rows_;
  std::vector<Place> places_;  // [rows_]
};

// Registry row.
Result<std::unique_ptr<Drafter>> make_head(const DrafterNode& node, const DraftEnvironment& environment);

}  // namespace coppice::core
