// Which tokens may still be drawn, and their weights: the filters between the processed logits and the draw.
//
// Order: top-k, typical-p, top-p, min-p. The weight of a token is 2^x with x = (logit - max) * (log2(e) / T)
// in f32, one rounding an operation, where max is the largest processed logit before any filter; so 2^0 = 1
// is the largest weight. A weight of 0 (x under -64) is below what noise could ever lift: typical-p, top-p
// and min-p drop it. Every filter sees the distribution left by the one before: its normaliser is the f32 sum
// of the survivors' weights in 16 lanes, lane = id mod 16, ids ascending, lanes added by the tree +8, +4, +2,
// +1 (numerics 1). Ties always go to the lowest id.
#pragma once

#include <coppice/sampling.h>

#include <cstdint>
#include <span>

#include "sample/sampler.h"

namespace coppice::core {

// Ascending keys are descending values, then ascending ids. -0 ties with +0.
std::uint64_t rank_key(float value, int id);
inline int key_id(std::uint64_t key) { return static_cast<int>(key & 0xffffffffu); }

inline constexpr int kLogitGroup = 32;   // ids whose logits are made together, and have a maximum
inline constexpr int kNoiseChunk = 256;  // ids whose noise is bounded at once

// The k best finite processed logits, by (value descending, id ascending), into scratch.keys in no particular
// order. Returns how many there were. Their groups are made.
int select_best(Sampler::Scratch& scratch, int k);

class Survivors {
 public:
  // scratch.logits holds the processed logits, `top` is where they are largest. temperature > 0.
  Survivors(Sampler::Scratch& scratch, int top, float temperature);

  void apply(const Sampling& options);
  // Of them, those with their bit set (Scratch::keep). The weights of what is left are anew relative to the
  // largest of them; top() is kNoToken where nothing is.
  void restrict_to(std::span<const std::uint32_t> mask);

  bool all() const { return all_; }  // no filter was on: every id, some of them perhaps with a logit of -inf
  std::span<const int> ids() const { return {scratch_.order.data(), static_cast<std::size_t>(count_)}; }
  int top() const { return top_; }    // the survivor with the largest logit, the lowest id on ties
  float max() const { return max_; }  // weights are relative to this logit
  // The sum of the survivors' weights, which are in scratch.probabilities after this.
  float normaliser();

 private:
  float exponent(int id) const;  // x above
  template <class Keep>
  void keep_if(const Keep& keep);
  void weigh();
  void keep_top_k(int k);
  void keep_typical(float share);
  void keep_top_p(float share);
  void keep_min_p(float share);
  template <class Key>
  void keep_shortest_prefix(double wanted, const Key& key, std::span<const std::uint32_t> bands);

  Sampler::Scratch& scratch_;
  int top_;
  float max_, bits_per_logit_;
  bool all_ = true, weighed_ = false;
  int count_ = 0;
};

}  // namespace coppice::core
