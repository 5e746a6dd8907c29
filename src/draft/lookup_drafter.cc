// Features: for each context length, how likely the continuation is there (a log ratio of decayed weights)
// and how much was seen; how often and how lately the token stood anywhere; whether it is what followed the
// longest match, how long that is and how often such matches were right. Their scales make typical values
// about 1, so that one learning rate suits all.
#include "draft/lookup_drafter.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "draft/arguments.h"
#include "draft/ranking.h"

namespace coppice::core {
namespace {

constexpr int kPerLength = 2;
constexpr int kSightings = 2;
constexpr int kMatch = 5;
constexpr int kLookupFeatures = kSuffixOrders * kPerLength + kSightings + kMatch;

// Of a record: at first nothing is known; a new match counts so much.
constexpr float kUnknown = 0.5f, kLately = 0.2f, kByLength = 0.1f;

using Contexts = std::array<SuffixContext, kSuffixOrders>;

int longest_of(const Contexts& contexts) {
  int longest = kSuffixOrders;
  while (longest > 0 && contexts[longest - 1].total == 0) --longest;
  return longest;
}

float quarter_logit(float p) {
  p = std::clamp(p, 0.01f, 0.99f);
  return 0.25f * std::log(p / (1 - p));
}

float weight_of(const SuffixContext& context, Token token) {
  for (int i = 0; i < context.count; ++i)
    if (context.token[i] == token) return context.weight[i];
  return 0;
}

// The drafter's own estimate: each context length's ratio, the shorter ones' estimate counting as half a
// sighting.
float estimate(const Contexts& contexts, Token token) {
  constexpr float kPriorSightings = 0.5f;
  float p = 0;
  for (const SuffixContext& context : contexts)
    p = (weight_of(context, token) + kPriorSightings * p) / (context.total + kPriorSightings);
  return p;
}

}  // namespace

LookupDrafter::LookupDrafter(int sequences, int max_tokens)
    : max_tokens_(max_tokens),
      indices_(static_cast<std::size_t>(sequences)),
      records_(indices_.size()),
      found_(indices_.size()) {}

DrafterShape LookupDrafter::shape() const { return {kLookupFeatures, kSuffixOrders + 1, false}; }

Status LookupDrafter::begin(int sequence, std::span<const Token> tokens, const Sampler&) {
  auto& index = indices_[static_cast<std::size_t>(sequence)];
  if (index == nullptr)
    index = std::make_unique<SuffixIndex>(max_tokens_);
  else
    index->clear();
  Record& record = records_[static_cast<std::size_t>(sequence)];
  record.lately = kUnknown;
  std::fill(std::begin(record.by_length), std::end(record.by_length), kUnknown);
  for (const Token token : tokens) see(sequence, token);
  return {};
}

void LookupDrafter::end(int) {}  // the memory serves the slot's next request

void LookupDrafter::observe(int sequence, std::span<const Token> accepted) {
  for (const Token token : accepted) see(sequence, token);
}

const LookupDrafter::Found& LookupDrafter::find(const Query& query) {
  Found& found = found_[static_cast<std::size_t>(query.sequence)];
  const std::span<const Token> path = query.state.path;
  if (found.length == static_cast<int>(path.size()) &&
      std::equal(path.begin(), path.end(), found.path.begin()))
    return found;
  found.match = indices_[static_cast<std::size_t>(query.sequence)]->contexts(path, found.contexts.data());
  COPPICE_CHECK(path.size() <= found.path.size());
  found.length = static_cast<int>(path.size());
  std::copy(path.begin(), path.end(), found.path.begin());
  return found;
}

void LookupDrafter::see(int sequence, Token token) {
  SuffixIndex& index = *indices_[static_cast<std::size_t>(sequence)];
  found_[static_cast<std::size_t>(sequence)].length = -1;
  Contexts contexts;
  const SuffixMatch match = index.contexts({}, contexts.data());
  if (match.length > 0) {
    Record& record = records_[static_cast<std::size_t>(sequence)];
    const float right = match.token == token ? 1.0f : 0.0f;
    float& by_length = record.by_length[longest_of(contexts)];
    record.lately += kLately * (right - record.lately);
    by_length += kByLength * (right - by_length);
  }
  index.append(token);
}

void LookupDrafter::predict(std::span<Query> queries) {
  for (Query& query : queries) {
    const Contexts& contexts = find(query).contexts;
    std::array<Token, kMostRanked> tokens;
    std::array<float, kMostRanked> chances;
    int n = 0;
    for (int o = kSuffixOrders - 1; o >= 0; --o)
      for (int i = 0; i < contexts[o].count && n < kMostRanked; ++i)
        if (std::find(tokens.begin(), tokens.begin() + n, contexts[o].token[i]) == tokens.begin() + n)
          tokens[n++] = contexts[o].token[i];
    for (int i = 0; i < n; ++i) chances[i] = estimate(contexts, tokens[i]);
    rank_candidates(query, std::span(tokens).first(static_cast<std::size_t>(n)), chances.data());
  }
}

void LookupDrafter::describe(const Query& query, std::span<const Token> tokens, float* out, int stride) {
  const Found& found = find(query);
  const Contexts& contexts = found.contexts;
  const SuffixMatch match = found.match;
  const SuffixIndex& index = *indices_[static_cast<std::size_t>(query.sequence)];
  const Record& record = records_[static_cast<std::size_t>(query.sequence)];
  const float by_length = quarter_logit(record.by_length[longest_of(contexts)]);
  const auto ratio = [](float weight, float total) {
    return std::log((weight + 0.05f) / (total + 0.3f)) * 0.4f + 0.8f;
  };
  std::array<float, kSuffixOrders> never;  // most tokens did not follow
  for (int o = 0; o < kSuffixOrders; ++o) never[o] = ratio(0, contexts[o].total);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    float* x = out + t * static_cast<std::size_t>(stride);
    std::fill_n(x, kLookupFeatures, 0.0f);
    for (int o = 0; o < kSuffixOrders; ++o, x += kPerLength) {
      const float total = contexts[o].total;
      if (total == 0) continue;
      const float weight = weight_of(contexts[o], tokens[t]);
      x[0] = weight > 0 ? ratio(weight, total) : never[o];
      x[1] = weight > 0 ? std::min(total, 4.0f) * 0.2f : -0.3f;
    }
    if (const SuffixSightings seen = index.sightings(tokens[t]); seen.count > 0) {
      x[0] = 0.3f * std::log(1.0f + static_cast<float>(seen.count));
      x[1] = 1.0f - 0.15f * std::log(1.0f + static_cast<float>(seen.age));
    }
    x += kSightings;
    if (match.length == 0) continue;
    if (match.token == tokens[t]) {
      x[0] = 1.0f;
      x[1] = 0.3f * std::log2(static_cast<float>(match.length));
      x[2] = quarter_logit(record.lately);
      x[3] = by_length;
    } else {
      x[4] = -by_length;
    }
  }
}

int LookupDrafter::bucket(const Query& query) { return longest_of(find(query).contexts); }

Result<std::unique_ptr<Drafter>> make_lookup(const DrafterNode& node, const DraftEnvironment& environment) {
  return std::make_unique<LookupDrafter>(environment.sequences, int_option(node, "max", environment.context));
}

}  // namespace coppice::core
