#include "draft/draft_along.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/slim_testing.h"

namespace coppice::core {
namespace {

constexpr int kVocab = 320;

struct Slim {
  ThreadPool pool{1};
  std::shared_ptr<const Model> model = testing::make_model(testing::slimmable(), pool);
  std::unique_ptr<DraftAlong> along = std::move(*DraftAlong::make(model, 400, pool));
  std::vector<Token> text = testing::some_tokens(300, kVocab);  // more than one pass

  // Logits after each token, by another way.
  std::vector<std::vector<float>> logits(int variant, std::span<const Token> tokens) {
    ContextOptions options;
    options.kv.positions = 400;
    auto context = testing::make_context(model, pool, options);
    context->set_variant(variant);
    return testing::run_chain(*context, *context->cache().open(), tokens);
  }
};

double surprise_of(const std::vector<float>& logits, Token token) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  return std::log(sum) - logits[static_cast<std::size_t>(token)];
}

TEST(DraftAlong, EveryVariantGuessesWhatItWouldSayFirst) {
  Slim slim;
  const Sampler greedy = *Sampler::make({}, kVocab, {});
  // A text that the whole draft guesses every third token of.
  for (std::size_t p = 3; p < slim.text.size(); p += 3) {
    const auto row = slim.logits(slim.model->whole(), std::span(slim.text).first(p)).back();
    slim.text[p] = static_cast<Token>(std::max_element(row.begin(), row.end()) - row.begin());
    if (p > 30) break;
  }
  for (int variant = 0; variant < static_cast<int>(slim.model->variants().size()); ++variant) {
    std::vector<DraftAlong::Guess> guesses;
    ASSERT_TRUE(slim.along->guesses(variant, slim.text, 5, greedy, guesses));
    ASSERT_EQ(guesses.size(), slim.text.size() - 5);
    const auto rows = slim.logits(variant, slim.text);
    for (std::size_t i = 0; i < guesses.size(); ++i) {
      const auto& row = rows[5 + i - 1];
      const auto best = static_cast<Token>(std::max_element(row.begin(), row.end()) - row.begin());
      EXPECT_EQ(guesses[i].right, best == slim.text[5 + i]) << variant << " " << i;
      EXPECT_NEAR(guesses[i].chance, std::exp(-surprise_of(row, best)), 1e-4) << variant << " " << i;
    }
    if (variant == slim.model->whole()) {
      EXPECT_TRUE(guesses[1].right);
    }
  }
}

TEST(DraftAlong, SampledTextIsGuessedWithTheNoiseThatDrewIt) {
  Slim slim;
  Sampling sampling;
  sampling.temperature = 3;
  sampling.seed = 9;
  const Sampler sampler = *Sampler::make(sampling, kVocab, {});
  std::vector<DraftAlong::Guess> guesses;
  ASSERT_TRUE(slim.along->guesses(0, slim.text, 40, sampler, guesses));
  const auto rows = slim.logits(0, slim.text);
  Sampler::Scratch scratch(kVocab);
  int differ = 0;
  for (std::size_t i = 0; i < guesses.size(); ++i) {
    const auto draw = sampler.draw(rows[39 + i], {std::span(slim.text).first(40 + i), {}}, scratch);
    EXPECT_EQ(guesses[i].right, draw->token == slim.text[40 + i]) << i;
    const auto& row = rows[39 + i];
    differ += draw->token != std::max_element(row.begin(), row.end()) - row.begin();
  }
  EXPECT_GT(differ, 100);
}

}  // namespace
}  // namespace coppice::core
