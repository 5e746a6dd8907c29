// A draw in four steps: process (bias, bans, penalties), filter (survivors.h; allowed.cc has the grammar),
// score with noise, take the best. Draws and rankings run the same code, so that a draft which agrees with
// the target in its logits agrees with it in its choice.
#include "sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "sample/survivors.h"

namespace coppice::core {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
// No noise is greater: u <= 1 - 2^-53, so -log u >= 2^-53 and g <= 53 log 2 = 36.737 (numerics 3). The margin
// is far above what rounding in log_exact could add.
constexpr float kMostNoise = 36.75f;

bool before(const Ranked& a, const Ranked& b) {
  return a.score != b.score ? a.score > b.score : a.token < b.token;
}

// The best few of the scores offered, in any order, best first.
class Podium {
 public:
  explicit Podium(std::span<Ranked> places) : places_(places) {}
  // Scores below this change nothing.
  double bar() const {
    return count_ < places_.size() ? -std::numeric_limits<double>::infinity() : places_.back().score;
  }
  void offer(Token token, double score) {
    const Ranked entry{token, 0, score};
    if (count_ == places_.size() && !before(entry, places_.back())) return;
    std::size_t at = count_ < places_.size() ? count_++ : count_ - 1;
    for (; at > 0 && before(entry, places_[at - 1]); --at) places_[at] = places_[at - 1];
    places_[at] = entry;
  }
  int count() const { return static_cast<int>(count_); }

 private:
  std::span<Ranked> places_;
  std::size_t count_ = 0;
};

// Upper bounds of the noise, by chunks of ids; they depend on key and index only, so all nodes of a depth,
// and the target and the drafts that share a scratch, share them.
class NoiseBounds {
 public:
  NoiseBounds(Sampler::Scratch& scratch, const NoiseKey& key, std::int64_t index) : s_(scratch) {
    if (s_.noise_index == index && s_.noise_key.seed == key.seed && s_.noise_key.choice == key.choice &&
        s_.noise_key.stream == key.stream)
      return;
    s_.noise_key = key;
    s_.noise_index = index;
    std::fill(s_.noise_ready.begin(), s_.noise_ready.end(), std::uint8_t{0});
  }
  // Makes the bounds of a group of 32, and their maximum.
  void make(int group) {
    const int chunk = group * kLogitGroup / kNoiseChunk, first = chunk * kNoiseChunk;
    std::uint8_t& ready = s_.noise_ready[chunk];
    if (ready) return;
    ready = 1;
    const int count = std::min(kNoiseChunk, static_cast<int>(s_.noise_bound.size()) - first);
    float* bound = &s_.noise_bound[first];
    kernels().gumbel_bound(s_.noise_key, s_.noise_index, first, count, bound);
    kernels().group_maxima(bound, count, &s_.noise_maxima[first / kLogitGroup]);
  }

 private:
  Sampler::Scratch& s_;
};

// The test that spares almost all tokens their exact noise. In f32: skip a token if logit + T * b < limit,
// where b is at least its noise g and limit is bar - (|bar| + 40 T) * 2^-22. That never changes the result:
//   the f32 sum is within (|T b| + |sum|) * 2^-23 of the true one, which is within (40 T + |sum|) * 2^-23, so
//   sum < limit means that logit + T * g is below bar by more than what rounding bar to f32 and the exact
//   score to f64 can change: the exact score is below the bar, and the podium would refuse it.
// Roundings keep order, so what is said of a group's largest logit and largest bound holds for all of it.
class Hope {
 public:
  explicit Hope(float temperature) : temperature_(temperature) {}
  void raise(double bar) {
    const auto rounded = static_cast<float>(bar);
    limit_ = rounded - (std::fabs(rounded) + 40 * temperature_) * 0x1p-22f;
  }
  bool operator()(float logit, float bound) const { return !(logit + temperature_ * bound < limit_); }
  bool any(const float* logits, const float* bounds) const {  // of 16
    int some = 0;
    for (int i = 0; i < 16; ++i) some |= (*this)(logits[i], bounds[i]);
    return some != 0;
  }

 private:
  float temperature_;
  float limit_ = kNever;
};

}  // namespace

Result<Sampler> Sampler::make(const Sampling& options, int vocab, std::vector<Token> end_tokens) {
  if (Status status = options.validate(vocab); !status) return fail(std::move(status.error().message));
  Sampler sampler;
  sampler.options_ = options;
  sampler.vocab_ = vocab;
  sampler.forbidden_ = options.banned;
  if (options.ignore_eos)
    for (const Token token : end_tokens)
      if (token >= 0 && token < vocab) sampler.forbidden_.push_back(token);
  return sampler;
}

// scratch.order counts occurrences while this runs: zeroed, counted and read for the window's tokens only.
void Sampler::penalise(const PathState& state, Scratch& scratch) const {
  const auto& o = options_;
  if (o.repetition_penalty == 1 && o.presence_penalty == 0 && o.frequency_penalty == 0) return;
  const auto all = static_cast<std::size_t>(state.index());
  const std::size_t window = o.penalty_window < 0 ? all : std::min<std::size_t>(o.penalty_window, all);
  std::vector<int>& seen = scratch.order;
  const auto known = [&](Token token) { return token >= 0 && token < vocab_; };
  for (std::size_t i = 0; i < window; ++i)
    if (const Token token = state.back(i); known(token)) seen[token] = 0;
  for (std::size_t i = 0; i < window; ++i)
    if (const Token token = state.back(i); known(token)) ++seen[token];
  for (std::size_t i = 0; i < window; ++i) {
    const Token token = state.back(i);
    if (!known(token) || seen[token] == 0) continue;
    float& logit = scratch.edit(token);
    logit = logit > 0 ? logit / o.repetition_penalty : logit * o.repetition_penalty;
    logit = logit - (o.presence_penalty + o.frequency_penalty * static_cast<float>(seen[token]));
    if (!std::isfinite(logit)) logit = kNever;
    scratch.edited(token);
    seen[token] = 0;  // once per token
  }
}

// What cannot be drawn (not finite, banned) is -inf in scratch.logits. Returns the argmax or -1.
int Sampler::process(const LogitRow& logits, const PathState& state, Scratch& scratch) const {
  COPPICE_CHECK(logits.values.size() == static_cast<std::size_t>(vocab_));
  scratch.begin(logits);
  for (const auto& [token, bias] : options_.logit_bias) {
    float& logit = scratch.edit(token);
    logit += bias;
    if (!std::isfinite(logit)) logit = kNever;
    scratch.edited(token);
  }
  for (const Token token : forbidden_) {
    scratch.edit(token) = kNever;
    scratch.edited(token);
  }
  penalise(state, scratch);
  const int argmax = scratch.argmax();
  if (argmax >= 0) scratch.make(argmax / kLogitGroup);
  return argmax;
}

int Sampler::best_scores(const Survivors& survivors, std::int64_t index, Scratch& scratch,
                         std::span<Ranked> out) const {
  if (out.empty()) return 0;
  const std::vector<float>& logits = scratch.logits;
  Podium podium(out);
  Hope hope(options_.temperature);
  const auto score = [&](int id) {
    podium.offer(id, logits[id] + double{options_.temperature} * gumbel_noise(key(), index, id));
    hope.raise(podium.bar());
  };
  score(survivors.top());  // the most probable one first, for a high bar
  if (!survivors.all()) {
    for (const int id : survivors.ids())
      if (id != survivors.top() && hope(logits[id], kMostNoise)) score(id);
    return podium.count();
  }
  NoiseBounds bounds(scratch, key(), index);
  for (int group = 0, first = 0; first < vocab_; ++group, first += kLogitGroup) {
    if (scratch.maxima[group] == kNever || !hope(scratch.maxima[group], kMostNoise)) continue;
    bounds.make(group);
    if (!hope(scratch.maxima[group], scratch.noise_maxima[group])) continue;
    scratch.make(group);
    const float* bound = scratch.noise_bound.data();
    const int end = std::min(first + kLogitGroup, vocab_);
    for (int id = first; id < end;) {
      const int stop = std::min(id + 16, end);
      if (id + 16 <= end && !hope.any(&logits[id], bound + id)) id = stop;
      for (; id < stop; ++id)
        if (id != survivors.top() && logits[id] != kNever && hope(logits[id], bound[id])) score(id);
    }
  }
  return podium.count();
}

// By probability.
int Sampler::best_survivors(const Survivors& survivors, Scratch& scratch, std::span<Ranked> out) const {
  if (out.empty()) return 0;
  Podium podium(out);
  const auto offer = [&](int id) {
    if (scratch.logits[id] != kNever && scratch.logits[id] >= podium.bar())
      podium.offer(id, scratch.logits[id]);
  };
  if (survivors.all()) scratch.make_all();
  if (survivors.all())
    for (int id = 0; id < vocab_; ++id) offer(id);
  else
    for (const int id : survivors.ids()) offer(id);
  return podium.count();
}

namespace {

// At T = 0: the best logits, no noise. Filters cannot remove a point mass's only token.
int best_logits(Sampler::Scratch& scratch, std::span<Ranked> out) {
  const int count = select_best(scratch, static_cast<int>(out.size()));
  std::sort(scratch.keys.begin(), scratch.keys.begin() + count);
  for (int i = 0; i < count; ++i) {
    const int id = key_id(scratch.keys[i]);
    out[i] = {id, 0, scratch.logits[id]};
  }
  return count;
}

}  // namespace

Token Sampler::choose(Survivors& survivors, std::int64_t index, Scratch& scratch) const {
  if (options_.temperature == 0) return survivors.top();
  Ranked best;
  best_scores(survivors, index, scratch, {&best, 1});
  return best.token;
}

// Most draws of a model that knows what it was asked for are allowed anyway, and then nothing more is looked
// at: the best of all is the best of those that are allowed.
Result<Draw> Sampler::draw(const LogitRow& logits, const PathState& state, Scratch& scratch) const {
  const int argmax = process(logits, state, scratch);
  if (argmax < 0) return why_nothing(state);
  Draw draw;
  {
    Survivors survivors(scratch, argmax, tempered());
    if (options_.temperature > 0) survivors.apply(options_);
    draw.token = choose(survivors, state.index(), scratch);
  }
  if (!allowed(state)(draw.token)) {
    std::optional<Survivors> survivors = allowed_survivors(state, scratch, true);
    if (!survivors) return why_nothing(state);
    draw.token = choose(*survivors, state.index(), scratch);
    if (options_.logprobs >= 0) process(logits, state, scratch);
  }
  if (options_.logprobs >= 0) log_probabilities(scratch, argmax, draw);
  return draw;
}

Draw Sampler::describe(Token token, Scratch& scratch) const {
  Draw draw;
  draw.token = token;
  if (options_.logprobs >= 0) log_probabilities(scratch, scratch.argmax(), draw);
  return draw;
}

void Sampler::log_probabilities(Scratch& scratch, int argmax, Draw& draw) const {
  Survivors everyone(scratch, argmax, 1.0f);
  const double log_sum = log_exact(everyone.normaliser()) + scratch.logits[argmax];
  const auto logprob = [&](int id) { return static_cast<float>(scratch.logits[id] - log_sum); };
  draw.logprob = logprob(draw.token);
  draw.top = select_best(scratch, options_.logprobs);
  std::sort(scratch.keys.begin(), scratch.keys.begin() + draw.top);
  scratch.top.resize(draw.top);
  for (int i = 0; i < draw.top; ++i) {
    const int id = key_id(scratch.keys[i]);
    scratch.top[i] = {id, logprob(id)};
  }
}

std::optional<Survivors> Sampler::survivors_of(const LogitRow& logits, const PathState& state,
                                               Scratch& scratch, bool again) const {
  const int argmax = process(logits, state, scratch);
  if (argmax < 0) return std::nullopt;
  if (options_.grammar) return allowed_survivors(state, scratch, again);
  Survivors survivors(scratch, argmax, tempered());
  if (options_.temperature > 0) survivors.apply(options_);
  return survivors;
}

int Sampler::rank(const LogitRow& logits, const PathState& state, Scratch& scratch,
                  std::span<Ranked> out) const {
  std::optional<Survivors> survivors = survivors_of(logits, state, scratch, false);
  if (!survivors) return 0;
  const int count = options_.temperature == 0 ? best_logits(scratch, out)
                    : rejects()               ? best_survivors(*survivors, scratch, out)
                                              : best_scores(*survivors, state.index(), scratch, out);
  const double log_sum = log_exact(survivors->normaliser());
  for (int i = 0; i < count; ++i)
    out[i].logprob = static_cast<float>(
        (static_cast<double>(scratch.logits[out[i].token]) - survivors->max()) / tempered() - log_sum);
  return count;
}

float Sampler::logprob(Token token, const LogitRow& logits, const PathState& state, Scratch& scratch) const {
  std::optional<Survivors> survivors = survivors_of(logits, state, scratch, false);
  if (!survivors) return kNever;
  const auto ids = survivors->ids();
  if (!survivors->all() && std::find(ids.begin(), ids.end(), token) == ids.end()) return kNever;
  const double log_sum = log_exact(survivors->normaliser());
  scratch.make(token / kLogitGroup);
  return static_cast<float>((static_cast<double>(scratch.logits[token]) - survivors->max()) / tempered() -
                            log_sum);
}

namespace {

// Weights in p become chances; those of all who did not survive are zero.
void normalise(Survivors& survivors, std::vector<float>& p) {
  const float total = survivors.normaliser();
  if (survivors.all()) {
    for (float& weight : p) weight /= total;
    return;
  }
  int next = 0;  // everything between two survivors is zero
  for (const int id : survivors.ids()) {
    std::fill(p.begin() + next, p.begin() + id, 0.0f);
    p[id] /= total;
    next = id + 1;
  }
  std::fill(p.begin() + next, p.end(), 0.0f);
}

}  // namespace

Status Sampler::distribution(const LogitRow& logits, const PathState& state, Scratch& scratch) const {
  std::optional<Survivors> survivors = survivors_of(logits, state, scratch, true);
  if (!survivors) return why_nothing(state);
  std::vector<float>& p = scratch.probabilities;
  if (options_.temperature == 0) {
    std::fill(p.begin(), p.end(), 0.0f);
    p[survivors->top()] = 1.0f;
  } else {
    normalise(*survivors, p);
  }
  // describe() is about all tokens, those too that the grammar forbids.
  if (options_.grammar && options_.logprobs >= 0) process(logits, state, scratch);
  return {};
}

double Sampler::noise(std::int64_t index, Token token) const { return gumbel_noise(key(), index, token); }

}  // namespace coppice::core
