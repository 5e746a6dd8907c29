// The drafters `model` and `stage`: a draft model, and a draft model with a grower of its own under it.
//
// A stage answers for many nodes with one pass. What it wants of the pass: accepted tokens it has not
// computed yet, the nodes it is asked about and their unseen ancestors. Into the same pass go the inner
// grower's guesses of what the draft will say at those nodes; what it then says at the guesses is remembered,
// so that the next level often costs nothing (knows() is true). The inner grower saves passes and never
// changes what the draft says (arXiv:2308.04623, made general).
//
// Memory: a tree per sequence whose node i has cache slot i - 1; it lives until observe(). The root is an
// accepted token and is committed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "draft/drafter.h"
#include "draft/grower.h"
#include "draft/registry.h"
#include "draft/said.h"
#include "model/model.h"

namespace coppice::core {

class ModelDrafter : public Drafter {
 public:
  static constexpr int kFeatures = kSaidFeatures;
  static constexpr int kByCapacity = -1;
  static constexpr int kPassRows = 64;  // of one pass, all sequences together; more is several passes
  static constexpr Budget kInnerBudget{12, 8, 0.01f, 1.0f, 0.0f};

  struct Options {
    std::string name = "model";
    int sequences = 1;
    int context = 2048;  // positions per sequence
    CacheType cache_type = CacheType::f16;
    Budget inner = kInnerBudget;  // guesses in one pass, per sequence
    // Of Model::variants(). kByCapacity: the width whose factor is nearest to the budget's capacity, anew for
    // every call; what an earlier width computed stays.
    int variant = kByCapacity;
    AttentionWindow window;
  };
  // `inner` may be null.
  static Result<std::unique_ptr<ModelDrafter>> make(std::shared_ptr<const Model> model,
                                                    std::unique_ptr<Grower> inner, const Options& options,
                                                    ThreadPool& pool);

  std::string_view name() const override { return options_.name; }
  DrafterShape shape() const override { return {kFeatures, 1, true}; }
  Status begin(int sequence, std::span<const Token> tokens, const Sampler& sampler) override;
  void end(int sequence) override;
  void predict(std::span<Query> queries) override;
  bool knows(const Query& query) const override;
  void describe(const Query& query, std::span<const Token> tokens, float* out, int stride) override;
  std::span<const float> distribution(const Query& query) const override;
  void serve_a_draft() override { serves_a_draft_ = true; }
  void observe(int sequence, std::span<const Token> accepted) override;
  std::optional<float> surprise(int sequence, std::span<const Token> committed, int last) override;
  bool slims() const override { return options_.variant == kByCapacity && variants_ > 1; }
  std::size_t pass_bytes() const override { return context_->model().weight_bytes(); }
  PassCost take_cost() override;
  DrafterTrouble trouble(int sequence) const override;  // of the mix under it

  const PassStats& stats() const { return context_->stats(); }
  Grower* inner() { return inner_.get(); }

 private:
  struct Node : Said {
    int asked = kNoNode;  // the first child that was asked about
  };
  struct Sequence {
    int cache = 0;  // the cache's number for it
    bool open = false;
    bool stopped = false;       // a pass failed: no more guesses for this request
    int length = 0;             // committed tokens, the root last
    int variant = 0;            // of the next pass
    std::vector<Token> tokens;  // committed ones, for the next request that starts like this one
    TokenTree tree;
    std::vector<Node> said;            // [node]
    std::vector<std::uint8_t> wanted;  // [node]
    bool offers_q = false;
    std::unique_ptr<float[]> q;        // [node, vocab], once a request wanted it
    std::vector<int> from;             // unseen nodes that were asked about
    std::span<const Token> committed;  // of the queries of this call
    const Sampler* sampler = nullptr;  // the same
  };
  struct Place {  // of a row with logits
    int sequence = 0;
    int node = 0;
  };

  ModelDrafter(std::unique_ptr<Context> context, std::unique_ptr<Grower> inner, const Options& options);
  float* q_of(Sequence& s, int node) { return s.q.get() + static_cast<std::size_t>(node) * vocab(); }
  std::size_t vocab() const { return static_cast<std::size_t>(context_->model().config().vocab); }
  void teach_inner(int sequence);
  bool out_of_reach(const Sequence& s, const PathState& at) const;
  int place(const Query& query);
  void want(int sequence, int node);
  void guess();
  void add_rows(int variant);
  void add_node_row(int sequence, int node);
  void catch_up(int sequence);
  void run_rows();
  void listen(int row, const Place& place);

  std::unique_ptr<Context> context_;
  std::unique_ptr<Grower> inner_;
  Options options_;
  bool serves_a_draft_ = false;
  int variants_ = 1;  // of the model
  int limit_ = 0;     // positions a sequence may have
  std::vector<Sequence> sequences_;
  Sampler::Scratch scratch_;
  Sampler plain_;  // no filters: for surprise()
  // Of one predict().
  std::vector<int> nodes_;    // of the queries
  std::vector<int> touched_;  // sequences that need a pass
  std::vector<int> sizes_;    // of their trees before the guesses
  std::vector<GrowJob> jobs_;
  std::vector<Row> rows_;
  std::vector<Place> places_;  // [rows_]
  std::vector<int> slots_;
};

// The width of `model` whose factor is nearest to `capacity`, the narrower of two; never its exit.
int width_for(const Model& model, float capacity);
// The exit, if the budget asks for it and there is one, else the width for its capacity.
int variant_for(const Model& model, const Budget& budget);

// nodes= and depth= of the guesses in one pass (model_rows.cc).
void inner_options(const DrafterNode& node, ModelDrafter::Options& options);

// Registry rows (model_rows.cc).
Result<std::unique_ptr<Drafter>> make_model(const DrafterNode& node, const DraftEnvironment& environment);
Result<std::unique_ptr<Drafter>> make_stage(const DrafterNode& node, const DraftEnvironment& environment);

}  // namespace coppice::core
