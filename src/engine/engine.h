// Requests in, tokens out. One step() is one pass of the target for everybody: requests that decode bring the
// root and the guesses of their tree, requests that still read their prompt bring a chunk of it.
#pragma once

#include <coppice/request.h>
#include <coppice/speculation.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/thread_pool.h"
#include "draft/grower.h"
#include "engine/active.h"
#include "engine/sequences.h"
#include "model/model.h"
#include "policy/policy.h"
#include "text/tokenizer.h"

namespace coppice::core {

struct EngineSetup {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  ThreadPool* pool = nullptr;
  std::unique_ptr<Grower> grower;  // null: plain decoding; made for `max_requests` sequences
  int context = 2048;              // tokens of prompt and answer of one request
  int max_requests = 1;
  int chunk = 128;
  CacheType cache = CacheType::f16;
  Speculation speculation;
  // Sees the logits of every draw (tests of the laws); usually empty. index: of the token to be drawn.
  std::function<void(std::uint64_t request, std::int64_t index, std::span<const float> logits)> on_logits;
};

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> make(EngineSetup setup);
  static Status check(const EngineSetup& setup);  // its numbers; make() does it too
  ~Engine();

  // Queued at once; an impossible request (empty or too long prompt, bad options) is refused here.
  Result<std::uint64_t> submit(Request request);
  bool step();
  void cancel(std::uint64_t request);
  std::optional<Generation> take(std::uint64_t request);

  const EngineSetup& setup() const { return setup_; }
  std::vector<std::string> sources() const;
  std::size_t bytes() const { return context_->bytes(); }
  Context& context() { return *context_; }  // for tests: what the passes did

 private:
  Engine(EngineSetup setup, std::unique_ptr<Context> context, std::unique_ptr<Policy> policy);

  // Of one pass, for the statistics of those who draw in it.
  struct PassCosts {
    double start = 0, grown = 0, verified = 0;  // when
    double bytes = 0;                           // of the target
    PassCost draft;
    int drawing = 0;       // requests
    bool counted = false;  // for one of them
  };

  void admit();
  bool start(Active& request);
  void grow();
  void collect_rows();
  void add_tree_rows(Active& request);
  void add_prompt_rows(Active& request, int room);
  bool draws(const Active& request) const;
  void charge(Active& request, PassCosts& pass);
  void accept(Active& request);
  Result<Draw> draw(Active& request, int node);
  bool append(Active& request, const Draw& draw, int source);
  bool reads_features(const Active& request) const;
  void show_features(Active& request, int position, std::span<const int> rows);
  void observe(Active& request, int first);
  void trace(Active& request, std::span<const int> path, Token drawn);
  void report(Active& request, int first);
  void finish(Active& request, StopReason reason, std::string error = {});
  void retire();

  EngineSetup setup_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Policy> policy_;
  Sequences sequences_;
  Sampler::Scratch scratch_;
  std::uint64_t next_id_ = 1;
  std::vector<std::unique_ptr<Active>> waiting_, active_;
  std::vector<std::pair<std::uint64_t, Generation>> finished_;
  std::vector<int> free_slots_;  // of the grower
  std::vector<Row> rows_;
  std::vector<GrowJob> jobs_;
  std::vector<int> shown_;              // rows whose features drafters are shown
  std::vector<const float*> features_;  // of those rows
  PassCost drafted_;                    // before the pass at hand
};

}  // namespace coppice::core
