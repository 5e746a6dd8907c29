// The target's draw: a deterministic function of (logits, path, key), with the same bits on every ISA (law
// 1). One Sampler per request, scratch is brought by the caller. Immutable after make() and constrain(); one
// with a grammar remembers what it found out about it, and is for one thread at a time.
#pragma once

#include <coppice/sampling.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "grammar/matcher.h"
#include "kernels/kernels.h"
#include "sample/logit_row.h"
#include "sample/path_state.h"

namespace coppice::core {

struct TokenLogprob {
  Token token = kNoToken;
  float logprob = 0;
};

struct Draw {
  Token token = kNoToken;
  float logprob = 0;  // natural log, of the target's distribution before filters (bias and penalties applied,
                      // temperature not); computed if logprobs were asked for, else 0
  int top = 0;        // how many of Scratch::top are valid
};

struct Ranked {
  Token token = kNoToken;
  float logprob = 0;  // natural log under the filtered, tempered distribution (T = 0: softmax at T = 1)
  double score = 0;   // logit + T * noise: draw() would give the first of them
};

class Survivors;

// Which tokens a request's grammar allows at one place; all of them if it has none. Valid until the sampler
// is asked about another place.
class Allowed {
 public:
  Allowed() = default;
  Allowed(grammar::Matcher* matcher, grammar::State state) : matcher_(matcher), state_(state) {}
  bool operator()(Token token) const { return matcher_ == nullptr || matcher_->allows(state_, token); }
  bool everything() const { return matcher_ == nullptr; }

 private:
  grammar::Matcher* matcher_ = nullptr;
  grammar::State state_;
};

class Sampler {
 public:
  // Working memory for one vocabulary; made once, reused, never shared between threads.
  struct Scratch {
    std::vector<float> logits;              // [vocab], processed, in the groups that are made
    std::vector<float> maxima;              // [ceil(vocab / 32)], of the processed logits, of all groups
    std::vector<std::uint8_t> made;         // one a group
    LogitRow source;                        // where groups that are not made come from
    std::vector<float> probabilities;       // [vocab]
    std::vector<int> order;                 // [vocab]
    std::vector<float> noise_bound;         // [vocab], of (noise_key, noise_index), where ready
    std::vector<float> noise_maxima;        // [ceil(vocab / 32)], of noise_bound
    std::vector<std::uint8_t> noise_ready;  // one a chunk of ids
    NoiseKey noise_key;
    std::int64_t noise_index = -1;
    std::vector<std::uint64_t> keys;  // [vocab]
    std::vector<TokenLogprob> top;    // the best log-probabilities of the last draw, best first
    explicit Scratch(int vocab = 0);

    void begin(const LogitRow& row);  // a new draw
    void make(int group);             // logits of 32 ids; what is not finite becomes -infinity
    void make_all();
    // Bit t % 32 of word t / 32: token t stays; the logits of others become -infinity. [ceil(vocab / 32)]
    void keep(std::span<const std::uint32_t> mask);
    float& edit(Token token);  // its logit, made; edited() brings its group's maximum up to date
    void edited(Token token);
    int argmax() const;  // the lowest of the largest logits, -1: all are -infinity. Its group may not be made
  };

  Sampler() = default;
  // `end_tokens`: what ignore_eos bans. Validates the options.
  static Result<Sampler> make(const Sampling& options, int vocab, std::vector<Token> end_tokens);

  // With options().grammar: once, before the first draw. `start`: where the answer begins.
  Status constrain(std::shared_ptr<const grammar::TokenTrie> tokens, const grammar::AnswerStart& start);
  // Drafts leave out what it does not allow.
  Allowed allowed(const PathState& state) const;

  // logits: [vocab], left unchanged. Groups of 32 that cannot matter are not looked at where their maxima are
  // given; the result is the same without them. Error only when no token can be drawn (no finite logit, all
  // banned, none of the rest allowed by the grammar).
  Result<Draw> draw(const LogitRow& logits, const PathState& state, Scratch& scratch) const;

  // For drafts: the best out.size() tokens of the draft's own logits after this request's filters and
  // penalties along this path, with the noise the target's draw will use - sampling without replacement for
  // free. Returns how many. Same order and ties as draw(): rank(...)[0].token == draw(...).token. Where draws
  // are those of rejection sampling: the most probable ones, no noise.
  int rank(const LogitRow& logits, const PathState& state, Scratch& scratch, std::span<Ranked> out) const;

  // Natural log of the chance of one token under the filtered, tempered distribution, as rank() says it;
  // -infinity for one that cannot be drawn.
  float logprob(Token token, const LogitRow& logits, const PathState& state, Scratch& scratch) const;

  // The filtered, tempered, normalised distribution into scratch.probabilities (for rejection sampling; T =
  // 0: a point mass). The same errors as draw().
  Status distribution(const LogitRow& logits, const PathState& state, Scratch& scratch) const;

  // What draw() would say of `token`, had it been drawn by other means from the distribution() just made.
  Draw describe(Token token, Scratch& scratch) const;

  const Sampling& options() const { return options_; }
  int vocab() const { return vocab_; }
  // Draws are keyed by noise; draws are those of rejection sampling. Greedy ones are neither.
  bool noisy() const { return options_.temperature > 0 && options_.acceptance == Acceptance::keyed; }
  bool rejects() const { return options_.temperature > 0 && options_.acceptance == Acceptance::rejection; }
  NoiseKey key() const { return {options_.seed, options_.choice, options_.stream}; }
  // The Gumbel noise of one token at an index (not yet multiplied by the temperature).
  double noise(std::int64_t index, Token token) const;

 private:
  int process(const LogitRow& logits, const PathState& state, Scratch& scratch) const;
  bool filters() const;  // some filter is on
  float tempered() const { return options_.temperature == 0 ? 1.0f : options_.temperature; }
  // What the filters and the grammar leave; null: nothing. With a grammar scratch.logits may change.
  // `again`: if its memory is full, the grammar's matcher forgets what it knew and finds it out anew.
  std::optional<Survivors> survivors_of(const LogitRow& logits, const PathState& state, Scratch& scratch,
                                        bool again) const;
  std::optional<Survivors> allowed_survivors(const PathState& state, Scratch& scratch, bool again) const;
  Token choose(Survivors& survivors, std::int64_t index, Scratch& scratch) const;
  tl::unexpected<Error> why_nothing(const PathState& state) const;
  void penalise(const PathState& state, Scratch& scratch) const;
  int best_scores(const Survivors& survivors, std::int64_t index, Scratch& scratch,
                  std::span<Ranked> out) const;
  int best_survivors(const Survivors& survivors, Scratch& scratch, std::span<Ranked> out) const;
  void log_probabilities(Scratch& scratch, int argmax, Draw& draw) const;

  Sampling options_;
  int vocab_ = 0;
  std::vector<Token> forbidden_;               // banned, and the end tokens under ignore_eos
  std::shared_ptr<grammar::Matcher> matcher_;  // with a grammar
};

}  // namespace coppice::core
