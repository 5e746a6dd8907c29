// A slimmable draft: which width it runs at, and that what it says is what that width says, over a cache that
// other widths have written.
#include <gtest/gtest.h>

#include <array>

#include "draft/model_drafter.h"
#include "model/slim_testing.h"

namespace coppice::core {
namespace {

struct Slim {
  ThreadPool pool{1};
  std::vector<std::byte> bytes = *random_model(testing::slimmable());
  std::shared_ptr<const Model> model = *testing::load_bytes(bytes, pool);
  Sampler sampler = *Sampler::make({}, 320, {});

  std::unique_ptr<ModelDrafter> drafter(int variant = ModelDrafter::kByCapacity, int sequences = 1) {
    ModelDrafter::Options options;
    options.context = 256;
    options.variant = variant;
    options.sequences = sequences;
    return std::move(*ModelDrafter::make(model, nullptr, options, pool));
  }
};

struct Answer {
  std::array<Candidate, kMaxCandidates> candidates;
  Query query;
  Answer(const Sampler& sampler, std::span<const Token> committed, float capacity, int sequence = 0) {
    query.sequence = sequence;
    query.state = {committed, {}};
    query.sampler = &sampler;
    query.budget.capacity = capacity;
    query.candidates = candidates.data();
  }
};

std::vector<std::pair<Token, float>> said(const Query& query) {
  std::vector<std::pair<Token, float>> out;
  for (int i = 0; i < query.count; ++i)
    out.push_back({query.candidates[i].token, query.candidates[i].logprob});
  return out;
}

TEST(SlimDraft, TheNearestWidthIsTakenAndTheNarrowerOfTwo) {
  const Slim slim;
  const auto width = [&](float capacity) {
    return slim.model->variants()[width_for(*slim.model, capacity)].factor;
  };
  EXPECT_EQ(width(0.0f), 0.5f);
  EXPECT_EQ(width(0.625f), 0.5f);
  EXPECT_EQ(width(0.63f), 0.75f);
  EXPECT_EQ(width(1.0f), 1.0f);
  EXPECT_EQ(width(9.0f), 1.0f);
}

// Every cycle at another width; the reference commits the same tokens at the same widths in a context of its
// own.
TEST(SlimDraft, WidthsThatChangeEveryCycleSayWhatThesePassesSay) {
  Slim slim;
  auto drafter = slim.drafter();
  const auto tokens = testing::some_tokens(60, 320);
  auto context = testing::make_context(slim.model, slim.pool);
  const int sequence = *context->cache().open();
  ASSERT_TRUE(drafter->begin(0, std::span(tokens).first(10), slim.sampler));
  Sampler::Scratch scratch(320);
  std::size_t seen = 0;
  const float capacities[] = {1.0f, 0.5f, 0.75f, 0.5f, 1.0f};
  for (std::size_t cycle = 0, length = 10; length < 60; ++cycle, length += 1 + cycle % 3) {
    const auto committed = std::span(tokens).first(length);
    const float capacity = capacities[cycle % 5];
    context->set_variant(width_for(*slim.model, capacity));
    const auto logits = testing::run_chain(*context, sequence, committed.subspan(seen)).back();
    Ranked expected[kMaxCandidates];
    slim.sampler.rank(logits, {committed, {}}, scratch, expected);
    Answer answer(slim.sampler, committed, capacity);
    drafter->predict({&answer.query, 1});
    ASSERT_EQ(answer.query.count, answer.query.wanted);
    for (int i = 0; i < answer.query.count; ++i) {
      EXPECT_EQ(answer.candidates[static_cast<std::size_t>(i)].token, expected[i].token) << "cycle " << cycle;
      EXPECT_EQ(answer.candidates[static_cast<std::size_t>(i)].logprob, expected[i].logprob)
          << "cycle " << cycle;
    }
    seen = length;
    const std::size_t more = std::min<std::size_t>(1 + (cycle + 1) % 3, 60 - length);
    drafter->observe(0, std::span(tokens).subspan(length, more));
  }
}

// Two requests in one call, each at its own width, as each alone.
TEST(SlimDraft, RequestsOfOneCallHaveWidthsOfTheirOwn) {
  Slim slim;
  const auto first = testing::some_tokens(12, 320, 1), second = testing::some_tokens(9, 320, 2);
  const auto alone = [&](std::span<const Token> tokens, float capacity) {
    auto drafter = slim.drafter();
    EXPECT_TRUE(drafter->begin(0, tokens, slim.sampler));
    Answer answer(slim.sampler, tokens, capacity);
    drafter->predict({&answer.query, 1});
    return said(answer.query);
  };
  auto drafter = slim.drafter(ModelDrafter::kByCapacity, 2);
  ASSERT_TRUE(drafter->begin(0, first, slim.sampler));
  ASSERT_TRUE(drafter->begin(1, second, slim.sampler));
  Answer a(slim.sampler, first, 0.5f), b(slim.sampler, second, 1.0f, 1);
  Query both[] = {a.query, b.query};
  drafter->predict(both);
  EXPECT_EQ(said(both[0]), alone(first, 0.5f));
  EXPECT_EQ(said(both[1]), alone(second, 1.0f));
  EXPECT_NE(alone(first, 0.5f), alone(first, 1.0f));
}

TEST(SlimDraft, AFixedWidthStaysAndReadsLess) {
  Slim slim;
  const auto tokens = testing::some_tokens(12, 320);
  std::uint64_t before = 0;
  for (const int variant : {0, 1, 2}) {
    auto drafter = slim.drafter(variant);
    ASSERT_TRUE(drafter->begin(0, tokens, slim.sampler));
    drafter->take_cost();
    Answer answer(slim.sampler, tokens, 1.0f);
    drafter->predict({&answer.query, 1});
    const std::uint64_t bytes = drafter->take_cost().bytes;
    EXPECT_GT(bytes, before);
    before = bytes;
  }
}

TEST(SlimDraft, TheExitIsTakenWhereTheBudgetAsksForItAndThereIsOne) {
  Slim slim;
  Budget budget;
  budget.capacity = 0.5f;
  budget.exit = true;
  EXPECT_EQ(slim.model->variants()[static_cast<std::size_t>(variant_for(*slim.model, budget))].name, "exit");
  budget.exit = false;
  EXPECT_EQ(variant_for(*slim.model, budget), width_for(*slim.model, 0.5f));
  ThreadPool pool(1);
  const auto whole = testing::make_model({}, pool);
  budget.exit = true;
  EXPECT_EQ(variant_for(*whole, budget), 0);
  EXPECT_TRUE(slim.drafter()->slims());
  EXPECT_FALSE(slim.drafter(1)->slims());
}

// The mean of -ln p along the text's end, whatever the draft has in its cache; and what it says afterwards is
// what it would have said.
TEST(SlimDraft, SaysHowLittleItExpectedAPromptAndGoesOnAsIfNotAsked) {
  Slim slim;
  const auto tokens = testing::some_tokens(90, 320);
  auto context = testing::make_context(slim.model, slim.pool);
  const auto logits = testing::run_chain(*context, *context->cache().open(), tokens, 32);
  Sampler::Scratch scratch(320);
  double sum = 0;
  for (std::size_t p = 69; p < 89; ++p)
    sum -= slim.sampler.logprob(tokens[p + 1], logits[p], {std::span(tokens).first(p + 1), {}}, scratch);
  auto drafter = slim.drafter(), silent = slim.drafter();
  for (int round = 0; round < 2; ++round) {  // the second finds the prompt in its cache
    ASSERT_TRUE(drafter->begin(0, tokens, slim.sampler));
    EXPECT_NEAR(*drafter->surprise(0, tokens, 20), sum / 20, 1e-5);
    Answer asked(slim.sampler, tokens, 1.0f), unasked(slim.sampler, tokens, 1.0f);
    drafter->predict({&asked.query, 1});
    if (round == 0) {
      ASSERT_TRUE(silent->begin(0, tokens, slim.sampler));
    }
    silent->predict({&unasked.query, 1});
    EXPECT_EQ(said(asked.query), said(unasked.query));
    EXPECT_GT(asked.query.count, 0);
    drafter->end(0);
  }
  ASSERT_TRUE(drafter->begin(0, std::span(tokens).first(1), slim.sampler));
  EXPECT_FALSE(drafter->surprise(0, std::span(tokens).first(1), 20)) << "nothing comes before the first";
}

}  // namespace
}  // namespace coppice::core
