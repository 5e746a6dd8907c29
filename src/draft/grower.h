// Drafters in, trees out: best-first by the estimated chance that the target takes a node. One grower serves
// all requests of a pass, and each stage has one of its own. docs/architecture.md, "How trees are grown".
#pragma once

#include <coppice/error.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "draft/drafter.h"
#include "tree/mixer.h"
#include "tree/token_tree.h"

namespace coppice::core {

struct GrowJob {
  int sequence = 0;
  std::span<const Token> committed;  // the root last
  const Sampler* sampler = nullptr;
  Budget budget;
  TokenTree* tree = nullptr;  // reset(root) by the caller; guesses are added below the root, or, when the
                              // tree already has nodes (a stage's memory), below `from`
  std::span<const int> from;  // nodes to grow below; empty: the root
  int rejected = 0;           // out: guesses worth a row that were under budget.least_chance
};

class ThreadPool;
struct Opinions;

// What the drafters said at a node that the target visited, and what it drew there.
class LessonListener {
 public:
  virtual ~LessonListener() = default;
  virtual void hear(const Opinions& opinions, Token drawn) = 0;
};

class Grower {
 public:
  struct Options {
    int sequences = 1;
    int max_nodes = kMaxTreeNodes;
  };
  Grower(std::vector<std::unique_ptr<Drafter>> drafters, const Options& options);
  ~Grower();

  Status begin(int sequence, std::span<const Token> tokens, const Sampler& sampler);
  void end(int sequence);
  void grow(std::span<GrowJob> jobs);
  // From now on jobs for which the cheap drafters alone are asked grow on all threads of the pool. What grows
  // is the same.
  void use(ThreadPool& pool);
  // The target drew `accepted`, the first of them at the root of the last tree grown for this sequence;
  // `committed` is what was committed when that tree was grown. Teaches the mixer at every visited node, then
  // the drafters.
  void observe(int sequence, std::span<const Token> committed, std::span<const Token> accepted);

  // Layers whose states some drafter reads, ascending; and what the target computed there (Drafter::see).
  std::span<const int> feature_layers() const;
  void see(int sequence, std::span<const Token> committed, const Features& features);

  // What the draft among `drafters` that reads least makes of the prompt (Drafter::surprise); empty: none can
  // say.
  std::optional<float> surprise(int sequence, std::span<const Token> committed, int last,
                                SourceMask drafters);
  // ln of the chance that a costly one of `drafters` gave `token` at this node of the last tree, before
  // observe(): as it listed it, else of all it did not list, the most it can have been. Empty: none was asked
  // there.
  std::optional<float> logprob(int sequence, const PathState& at, Token token, SourceMask drafters);

  // For acceptance = rejection: what the children of this node of the last tree were drawn from, [vocab],
  // valid until observe(); empty when they are certain guesses. `at`: committed as when the tree was grown.
  std::span<const float> distribution(int sequence, const PathState& at) const;

  // The two halves of observe(), for a stage: its inner grower guesses what the draft says, which is not
  // always what is accepted. teach(): after committed + path the answer was `drawn`; does nothing (and
  // returns false) where nothing was predicted at that node since the last accept(). accept(): the committed
  // tokens grow.
  bool teach(int sequence, std::span<const Token> path, Token drawn);
  void accept(int sequence, std::span<const Token> accepted);

  std::span<const std::unique_ptr<Drafter>> drafters() const;
  int features() const;  // of the mixer, the constant included
  int buckets() const;
  // Weights every new sequence starts with, laid out as mixture.h says: greedy, sampled, noise. The noise
  // part may be left out.
  Status set_prior(std::span<const float> weights);
  std::span<const float> weights(int sequence) const;  // the same layout; learned in the sequence's mode
  void set_rate(float rate);                           // of learning; the mixer's own unless set
  PassCost take_cost();
  // Hears every lesson before it is learned: what was said at a visited node and what was drawn there. For
  // fitting priors; null: nobody listens.
  void set_listener(LessonListener* listener);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coppice::core
