// A drafter guesses the next token at any node of a tree. Cheap ones look things up; a model runs one pass
// for all nodes asked about. To add one: one row in registry.cc, one file, one test (docs/drafters.md).
//
// Life of a sequence: begin (prompt known) -> { predict, describe ... observe } once a cycle -> end. All
// calls for all sequences come from one thread. Nothing allocates after begin().
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "sample/sampler.h"
#include "tree/token_tree.h"

namespace coppice::core {

struct Candidate {
  Token token = kNoToken;
  float logprob = 0;  // natural log of the drafter's own chance, free of noise
};

inline constexpr int kMaxCandidates = 16;  // of one drafter at one node

// One node somebody wants continued. Views belong to the caller and live for the call.
struct Query {
  int sequence = 0;
  PathState state;                   // committed tokens (the root last) and the path below the root
  const Sampler* sampler = nullptr;  // the request's: filters, penalties, keyed noise
  int wanted = 8;                    // candidates, at most kMaxCandidates
  float value = 1.0f;                // the node's value: what a candidate can be worth at most
  Budget budget;                     // of the whole tree; inner growers take theirs from it
  Candidate* candidates = nullptr;   // [kMaxCandidates] out, best first (noise included), distinct tokens
  int count = 0;                     // out
};

// Model passes paid for by a drafter, inner stages included.
struct PassCost {
  std::uint64_t passes = 0;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;  // weights and cache read
  double seconds = 0;

  PassCost& operator+=(const PassCost& other) {
    passes += other.passes;
    rows += other.rows;
    bytes += other.bytes;
    seconds += other.seconds;
    return *this;
  }
};

// What the target computed at committed positions, one behind the other: its residual stream at the layers
// that the drafters of a mix asked for.
struct Features {
  int position = 0;                    // of the first row
  std::span<const float* const> rows;  // each [layers, hidden]
  std::span<const int> layers;
  int hidden = 0;
};

struct DrafterShape {
  int features = 0;     // per candidate, see describe()
  int buckets = 1;      // values of bucket(); at most one drafter of a mix has more than 1
  bool costly = false;  // a pass of a model: asked level by level; false: asked at every node for nothing
  bool custom = false;  // a user's own: no prior knows it
};

// What went wrong with a drafter's guesses in one text. It went on without them.
struct DrafterTrouble {
  std::uint64_t times = 0;
  std::string_view first;  // the sentence; valid until end()
};

class Drafter {
 public:
  virtual ~Drafter() = default;

  virtual std::string_view name() const = 0;  // as in the expression, for statistics
  virtual DrafterShape shape() const = 0;

  // A request starts in sequence slot `sequence` with these tokens (the last is the first root).
  virtual Status begin(int sequence, std::span<const Token> tokens, const Sampler& sampler) = 0;
  virtual void end(int sequence) = 0;

  // Fills the candidates of every query. May leave count = 0: no idea.
  virtual void predict(std::span<Query> queries) = 0;
  // True when predict() would cost nothing now (asked before, or cheap).
  virtual bool knows(const Query&) const { return true; }
  // After predict() for this query: what it says about any tokens at this node, its own candidates or
  // others'. out: [tokens, stride], the first shape().features of each row are written; zeros are silence.
  virtual void describe(const Query& query, std::span<const Token> tokens, float* out, int stride) = 0;
  virtual int bucket(const Query&) { return 0; }
  // For acceptance = rejection, after predict() for this query: the filtered, tempered, normalised
  // distribution [vocab] from which guesses at this node may be drawn; valid until observe(). Empty: its
  // guesses are certain ones (point masses).
  virtual std::span<const float> distribution(const Query&) const { return {}; }
  // What it guesses is what a draft says, not what the target takes: nobody will ask for distributions.
  virtual void serve_a_draft() {}

  // The target drew these, in order; they are part of the committed tokens of later queries.
  virtual void observe(int sequence, std::span<const Token> accepted) = 0;

  // Layers of the target whose residual stream it reads: l is where block l begins, or behind the last.
  // Empty: it does not look at the target.
  virtual std::span<const int> feature_layers() const { return {}; }
  // The target has computed these positions: of the prompt, chunk by chunk, and in each cycle, before
  // observe(), of the root and what was accepted. `committed` reaches at least one token further. Positions
  // the target had in its cache already, when the request began, are never shown.
  virtual void see(int sequence, std::span<const Token> committed, const Features& features) {
    (void)sequence, (void)committed, (void)features;
  }

  // How little it expects the last `last` tokens of `committed` (all of them but the first, at most), each
  // after those before it: the mean of -ln p, without filters, infinite p of 0 counted as that of a guess
  // among all tokens. Asked between begin() and the first predict(). Empty: it cannot say.
  virtual std::optional<float> surprise(int sequence, std::span<const Token> committed, int last) {
    (void)sequence, (void)committed, (void)last;
    return std::nullopt;
  }
  // Whether Budget::capacity and exit change how it runs.
  virtual bool slims() const { return false; }

  // What one of its passes reads, about; 0 for cheap ones. What a pass costs is guessed from it at first.
  virtual std::size_t pass_bytes() const { return 0; }
  // What it ran since the last call; zeros for cheap ones.
  virtual PassCost take_cost() { return {}; }
  // Since begin(), before end().
  virtual DrafterTrouble trouble(int sequence) const {
    (void)sequence;
    return {};
  }
};

// The chance that a token of noise-free chance p is the draw, given its own Gumbel noise g at temperature T:
// every other token's noise is unknown, so P(argmax = token | g) = exp(-exp(-g) (1 - p) / p). Greedy: p
// itself.
float chance_with_noise(float p, double gumbel, float temperature);

}  // namespace coppice::core
