#include "draft/mixture.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace coppice::core {
namespace {

// An expanded node has some 15 candidates on average; the store has room for this many.
constexpr std::size_t kStoredPerNode = 20;

// The noise mixer before it learned anything: mostly "does it beat the others known by its score", then "does
// it beat the rest". Columns as filled by noise_features().
constexpr float kUntaughtNoise[kNoiseFeatures] = {0.0f, 0.5f, 2.4f, 0.5f, 1.0f, 0.0f};

// Of learning. Faster than the mixer's own: 0.5% more tokens a pass than at 0.01 on held-out texts
// (coppice_replay --rate), and no less at 0.04.
constexpr float kRate = 0.02f;

float clamped_logit(float p) {
  p = std::clamp(p, 1e-4f, 1.0f - 1e-4f);
  return std::log(p / (1.0f - p));
}

int index_of(const Opinions& o, Token token) {
  for (int c = 0; c < o.count; ++c)
    if (o.tokens[c] == token) return c;
  return -1;
}

}  // namespace

void noise_features(int count, const float* p, const float* gumbel, float* out) {
  std::array<double, kMaxUnion> score;
  int best = 0, second = -1;
  for (int c = 0; c < count; ++c) {
    score[c] = std::log(std::max(p[c], 1e-6f)) + static_cast<double>(gumbel[c]);
    // p is already the chance under the temperature: no further sharpening.
    out[c * kNoiseFeatures + 1] = 0.25f * clamped_logit(chance_with_noise(p[c], gumbel[c], 1.0f));
  }
  for (int c = 1; c < count; ++c) {
    if (score[c] > score[best])
      second = best, best = c;
    else if (second < 0 || score[c] > score[second])
      second = c;
  }
  for (int c = 0; c < count; ++c) {
    float* row = out + c * kNoiseFeatures;
    const int rival = c == best ? second : best;
    const double gap = rival < 0 ? 4.0 : std::clamp(score[c] - score[rival], -4.0, 4.0);
    row[0] = 1.0f;
    row[2] = 0.25f * static_cast<float>(gap);
    row[3] = c == best ? 1.0f : 0.0f;
    row[4] = 0.25f * clamped_logit(p[c]);
    row[5] = 0.25f * static_cast<float>(std::clamp(score[c], -8.0, 8.0));
  }
}

std::uint64_t path_key(std::span<const Token> path) {
  std::uint64_t h = 0x9e3779b97f4a7c15u + path.size();
  for (const Token t : path) {
    h = (h ^ static_cast<std::uint32_t>(t)) * 0xff51afd7ed558ccdu;
    h ^= h >> 32;
  }
  return h;
}

Mixture::Mixture(int features, int buckets)
    : mixer_(shape(features, buckets)),
      noise_mixer_(noise_shape(buckets)),
      weights_(prior_size(features, buckets)) {
  set_rate(kRate);
}

std::size_t Mixture::prior_size(int features, int buckets) {
  return 2 * shape(features, buckets).weights() + noise_shape(buckets).weights();
}

std::vector<float> Mixture::untaught(int features, int buckets) {
  const Mixer fresh(shape(features, buckets));
  std::vector<float> prior;
  prior.reserve(prior_size(features, buckets));
  for (int mode = 0; mode < 2; ++mode)
    prior.insert(prior.end(), fresh.weights().begin(), fresh.weights().end());
  for (int b = 0; b < buckets; ++b)
    prior.insert(prior.end(), std::begin(kUntaughtNoise), std::end(kUntaughtNoise));
  return prior;
}

void Mixture::start(std::span<const float> prior, bool sampled, bool noisy) {
  COPPICE_CHECK(prior.size() == weights_.size());
  sampled_ = sampled;
  noisy_ = sampled && noisy;
  std::copy(prior.begin(), prior.end(), weights_.begin());
  const std::size_t mode = mixer_.weights().size();
  mixer_.set_weights(prior.subspan(sampled ? mode : 0, mode));
  noise_mixer_.set_weights(prior.subspan(2 * mode));
}

void Mixture::chances(Opinions& o, const PathState& state, const Sampler& sampler, float* out) const {
  mixer_.chances(o.bucket, o.x, o.count, out);
  if (!noisy_ || o.count == 0) return;
  for (int c = 0; c < o.count; ++c)
    o.gumbel[c] = static_cast<float>(sampler.noise(state.index(), o.tokens[c]));
  noise_features(o.count, out, o.gumbel, o.noise);
  noise_mixer_.chances(o.bucket, o.noise, o.count, out);
}

void Mixture::learn(const Opinions& o, Token drawn) {
  if (o.count == 0) return;
  const int taken = index_of(o, drawn);
  mixer_.learn(o.bucket, o.x, o.count, taken);
  if (noisy_) noise_mixer_.learn(o.bucket, o.noise, o.count, taken);
}

std::span<const float> Mixture::weights() const {
  const std::size_t mode = mixer_.weights().size();
  std::copy_n(mixer_.weights().begin(), mode,
              weights_.begin() + static_cast<std::ptrdiff_t>(sampled_ ? mode : 0));
  std::copy_n(noise_mixer_.weights().begin(), noise_mixer_.weights().size(),
              weights_.begin() + static_cast<std::ptrdiff_t>(2 * mode));
  return weights_;
}

void Mixture::set_rate(float rate) {
  mixer_.set_rate(rate);
  noise_mixer_.set_rate(rate);
}

OpinionStore::OpinionStore(int nodes, int features) : features_(features) {
  const std::size_t candidates = static_cast<std::size_t>(nodes) * kStoredPerNode;
  entries_.reserve(static_cast<std::size_t>(nodes) * 2);
  tokens_.resize(candidates);
  sources_.resize(candidates);
  x_.resize(candidates * features);
  gumbel_.resize(candidates);
  noise_.resize(candidates * kNoiseFeatures);
}

void OpinionStore::clear() {
  entries_.clear();
  used_ = 0;
}

Opinions OpinionStore::add(std::span<const Token> path, float value, int count, int bucket) {
  if (entries_.size() == entries_.capacity() || used_ + count > tokens_.size()) return {};
  const Opinions o{count,
                   bucket,
                   &tokens_[0] + used_,
                   &sources_[0] + used_,
                   &x_[0] + used_ * features_,
                   &gumbel_[0] + used_,
                   &noise_[0] + used_ * kNoiseFeatures};
  used_ += count;
  entries_.push_back({path_key(path), value, o});
  return o;
}

void OpinionStore::forget_up_to(float value) {
  const auto worthless = [&](const Entry& entry) { return entry.value <= value; };
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), worthless), entries_.end());
}

const Opinions* OpinionStore::find(std::span<const Token> path) const {
  const std::uint64_t key = path_key(path);
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry)
    if (entry->key == key) return &entry->opinions;
  return nullptr;
}

}  // namespace coppice::core
