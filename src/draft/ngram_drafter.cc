// Features: for each context length 1 to 5, how likely the continuation is there (a log ratio) and how much
// was seen; how common the token is by itself; the whole model's chance, how it stands to the best one's, and
// the longest context that the token was seen after. Their scales make typical values about 1, so that one
// learning rate suits all.
#include "draft/ngram_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "draft/ranking.h"
#include "tree/mixer.h"

namespace coppice::core {
namespace {

constexpr int kDescribed = 5;  // context lengths with features of their own
constexpr int kPerLength = 2;
constexpr int kWhole = 5;  // of the model as a whole
constexpr int kNgramFeatures = kDescribed * kPerLength + kWhole;

}  // namespace

DrafterShape NgramDrafter::shape() const { return {kNgramFeatures, 1, false}; }

void NgramDrafter::contexts(const Query& query, NgramContext* out) const {
  std::array<Token, kMaxNgramContext> last;
  const auto n = static_cast<std::size_t>(std::min<std::int64_t>(model_->order(), query.state.index()));
  for (std::size_t i = 0; i < n; ++i) last[n - 1 - i] = query.state.back(i);
  model_->contexts(std::span(last).first(n), out);
}

void NgramDrafter::predict(std::span<Query> queries) {
  for (Query& query : queries) {
    std::array<NgramContext, kMaxNgramContext + 1> found;
    contexts(query, found.data());
    std::array<Token, kMostRanked> tokens;
    std::array<float, kMostRanked> chances;
    const int asked = ranked_for(query);
    const int n = model_->predict(found.data(), std::span(tokens).first(static_cast<std::size_t>(asked)),
                                  chances.data());
    rank_candidates(query, std::span(tokens).first(static_cast<std::size_t>(n)), chances.data());
  }
}

void NgramDrafter::describe(const Query& query, std::span<const Token> tokens, float* out, int stride) {
  std::array<NgramContext, kMaxNgramContext + 1> found;
  contexts(query, found.data());
  const std::size_t count = tokens.size(), wide = static_cast<std::size_t>(stride);
  for (std::size_t t = 0; t < count; ++t) std::fill_n(out + t * wide, kNgramFeatures, 0.0f);
  std::array<std::uint32_t, (kMaxNgramContext + 1) * kMostMixed> counts;
  std::array<float, kMostMixed> chances;
  COPPICE_CHECK(count <= chances.size());
  model_->judge(found.data(), tokens, counts.data(), chances.data());
  for (int k = 1; k <= model_->order() && found[k].count != 0; ++k) {
    const auto n = static_cast<float>(found[k].count);
    const auto distinct = static_cast<float>(found[k].distinct);
    const float seen = std::log(n + 1) * 0.15f;
    const auto ratio = [&](float c) {
      return std::log((c + 0.05f) / (n + 0.4f * distinct + 0.1f)) * 0.3f + 0.6f;
    };
    const float never = ratio(0);  // most have not been seen behind a long context
    for (std::size_t t = 0; t < count; ++t) {
      const auto c = static_cast<float>(counts[static_cast<std::size_t>(k) * count + t]);
      float* x = out + t * wide;
      if (c > 0) x[kDescribed * kPerLength + 4] = 0.25f * static_cast<float>(k);  // the longest so far
      if (k > kDescribed) continue;
      x += (k - 1) * kPerLength;
      x[0] = c > 0 ? ratio(c) : never;
      x[1] = c > 0 ? seen : -0.3f;
    }
  }
  float best = 0;
  for (std::size_t t = 0; t < count; ++t) {
    float* x = out + t * wide + kDescribed * kPerLength;
    const float p = std::clamp(chances[t], 1e-6f, 0.999f);
    best = std::max(best, p);
    const float alone = (static_cast<float>(counts[t]) + 0.5f) / (static_cast<float>(found[0].count) + 1.0f);
    x[0] = 0.2f * std::log(alone) + 1.4f;
    x[1] = 0.25f * std::log(p / (1 - p));
    x[2] = p;  // for now
  }
  for (std::size_t t = 0; t < count; ++t) {
    float* x = out + t * wide + kDescribed * kPerLength;
    x[3] = x[2] == best ? 1.0f : 0.0f;
    x[2] = 0.25f * std::log(x[2] / best);
  }
}

Result<std::unique_ptr<Drafter>> make_ngram(const DrafterNode& node, const DraftEnvironment& environment) {
  const std::string& path = node.files[0];
  COPPICE_TRY(auto model, environment.load_ngram ? environment.load_ngram(path) : KatzModel::open(path));
  const auto vocab = static_cast<int>(environment.vocabulary->tokens.size());
  if (model->vocab() != vocab || model->vocabulary_hash() != vocabulary_hash(environment.vocabulary->tokens))
    return fail(fmt::format(
        "{}: counted with another vocabulary ({} tokens) than the model's ({} tokens); count it again with "
        "`coppice ngram build` and this model",
        node.files[0], model->vocab(), vocab));
  return std::make_unique<NgramDrafter>(std::move(model));
}

}  // namespace coppice::core
