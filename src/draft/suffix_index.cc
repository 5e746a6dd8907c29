// Every context length has a hash table of the contexts seen and one of (context, continuation) pairs. The
// pairs of a context form a list, weightiest first. Weights are stored as of the context's sighting in which
// they last changed, so that a new sighting touches one pair only: the decay is the same for all others and
// keeps their order. A pair just seen weighs at least 1 and all weights of a context together less than 5, so
// moving it to its place passes at most four others.
#include "draft/suffix_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace coppice::core {
namespace {

constexpr float kDecay = 0.8f;
constexpr int kLongest = kSuffixLengths[kSuffixOrders - 1];
constexpr std::int32_t kNone = -1;

constexpr int kFaded = 128;  // sightings after which a weight is nothing: 0.8^128 = 4e-13

std::array<float, kFaded> decay_powers() {
  std::array<float, kFaded> power{};
  float p = 1;
  for (float& x : power) {
    x = p;
    p *= kDecay;
  }
  return power;
}

float faded(std::uint32_t sightings) {
  static const std::array<float, kFaded> power = decay_powers();
  return sightings < kFaded ? power[sightings] : 0.0f;
}

std::uint64_t mix(std::uint64_t h, std::uint64_t x) {
  h = (h ^ x) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

struct Context {
  std::int32_t end = 0;     // the context is the tokens before this position
  std::int32_t latest = 0;  // the same where it was seen last
  std::int32_t head = kNone;
  std::uint32_t sightings = 0;
};

struct Seen {
  Token token = kNoToken;
  std::int32_t count = 0, latest = 0;  // position of the last one
};

struct Pair {
  std::int32_t context = 0;
  Token token = kNoToken;
  float weight = 0;  // as of sighting `stamp` of its context
  std::uint32_t stamp = 0;
  std::int32_t before = kNone, after = kNone;
};

// Open addressing over indices; never more than half full.
class Slots {
 public:
  explicit Slots(int items) : slots_(std::bit_ceil(static_cast<std::size_t>(items) * 2 + 2), kNone) {}
  void clear() { std::fill(slots_.begin(), slots_.end(), kNone); }
  // The slot that holds an index for which same(index), or the free one where it would go.
  template <class Same>
  std::int32_t& find(std::uint64_t hash, const Same& same) {
    std::size_t at = hash & (slots_.size() - 1);
    while (slots_[at] != kNone && !same(slots_[at])) at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }

 private:
  std::vector<std::int32_t> slots_;
};

struct Order {
  explicit Order(int most) : context_slots(most), pair_slots(most) {
    contexts.reserve(static_cast<std::size_t>(most));
    pairs.reserve(static_cast<std::size_t>(most));
  }
  std::vector<Context> contexts;
  std::vector<Pair> pairs;
  Slots context_slots, pair_slots;

  void unlink(Context& context, Pair& pair) {
    (pair.before == kNone ? context.head : pairs[pair.before].after) = pair.after;
    if (pair.after != kNone) pairs[pair.after].before = pair.before;
  }

  void link_by_weight(Context& context, std::int32_t index) {
    Pair& pair = pairs[index];
    std::int32_t before = kNone, after = context.head;
    while (after != kNone &&
           pairs[after].weight * faded(context.sightings - pairs[after].stamp) >= pair.weight) {
      before = after;
      after = pairs[after].after;
    }
    pair.before = before;
    pair.after = after;
    (before == kNone ? context.head : pairs[before].after) = index;
    if (after != kNone) pairs[after].before = index;
  }

  void see(std::int32_t context_index, Token token) {
    Context& context = contexts[context_index];
    ++context.sightings;
    const std::uint64_t hash =
        mix(mix(0x5eed, static_cast<std::uint64_t>(context_index)), static_cast<std::uint64_t>(token));
    std::int32_t& slot = pair_slots.find(
        hash, [&](std::int32_t i) { return pairs[i].context == context_index && pairs[i].token == token; });
    if (slot == kNone) {
      slot = static_cast<std::int32_t>(pairs.size());
      pairs.push_back({context_index, token, 0, context.sightings, kNone, kNone});
    } else {
      unlink(context, pairs[slot]);
    }
    Pair& pair = pairs[slot];
    pair.weight = pair.weight * faded(context.sightings - pair.stamp) + 1;
    pair.stamp = context.sightings;
    link_by_weight(context, slot);
  }
};

}  // namespace

struct SuffixIndex::State {
  explicit State(int most) : max_tokens(std::max(most, 0)), seen_slots(max_tokens) {
    tokens.reserve(static_cast<std::size_t>(max_tokens));
    for (int o = 0; o < kSuffixOrders; ++o) orders.emplace_back(max_tokens);
    seen.reserve(static_cast<std::size_t>(max_tokens));
  }

  int max_tokens;
  std::vector<Token> tokens;           // those indexed
  std::array<Token, kLongest> last{};  // the newest tokens, newest first, indexed or not
  int lasts = 0;
  std::vector<Order> orders;
  std::vector<Seen> seen;  // each token once
  Slots seen_slots;

  std::int32_t& seen_slot(Token token) {
    return seen_slots.find(mix(0x70ce, static_cast<std::uint64_t>(token)),
                           [&](std::int32_t i) { return seen[i].token == token; });
  }

  void remember(Token token) {
    std::copy_backward(last.begin(), last.end() - 1, last.end());
    last[0] = token;
    lasts = std::min(lasts + 1, kLongest);
  }

  // newest: [lengths of o] the context, newest first.
  std::int32_t& slot(int o, std::uint64_t hash, const Token* newest) {
    const int length = kSuffixLengths[o];
    return orders[o].context_slots.find(hash, [&, length](std::int32_t i) {
      const Token* end = tokens.data() + orders[o].contexts[i].end;
      for (int j = 0; j < length; ++j)
        if (end[-1 - j] != newest[j]) return false;
      return true;
    });
  }
};

SuffixIndex::SuffixIndex(int max_tokens) : state_(std::make_unique<State>(max_tokens)) { faded(0); }
SuffixIndex::~SuffixIndex() = default;

void SuffixIndex::clear() {
  state_->tokens.clear();
  state_->lasts = 0;
  state_->seen.clear();
  state_->seen_slots.clear();
  for (Order& order : state_->orders) {
    order.contexts.clear();
    order.pairs.clear();
    order.context_slots.clear();
    order.pair_slots.clear();
  }
}

void SuffixIndex::append(Token token) {
  State& s = *state_;
  if (static_cast<int>(s.tokens.size()) < s.max_tokens) {
    std::uint64_t hash = 0;
    int length = 0;
    for (int o = 0; o < kSuffixOrders && kSuffixLengths[o] <= s.lasts; ++o) {
      while (length < kSuffixLengths[o]) hash = mix(hash, static_cast<std::uint64_t>(s.last[length++]) + 1);
      std::int32_t& slot = s.slot(o, hash, s.last.data());
      if (slot == kNone) {
        slot = static_cast<std::int32_t>(s.orders[o].contexts.size());
        s.orders[o].contexts.push_back({static_cast<std::int32_t>(s.tokens.size()), 0, kNone, 0});
      }
      s.orders[o].contexts[slot].latest = static_cast<std::int32_t>(s.tokens.size());
      s.orders[o].see(slot, token);
    }
    std::int32_t& seen = s.seen_slot(token);
    if (seen == kNone) {
      seen = static_cast<std::int32_t>(s.seen.size());
      s.seen.push_back({token, 0, 0});
    }
    ++s.seen[seen].count;
    s.seen[seen].latest = static_cast<std::int32_t>(s.tokens.size());
    s.tokens.push_back(token);
  }
  s.remember(token);
}

SuffixSightings SuffixIndex::sightings(Token token) const {
  const std::int32_t index = state_->seen_slot(token);
  if (index == kNone) return {};
  const Seen& seen = state_->seen[index];
  return {seen.count, static_cast<int>(state_->tokens.size()) - seen.latest};
}

SuffixMatch SuffixIndex::contexts(std::span<const Token> path, SuffixContext* out) const {
  State& s = *state_;
  std::array<Token, kLongest> newest;
  int known = 0;
  for (std::size_t i = path.size(); i > 0 && known < kLongest; --i) newest[known++] = path[i - 1];
  for (int i = 0; i < s.lasts && known < kLongest; ++i) newest[known++] = s.last[i];
  for (int o = 0; o < kSuffixOrders; ++o) out[o].total = 0, out[o].count = 0;
  SuffixMatch match;
  std::int32_t latest = kNone;
  std::uint64_t hash = 0;
  int length = 0;
  for (int o = 0; o < kSuffixOrders && kSuffixLengths[o] <= known; ++o) {
    while (length < kSuffixLengths[o]) hash = mix(hash, static_cast<std::uint64_t>(newest[length++]) + 1);
    const std::int32_t index = s.slot(o, hash, newest.data());
    if (index == kNone) break;  // a context not seen has no longer one that was
    const Order& order = s.orders[o];
    const Context& context = order.contexts[index];
    // 1 + 0.8 + 0.8^2 + ... over all sightings
    out[o].total = (1 - faded(context.sightings)) / (1 - kDecay);
    for (std::int32_t p = context.head; p != kNone && out[o].count < kSuffixCandidates;
         p = order.pairs[p].after) {
      const Pair& pair = order.pairs[p];
      out[o].token[out[o].count] = pair.token;
      out[o].weight[out[o].count++] = pair.weight * faded(context.sightings - pair.stamp);
    }
    latest = context.latest;
    match.length = length;
  }
  if (latest == kNone) return match;
  match.token = s.tokens[latest];
  const int n = static_cast<int>(s.tokens.size()), p = static_cast<int>(path.size());
  if (n == s.max_tokens) return match;  // the newest tokens may not be indexed
  const auto back = [&](int i) { return i < p ? path[p - 1 - i] : s.tokens[n - 1 - (i - p)]; };
  while (match.length < kLongestMatch && match.length < latest && match.length - p < n &&
         s.tokens[latest - 1 - match.length] == back(match.length))
    ++match.length;
  return match;
}

}  // namespace coppice::core
