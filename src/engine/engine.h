// Requests in, tokens out. One step() is one pass of the target for everybody: requests that decode bring the
// root and the guesses of their tree, requests that still read their prompt bring a chunk of it.
#pragma once

#include <coppice/request.h>
#include <coppice/speculation.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/os.h"
#include "base/thread_pool.h"
#include "draft/grower.h"
#include "engine/active.h"
#include "engine/grammar_tokens.h"
#include "engine/sequences.h"
#include "model/model.h"
#include "policy/policy.h"
#include "text/tokenizer.h"

namespace coppice::core {

struct EngineSetup {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<GrammarTokens> grammar_tokens;  // of it; null: an engine of its own has its own
  ThreadPool* pool = nullptr;
  std::unique_ptr<Grower> grower;  // null: plain decoding; made for `max_requests` sequences
  int context = 2048;              // tokens of prompt and answer of one request
  int max_requests = 1;
  int chunk = 128;
  int max_waiting = 0;  // requests that may wait for a place; 0: any number
  int positions = 0;    // of the cache, for all requests together; 0: max_requests times context
  CacheType cache = CacheType::f16;
  Speculation speculation;
  std::optional<CostTable> costs;  // of passes, for a policy that wants them; else they are measured
  std::unique_ptr<Policy> policy;  // for tests; else the one that speculation.policy names
  std::function<double()> clock = seconds;
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
  const CostModel* costs() const { return policy_->costs(); }

 private:
  Engine(EngineSetup setup, std::unique_ptr<Context> context, std::unique_ptr<Policy> policy);

  // Of one pass, for the statistics of those who draw in it.
  struct PassCosts {
    double start = 0, grown = 0, verified = 0;  // when
    double bytes = 0;                           // of the target
    PassCost draft;
    int drawing = 0;       // requests
    double drafting = 0;   // seconds of growing, and of what drafters learn
    double deciding = 0;   // seconds of the policy, before the pass
    bool counted = false;  // for one of them
  };

  Result<Sampler> make_sampler(const Request& request, bool begins) const;
  std::size_t reserved_positions(const Request& request) const;
  void stop_those_who_must();
  void admit();
  bool start(Active& request);
  void collect_decoders();
  void grow(PassCosts& pass);
  void collect_rows();
  void add_tree_rows(Active& request);
  void add_prompts(int room);
  bool share_prompt(Active& request);
  void add_prompt_rows(Active& request, int room);
  void learn(PassCosts& pass, bool passed);
  bool draws(const Active& request) const;
  void charge(Active& request, PassCosts& pass);
  void accept(Active& request, PassCosts& pass);
  Result<Draw> draw(Active& request, int node);
  PathState state_at(const Active& request, int node) const;
  void note_chance(Active& request, const Decoding& decoding, int node, Token drawn);
  void note_state(Active& request, int row) const;
  bool append(Active& request, const Draw& draw, int source);
  bool reads_features(const Active& request) const;
  void show_features(Active& request, int position, std::span<const int> rows);
  void observe(Active& request, int first, bool guessed);
  void trace(Active& request, const Decoding& decoding, std::span<const int> path, Token drawn);
  void report(Active& request, int first);
  void finish(Active& request, StopReason reason);
  void fail_request(Active& request, FailureKind kind, const Error& error);
  void note_trouble(Active& request) const;
  void close(Active& request);
  void retire();

  EngineSetup setup_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<Policy> policy_;
  Sequences sequences_;
  bool drafts_ = false;  // some drafter runs a model
  PolicyWants wants_;
  Sampler::Scratch scratch_;
  std::uint64_t next_id_ = 1;
  std::vector<std::unique_ptr<Active>> waiting_, active_;
  std::vector<std::pair<std::uint64_t, Generation>> finished_;
  std::vector<int> free_slots_;  // of the grower
  std::vector<Row> rows_;
  std::vector<GrowJob> jobs_;
  std::vector<Decoding> decoding_;      // requests of the pass at hand that have trees
  std::vector<Active*> decoders_;       // the same
  std::vector<Active*> prompts_;        // those that read theirs
  int prompt_room_ = 0;                 // rows for them in the pass at hand
  std::vector<int> shown_;              // rows whose features drafters are shown
  std::vector<const float*> features_;  // of those rows
  PassCost drafted_;                    // before the pass at hand
};

}  // namespace coppice::core
