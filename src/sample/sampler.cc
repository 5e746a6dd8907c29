// A draw in four steps: process (bias, bans, penalties), filter (survivors.h), score with noise, take the
// best. Draws and rankings run the same code, so that a draft which agrees with the target in its logits
// agrees with it in its choice.
#include "sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "sample/survivors.h"

namespace coppice::core {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr int kChunk = 256;  // ids whose noise is made at once
// No noise is greater: u <= 1 - 2^-53, so -log u >= 2^-53 and g <= 53 log 2 = 36.737 (numerics 3). The margin
// is far above what rounding in log_exact could add.
constexpr double kMostNoise = 36.75;

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

// The noise of one chunk of ids; it depends on key and index only, so nodes of the same depth share it.
class NoiseChunks {
 public:
  NoiseChunks(Sampler::Scratch& scratch, const NoiseKey& key, std::int64_t index) : s_(scratch) {
    if (s_.noise_index == index && s_.noise_key.seed == key.seed && s_.noise_key.choice == key.choice &&
        s_.noise_key.stream == key.stream)
      return;
    s_.noise_key = key;
    s_.noise_index = index;
    std::fill(s_.noise_ready.begin(), s_.noise_ready.end(), std::uint8_t{0});
  }
  const double* chunk(int first) {
    std::uint8_t& ready = s_.noise_ready[first / kChunk];
    if (!ready) {
      const int count = std::min(kChunk, static_cast<int>(s_.noise.size()) - first);
      kernels().gumbel(s_.noise_key, s_.noise_index, first, count, &s_.noise[first]);
      ready = 1;
    }
    return &s_.noise[first];
  }

 private:
  Sampler::Scratch& s_;
};

// score = logit + T * g rounds monotonically, so a score is at most logit + T * kMostNoise, rounded the same
// way: a logit for which that is below the bar can be skipped and the result does not change.
bool hopeless(float logit, double most, double bar) { return static_cast<double>(logit) + most < bar; }

bool all_hopeless(const float* logits, int count, double most, double bar) {
  int hope = 0;
  for (int i = 0; i < count; ++i) hope |= !hopeless(logits[i], most, bar);
  return hope == 0;
}

void score_all(const Sampler::Scratch& s, NoiseChunks& noise, double temperature, Podium& podium) {
  const int vocab = static_cast<int>(s.logits.size());
  const double most = temperature * kMostNoise;
  for (int first = 0; first < vocab; first += kChunk) {
    const int count = std::min(kChunk, vocab - first);
    const float* logits = &s.logits[first];
    if (all_hopeless(logits, count, most, podium.bar())) continue;
    const double* g = noise.chunk(first);
    for (int at = 0; at < count; at += 16) {
      const int end = std::min(at + 16, count);
      const double bar = podium.bar();
      int any = 0;
      for (int i = at; i < end; ++i) any |= logits[i] + temperature * g[i] >= bar;
      if (!any) continue;
      for (int i = at; i < end; ++i)
        if (logits[i] != kNever) podium.offer(first + i, logits[i] + temperature * g[i]);
    }
  }
}

}  // namespace

Sampler::Scratch::Scratch(int vocab)
    : logits(vocab),
      probabilities(vocab),
      order(vocab),
      noise(vocab),
      noise_ready((vocab + kChunk - 1) / kChunk),
      keys(vocab) {}

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
    float& logit = scratch.logits[token];
    logit = logit > 0 ? logit / o.repetition_penalty : logit * o.repetition_penalty;
    logit = logit - (o.presence_penalty + o.frequency_penalty * static_cast<float>(seen[token]));
    if (!std::isfinite(logit)) logit = kNever;
    seen[token] = 0;  // once per token
  }
}

// Fills scratch.logits; what cannot be drawn (not finite, banned) is -inf. Returns the argmax or -1.
int Sampler::process(std::span<const float> logits, const PathState& state, Scratch& scratch) const {
  COPPICE_CHECK(logits.size() == static_cast<std::size_t>(vocab_) && scratch.logits.size() == logits.size());
  float* processed = scratch.logits.data();
  for (int id = 0; id < vocab_; ++id) {
    const float x = logits[id];
    processed[id] = x - x == 0.0f ? x : kNever;  // infinities and NaN give NaN
  }
  for (const auto& [token, bias] : options_.logit_bias) {
    processed[token] += bias;
    if (!std::isfinite(processed[token])) processed[token] = kNever;
  }
  for (const Token token : forbidden_) processed[token] = kNever;
  penalise(state, scratch);
  const int argmax = kernels().argmax(processed, vocab_);
  return argmax >= 0 && processed[argmax] != kNever ? argmax : -1;
}

int Sampler::best_scores(const Survivors& survivors, std::int64_t index, Scratch& scratch,
                         std::span<Ranked> out) const {
  if (out.empty()) return 0;
  const double temperature = options_.temperature;
  Podium podium(out);
  NoiseChunks noise(scratch, key(), index);
  if (survivors.all()) {
    score_all(scratch, noise, temperature, podium);
    return podium.count();
  }
  const auto score = [&](int id, double g) { podium.offer(id, scratch.logits[id] + temperature * g); };
  const double most = temperature * kMostNoise;
  // Few survivors: their noise one by one, the most probable one first for a high bar. Many: by the chunk.
  const bool few = survivors.ids().size() * 16 < scratch.logits.size();
  if (few) score(survivors.top(), gumbel_noise(key(), index, survivors.top()));
  for (const int id : survivors.ids()) {
    if ((few && id == survivors.top()) || hopeless(scratch.logits[id], most, podium.bar())) continue;
    score(id, few ? gumbel_noise(key(), index, id) : noise.chunk(id / kChunk * kChunk)[id % kChunk]);
  }
  return podium.count();
}

namespace {

tl::unexpected<Error> nothing_to_draw() {
  return fail("no token can be drawn: every logit is banned or not a finite number; ban fewer tokens");
}

// At T = 0: the best logits, no noise. Filters cannot remove a point mass's only token.
int best_logits(Sampler::Scratch& scratch, std::span<Ranked> out) {
  const int count = select_best(scratch.logits, static_cast<int>(out.size()), scratch.keys.data());
  std::sort(scratch.keys.begin(), scratch.keys.begin() + count);
  for (int i = 0; i < count; ++i) {
    const int id = key_id(scratch.keys[i]);
    out[i] = {id, 0, scratch.logits[id]};
  }
  return count;
}

}  // namespace

Result<Draw> Sampler::draw(std::span<const float> logits, const PathState& state, Scratch& scratch) const {
  const int argmax = process(logits, state, scratch);
  if (argmax < 0) return nothing_to_draw();
  Draw draw;
  draw.token = argmax;
  if (options_.temperature > 0) {
    Survivors survivors(scratch, argmax, options_.temperature);
    survivors.apply(options_);
    Ranked best;
    best_scores(survivors, state.index(), scratch, {&best, 1});
    draw.token = best.token;
  }
  if (options_.logprobs >= 0) log_probabilities(scratch, argmax, draw);
  return draw;
}

void Sampler::log_probabilities(Scratch& scratch, int argmax, Draw& draw) const {
  Survivors everyone(scratch, argmax, 1.0f);
  const double log_sum = log_exact(everyone.normaliser()) + scratch.logits[argmax];
  const auto logprob = [&](int id) { return static_cast<float>(scratch.logits[id] - log_sum); };
  draw.logprob = logprob(draw.token);
  draw.top = select_best(scratch.logits, options_.logprobs, scratch.keys.data());
  std::sort(scratch.keys.begin(), scratch.keys.begin() + draw.top);
  scratch.top.resize(draw.top);
  for (int i = 0; i < draw.top; ++i) {
    const int id = key_id(scratch.keys[i]);
    scratch.top[i] = {id, logprob(id)};
  }
}

int Sampler::rank(std::span<const float> logits, const PathState& state, Scratch& scratch,
                  std::span<Ranked> out) const {
  const int argmax = process(logits, state, scratch);
  if (argmax < 0) return 0;
  const bool greedy = options_.temperature == 0;
  const float temperature = greedy ? 1.0f : options_.temperature;
  Survivors survivors(scratch, argmax, temperature);
  if (!greedy) survivors.apply(options_);
  const int count = greedy ? best_logits(scratch, out) : best_scores(survivors, state.index(), scratch, out);
  const double log_sum = log_exact(survivors.normaliser());
  for (int i = 0; i < count; ++i)
    out[i].logprob = static_cast<float>(
        (static_cast<double>(scratch.logits[out[i].token]) - scratch.logits[argmax]) / temperature - log_sum);
  return count;
}

Status Sampler::distribution(std::span<const float> logits, const PathState& state, Scratch& scratch) const {
  const int argmax = process(logits, state, scratch);
  if (argmax < 0) return nothing_to_draw();
  std::vector<float>& p = scratch.probabilities;
  if (options_.temperature == 0) {
    std::fill(p.begin(), p.end(), 0.0f);
    p[argmax] = 1.0f;
    return {};
  }
  Survivors survivors(scratch, argmax, options_.temperature);
  survivors.apply(options_);
  const float total = survivors.normaliser();
  if (survivors.all()) {
    for (float& weight : p) weight /= total;
    return {};
  }
  int next = 0;  // everything between two survivors is zero
  for (const int id : survivors.ids()) {
    std::fill(p.begin() + next, p.begin() + id, 0.0f);
    p[id] /= total;
    next = id + 1;
  }
  std::fill(p.begin() + next, p.end(), 0.0f);
  return {};
}

double Sampler::noise(std::int64_t index, Token token) const { return gumbel_noise(key(), index, token); }

}  // namespace coppice::core
