// What all drafters said at one node, side by side, and what the mixer makes of it.
//
// Greedy: one mixer over [1, depth, drafter 0's features, drafter 1's, ...].
// Sampled: the draw depends on noise that everybody knows. A first mixer, over the same features and free of
// noise, estimates each candidate's chance p under the target's tempered distribution; a second, small one
// sees how p and the candidate's own noise g stand (score = log p + g, as in a Gumbel-max draw) and estimates
// the chance that it is the draw. Both learn from every draw.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "draft/drafter.h"
#include "tree/mixer.h"

namespace coppice::core {

inline constexpr int kMaxUnion = kMostMixed;  // candidates of all drafters at one node
inline constexpr int kUnits = 32;             // units of a mixer's hidden layer; a prior may use fewer
inline constexpr int kOwnFeatures = 2;        // the constant, the depth
inline constexpr int kNoiseFeatures = 6;      // of the second mixer in sampled mode, its constant included

// The candidates at one node. The arrays live in the sequence's memory until observe().
struct Opinions {
  int count = 0;
  int bucket = 0;
  Token* tokens = nullptr;        // [count], distinct
  SourceMask* sources = nullptr;  // [count]
  float* x = nullptr;             // [count, features]
  float* gumbel = nullptr;        // [count], the noise of each, filled by chances() in sampled mode
  float* noise = nullptr;         // [count, kNoiseFeatures], filled by chances() in sampled mode
};

// What the second mixer of sampled mode sees. p: [count], the noise-free chances; out: [count,
// kNoiseFeatures].
void noise_features(int count, const float* p, const float* gumbel, float* out);

// A node's path as one number.
std::uint64_t path_key(std::span<const Token> path);

// The mixers of one sequence.
class Mixture {
 public:
  Mixture(int features, int buckets);

  static MixerShape shape(int features, int buckets) { return {features, buckets, kUnits}; }
  static MixerShape noise_shape(int buckets) { return {kNoiseFeatures, buckets, 0}; }
  // Floats of a prior: those of greedy mode, of sampled mode (both of shape()), of the noise.
  static std::size_t prior_size(int features, int buckets);
  // What is used without a fitted prior.
  static std::vector<float> untaught(int features, int buckets);

  // `noisy`: the draw will use the keyed noise (not so with acceptance = rejection).
  void start(std::span<const float> prior, bool sampled, bool noisy = true);
  bool sampled() const { return sampled_; }
  // The chance of each candidate, their sum below 1. out: [count].
  void chances(Opinions& opinions, const PathState& state, const Sampler& sampler, float* out) const;
  void learn(const Opinions& opinions, Token drawn);
  // In the layout of a prior: what this sequence learned in its mode, the other mode as it started.
  std::span<const float> weights() const;
  void set_rate(float rate);

 private:
  bool sampled_ = false, noisy_ = false;
  Mixer mixer_;        // of the mode
  Mixer noise_mixer_;  // sampled mode only
  mutable std::vector<float> weights_;
};

// Opinions of the visited nodes of one sequence, by the path that leads to them. Never allocates after
// construction; when it is full, later nodes are not remembered (and not learned from).
class OpinionStore {
 public:
  OpinionStore(int nodes, int features);
  void clear();
  // Room for `count` candidates at a node of this value; arrays null when there is none left.
  Opinions add(std::span<const Token> path, float value, int count, int bucket);
  void forget_up_to(float value);
  // The last one stored for this path; null if none.
  const Opinions* find(std::span<const Token> path) const;

 private:
  struct Entry {
    std::uint64_t key;
    float value;
    Opinions opinions;
  };
  int features_;
  std::size_t used_ = 0;  // candidates
  std::vector<Entry> entries_;
  std::vector<Token> tokens_;
  std::vector<SourceMask> sources_;
  std::vector<float> x_, gumbel_, noise_;
};

}  // namespace coppice::core
