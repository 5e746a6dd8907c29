// Features: for each context length, how likely the continuation is there (a log ratio of decayed weights)
// and how much was seen. Their scales make typical values about 1, so that one learning rate suits all.
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
constexpr int kLookupFeatures = kSuffixOrders * kPerLength;

using Contexts = std::array<SuffixContext, kSuffixOrders>;

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
    : max_tokens_(max_tokens), indices_(static_cast<std::size_t>(sequences)) {}

DrafterShape LookupDrafter::shape() const { return {kLookupFeatures, kSuffixOrders + 1, false}; }

Status LookupDrafter::begin(int sequence, std::span<const Token> tokens, const Sampler&) {
  auto& index = indices_[static_cast<std::size_t>(sequence)];
  if (index == nullptr)
    index = std::make_unique<SuffixIndex>(max_tokens_);
  else
    index->clear();
  for (const Token token : tokens) index->append(token);
  return {};
}

void LookupDrafter::end(int) {}  // the memory serves the slot's next request

void LookupDrafter::observe(int sequence, std::span<const Token> accepted) {
  for (const Token token : accepted) indices_[static_cast<std::size_t>(sequence)]->append(token);
}

void LookupDrafter::predict(std::span<Query> queries) {
  for (Query& query : queries) {
    Contexts contexts;
    indices_[static_cast<std::size_t>(query.sequence)]->contexts(query.state.path, contexts.data());
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
  Contexts contexts;
  indices_[static_cast<std::size_t>(query.sequence)]->contexts(query.state.path, contexts.data());
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    float* x = out + t * static_cast<std::size_t>(stride);
    std::fill_n(x, kLookupFeatures, 0.0f);
    for (int o = 0; o < kSuffixOrders; ++o, x += kPerLength) {
      const float total = contexts[o].total;
      if (total == 0) continue;
      const float weight = weight_of(contexts[o], tokens[t]);
      x[0] = std::log((weight + 0.05f) / (total + 0.3f)) * 0.4f + 0.8f;
      x[1] = weight > 0 ? std::min(total, 4.0f) * 0.2f : -0.3f;
    }
  }
}

int LookupDrafter::bucket(const Query& query) {
  Contexts contexts;
  indices_[static_cast<std::size_t>(query.sequence)]->contexts(query.state.path, contexts.data());
  int longest = kSuffixOrders;
  while (longest > 0 && contexts[longest - 1].total == 0) --longest;
  return longest;
}

Result<std::unique_ptr<Drafter>> make_lookup(const DrafterNode& node, const DraftEnvironment& environment) {
  COPPICE_TRY_STATUS(check_arguments(node, {.files = 0, .inner = false, .options = {"max"}}));
  COPPICE_TRY(const int most, int_option(node, "max", environment.context, {16, 1 << 24}));
  return std::make_unique<LookupDrafter>(environment.sequences, most);
}

}  // namespace coppice::core
