#include "sample/survivors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <functional>
#include <limits>

namespace coppice::core {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr double kLog2E = 1.4426950408889634;

// Unsigned integers in the order of the floats.
std::uint32_t ascending(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value + 0.0f);  // -0 becomes +0
  return bits ^ (bits >> 31 ? 0xffffffffu : 0x80000000u);
}

float value_of(std::uint64_t key) {
  const auto bits = ~static_cast<std::uint32_t>(key >> 32);
  return std::bit_cast<float>(bits ^ (bits >> 31 ? 0x80000000u : 0xffffffffu));
}

float lane_tree(std::array<float, 16>& lanes) {
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

}  // namespace

std::uint64_t rank_key(float value, int id) {
  return static_cast<std::uint64_t>(~ascending(value)) << 32 | static_cast<std::uint32_t>(id);
}

namespace {

// A value that k of the processed logits reach, as high as is found cheaply: that of the k-th best of a few
// hundred parts of the vocabulary. -infinity where there are not that many parts.
float reached_by(const std::vector<float>& maxima, int k) {
  constexpr std::size_t kParts = 256;
  const auto wanted = static_cast<std::size_t>(k);
  if (4 * wanted > kParts || maxima.size() < kParts) return kNever;
  std::array<float, kParts> parts;
  for (std::size_t p = 0; p < kParts; ++p) {
    const float* end = &maxima[0] + (p + 1) * maxima.size() / kParts;
    parts[p] = *std::max_element(&maxima[0] + p * maxima.size() / kParts, end);
  }
  std::nth_element(parts.begin(), parts.begin() + k - 1, parts.end(), std::greater<float>());
  return parts[wanted - 1];
}

}  // namespace

int select_best(Sampler::Scratch& scratch, int k) {
  if (k <= 0) return 0;
  const float* x = scratch.logits.data();
  std::uint64_t* keys = scratch.keys.data();
  const int n = static_cast<int>(scratch.logits.size());
  int count = 0;
  // What the next must exceed: at first less than what k reach, and once there are k the least of them, for
  // an equal value has the higher id.
  float bar = std::nextafter(reached_by(scratch.maxima, k), kNever);
  for (int group = 0, first = 0; first < n; ++group, first += kLogitGroup) {
    if (!(scratch.maxima[group] > bar)) continue;
    scratch.make(group);
    for (int i = first; i < std::min(first + kLogitGroup, n); ++i) {
      if (!(x[i] > bar)) continue;
      if (count < k) {
        keys[count++] = rank_key(x[i], i);
        if (count < k) continue;
        std::make_heap(keys, keys + count);  // the worst of the best on top
      } else {
        std::pop_heap(keys, keys + count);
        keys[count - 1] = rank_key(x[i], i);
        std::push_heap(keys, keys + count);
      }
      bar = value_of(keys[0]);
    }
  }
  return count;
}

Survivors::Survivors(Sampler::Scratch& scratch, int top, float temperature)
    : scratch_(scratch),
      top_(top),
      max_(scratch.logits[top]),
      // A temperature near 0 must not make 0 * infinity of the largest logit.
      bits_per_logit_(static_cast<float>(std::min(kLog2E / temperature, double{FLT_MAX}))) {}

float Survivors::exponent(int id) const { return (scratch_.logits[id] - max_) * bits_per_logit_; }

void Survivors::apply(const Sampling& options) {
  const int vocab = static_cast<int>(scratch_.logits.size());
  if (options.top_k > 0 && options.top_k < vocab) keep_top_k(options.top_k);
  if (options.typical_p < 1) keep_typical(options.typical_p);
  if (options.top_p < 1) keep_top_p(options.top_p);
  if (options.min_p > 0) keep_min_p(options.min_p);
}

template <class Keep>
void Survivors::keep_if(const Keep& keep) {
  std::vector<int>& order = scratch_.order;
  int kept = 0;
  if (all_) {
    scratch_.make_all();
    const int vocab = static_cast<int>(scratch_.logits.size());
    for (int id = 0; id < vocab; ++id)
      if (keep(id)) order[kept++] = id;
  } else {
    for (const int id : ids())
      if (keep(id)) order[kept++] = id;
  }
  all_ = false;
  count_ = kept;
}

void Survivors::restrict_to(std::span<const std::uint32_t> mask) {
  const std::vector<float>& logits = scratch_.logits;
  keep_if([&](int id) {
    return (mask[static_cast<std::size_t>(id) / 32] >> (id % 32) & 1) != 0 && logits[id] != kNever;
  });
  weighed_ = false;
  top_ = kNoToken;
  for (const int id : ids())
    if (top_ == kNoToken || logits[id] > logits[top_]) top_ = id;
  if (top_ != kNoToken) max_ = logits[top_];
}

void Survivors::weigh() {
  if (weighed_) return;
  weighed_ = true;
  float* weights = scratch_.probabilities.data();
  if (!all_) {
    for (const int id : ids()) weights[id] = exp2_exact(exponent(id));
    return;
  }
  scratch_.make_all();
  const int vocab = static_cast<int>(scratch_.logits.size());
  for (int id = 0; id < vocab; ++id) weights[id] = exponent(id);
  kernels().exp2(weights, weights, vocab);
}

float Survivors::normaliser() {
  weigh();
  const std::vector<float>& weights = scratch_.probabilities;
  if (all_) return lane_sum(weights.data(), static_cast<int>(weights.size()));
  std::array<float, 16> lanes{};
  for (const int id : ids()) lanes[id % 16] += weights[id];
  return lane_tree(lanes);
}

void Survivors::keep_top_k(int k) {
  count_ = select_best(scratch_, k);
  all_ = false;
  for (int i = 0; i < count_; ++i) scratch_.order[i] = key_id(scratch_.keys[i]);
  std::sort(scratch_.order.begin(), scratch_.order.begin() + count_);
}

// Ids ordered by (key, id), the shortest prefix whose weight reaches what is wanted. Only as many bands
// of keys are sorted as the prefix reaches into; the last band ends nowhere. Weights are added in f64, in
// order.
template <class Key>
void Survivors::keep_shortest_prefix(double wanted, const Key& key, std::span<const std::uint32_t> bands) {
  std::uint64_t* sorted = scratch_.keys.data();
  int kept = 0;
  double reached = 0;
  std::uint64_t from = 0;
  for (std::size_t band = 0; band <= bands.size() && (kept == 0 || reached < wanted); ++band) {
    const std::uint64_t to = band < bands.size() ? bands[band] : std::uint64_t{1} << 32;
    int end = kept;
    for (const int id : ids()) {
      const std::uint64_t k = key(id);
      if (k >= from && k < to) sorted[end++] = k << 32 | static_cast<std::uint32_t>(id);
    }
    std::sort(sorted + kept, sorted + end);
    while (kept < end && (kept == 0 || reached < wanted))
      reached += scratch_.probabilities[key_id(sorted[kept++])];
    from = to;
  }
  count_ = kept;
  for (int i = 0; i < count_; ++i) scratch_.order[i] = key_id(sorted[i]);
  std::sort(scratch_.order.begin(), scratch_.order.begin() + count_);
}

// Locally typical sampling (arXiv:2202.00666): tokens whose information is nearest to the entropy first. In
// bits a token has -x + log2(normaliser) and the entropy is the weighted mean of that; the logarithm cancels.
void Survivors::keep_typical(float share) {
  const std::vector<float>& weights = scratch_.probabilities;
  const float total = normaliser();
  keep_if([&](int id) { return weights[id] > 0; });  // under 2^-64 of the largest: no draw ever reaches it
  std::array<float, 16> lanes{};
  for (const int id : ids()) lanes[id % 16] += weights[id] * -exponent(id);
  const float mean = lane_tree(lanes) / total;
  const auto distance = [&](int id) { return ascending(std::fabs(-exponent(id) - mean)); };
  const std::uint32_t bands[] = {ascending(0.5f), ascending(1), ascending(2), ascending(4), ascending(8)};
  keep_shortest_prefix(double{share} * total, distance, bands);
  top_ = scratch_.order[0];  // the only filter that can drop the most probable token
  for (const int id : ids())
    if (scratch_.logits[id] > scratch_.logits[top_]) top_ = id;
}

void Survivors::keep_top_p(float share) {
  const std::vector<float>& weights = scratch_.probabilities;
  const auto vocab = static_cast<double>(weights.size());
  const double total = normaliser();
  // All tokens under `least` together weigh less than what top-p leaves out, so the prefix ends before them;
  // the last term is above what rounding can do to the normaliser, an f32 sum of vocab / 16 terms a lane.
  const double least = total / vocab * (1 - double{share} - vocab * 0x1p-27);
  keep_if([&](int id) { return weights[id] > 0 && weights[id] >= least; });
  const auto value = [&](int id) { return ~ascending(scratch_.logits[id]); };
  std::array<std::uint32_t, 8> bands;
  for (std::size_t i = 0; i < bands.size();
       ++i)  // 2, 4, 6 ... bits below the largest; where they lie is free
    bands[i] = ~ascending(max_ - static_cast<float>(2 * i + 2) / bits_per_logit_);
  keep_shortest_prefix(share * total, value, bands);
}

void Survivors::keep_min_p(float share) {
  weigh();
  const std::vector<float>& weights = scratch_.probabilities;
  const float least = share * weights[top_];  // the most probable survivor has the largest weight
  keep_if([&](int id) { return weights[id] > 0 && weights[id] >= least; });
}

}  // namespace coppice::core
