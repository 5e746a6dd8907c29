#include "draft/model_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/allocation_count.h"
#include "draft/lookup_drafter.h"
#include "draft/mixture.h"
#include "draft/ngram_drafter.h"
#include "draft/prior.h"
#include "model/testing.h"

namespace coppice::core {
namespace {

constexpr int kVocab = 320;

struct Draft {
  ThreadPool pool{1};
  std::shared_ptr<const Model> model;
  explicit Draft(std::uint64_t seed = 1) {
    RandomModelOptions options;
    options.seed = seed;
    options.vocab = kVocab;
    model = testing::make_model(options, pool);
  }
  // Text by the model itself: greedy, but every `period`-th token is the second best.
  std::vector<Token> write(std::vector<Token> tokens, int length, int period) {
    auto context = testing::make_context(model, pool);
    const int s = *context->cache().open();
    Sampler::Scratch scratch(kVocab);
    const Sampler sampler = *Sampler::make({}, kVocab, {});
    std::size_t seen = 0;
    while (static_cast<int>(tokens.size()) < length) {
      const auto fresh = std::span(tokens).subspan(seen);
      const auto logits = testing::run_chain(*context, s, fresh, 32).back();
      seen = tokens.size();
      Ranked best[2];
      sampler.rank(logits, {tokens, {}}, scratch, best);
      tokens.push_back(best[length > 0 && period > 0 && tokens.size() % period == 0 ? 1 : 0].token);
    }
    return tokens;
  }
};

// An outer grower over one stage, its chance of a candidate being the draft's own.
struct Staged {
  Draft& draft;
  ModelDrafter* stage = nullptr;
  std::unique_ptr<Grower> grower;
  Sampler sampler;
  TokenTree tree;

  Staged(Draft& d, std::unique_ptr<Grower> inner, const Sampling& sampling = {}, int context = 512,
         int sequences = 1)
      : draft(d), sampler(*Sampler::make(sampling, kVocab, {})) {
    ModelDrafter::Options options;
    options.context = context;
    options.sequences = sequences;
    auto made = ModelDrafter::make(draft.model, std::move(inner), options, draft.pool);
    EXPECT_TRUE(made.has_value());
    stage = made->get();
    std::vector<std::unique_ptr<Drafter>> one;
    one.push_back(std::move(*made));
    grower = std::make_unique<Grower>(std::move(one), Grower::Options{sequences, 64});
    std::vector<float> prior = Mixture::untaught(grower->features(), 1);
    const std::size_t mode = Mixture::shape(grower->features(), 1).weights();
    for (int m = 0; m < 2; ++m) {
      prior[m * mode] = 0.0f;
      prior[m * mode + kOwnFeatures + 1] = 4.0f;
    }
    EXPECT_TRUE(grower->set_prior(prior));
  }

  struct Run {
    std::string trees;
    std::uint64_t passes = 0;
    std::uint64_t tokens = 0;
  };
  // The target writes `text`, of which `start` tokens are the prompt.
  Run replay(std::span<const Token> text, std::size_t start, Budget budget = {8, 16, 0.01f, 1.0f, 0.0f}) {
    Run run;
    EXPECT_TRUE(grower->begin(0, text.first(start), sampler));
    grower->take_cost();
    std::size_t at = start;
    while (at < text.size()) {
      const auto committed = text.first(at);
      tree.reset(committed.back());
      GrowJob job{0, committed, &sampler, budget, &tree, {}};
      grower->grow({&job, 1});
      for (int n = 1; n < tree.size(); ++n)
        run.trees += std::to_string(tree.parent(n)) + ":" + std::to_string(tree.token(n)) + "=" +
                     std::to_string(tree.value(n)) + " ";
      std::size_t accepted = 0;
      int node = 0;
      do {
        node = tree.child(node, text[at + accepted++]);
      } while (node != kNoNode && at + accepted < text.size());
      grower->observe(0, committed, text.subspan(at, accepted));
      at += accepted;
      run.tokens += accepted;
      run.trees += "+" + std::to_string(accepted) + "\n";
    }
    run.passes = grower->take_cost().passes;
    grower->end(0);
    return run;
  }
};

std::unique_ptr<Grower> only(std::unique_ptr<Drafter> drafter, int sequences = 1) {
  std::vector<std::unique_ptr<Drafter>> one;
  one.push_back(std::move(drafter));
  auto grower = std::make_unique<Grower>(std::move(one), Grower::Options{sequences, 64});
  (void)apply_prior(builtin_prior(), *grower);
  return grower;
}

// n-grams of the draft's own text: of what it is going to write too, since what a random model writes cannot
// be foreseen from other text of its. tests/laws/stage_test.cc measures a real one.
struct OwnNgram {
  std::vector<std::byte> bytes;
  std::shared_ptr<const KatzModel> model;
  explicit OwnNgram(Draft& draft) {
    KatzBuildOptions options;
    options.order = 3;
    options.vocab = kVocab;
    KatzBuilder builder(options);
    for (const unsigned seed : {4u, 99u})
      for (const int period : {5, 7})
        builder.add(draft.write(testing::some_tokens(6, kVocab, seed), 400, period));
    bytes = builder.to_bytes();
    model = *KatzModel::parse(bytes, "own");
  }
  std::unique_ptr<Grower> grower() const { return only(std::make_unique<NgramDrafter>(model)); }
};

TEST(ModelDrafter, SaysWhatTheModelSaysAtEveryNode) {
  Draft draft;
  Staged staged(draft, nullptr);
  const std::vector<Token> prompt = testing::some_tokens(20, kVocab);
  ASSERT_TRUE(staged.stage->begin(0, prompt, staged.sampler));
  // Two branches asked in one call, their ancestors never were.
  const std::vector<std::vector<Token>> paths{{5, 6, 7}, {5, 9}, {}};
  std::vector<Query> queries(paths.size());
  std::vector<std::array<Candidate, kMaxCandidates>> said(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    queries[i].state = {prompt, paths[i]};
    queries[i].sampler = &staged.sampler;
    queries[i].wanted = kMaxCandidates;
    queries[i].candidates = said[i].data();
    EXPECT_FALSE(staged.stage->knows(queries[i]));
  }
  staged.stage->predict(queries);
  EXPECT_EQ(staged.stage->take_cost().passes, 1u);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    EXPECT_TRUE(staged.stage->knows(queries[i]));
    std::vector<Token> all = prompt;
    all.insert(all.end(), paths[i].begin(), paths[i].end());
    auto context = testing::make_context(draft.model, draft.pool);
    const auto logits = testing::run_chain(*context, *context->cache().open(), all, 7).back();
    Sampler::Scratch scratch(kVocab);
    std::array<Ranked, kMaxCandidates> expected;
    ASSERT_EQ(staged.sampler.rank(logits, {prompt, paths[i]}, scratch, expected), queries[i].count);
    for (int c = 0; c < queries[i].count; ++c) {
      EXPECT_EQ(said[i][c].token, expected[c].token);
      EXPECT_EQ(said[i][c].logprob, expected[c].logprob);
    }
  }
}

TEST(Stage, TheInnerGrowerSavesPassesAndNeverChangesATree) {
  Draft draft;
  const OwnNgram own(draft);
  const std::vector<Token> text = draft.write(testing::some_tokens(6, kVocab, 99), 400, 7);
  Sampling sampled;
  sampled.temperature = 0.8f;
  sampled.top_k = 50;
  Sampling rejection = sampled;
  rejection.acceptance = Acceptance::rejection;
  for (const Sampling& sampling : {Sampling{}, sampled, rejection}) {
    Staged plain(draft, nullptr, sampling);
    Staged staged(draft, own.grower(), sampling);
    const auto without = plain.replay(text, 6);
    const auto with = staged.replay(text, 6);
    EXPECT_EQ(with.trees, without.trees);
    EXPECT_LT(with.passes, without.passes);
    if (sampling.temperature == 0.0f) {
      EXPECT_LE(with.passes, without.passes * 3 / 4);
    }
  }
}

TEST(Stage, TheInnerGrowerLearnsFromWhatTheDraftSays) {
  Draft draft;
  const OwnNgram own(draft);
  Staged staged(draft, own.grower());
  const std::vector<Token> text = draft.write(testing::some_tokens(6, kVocab, 99), 30, 7);
  const auto committed = std::span(text).first(20);
  ASSERT_TRUE(staged.grower->begin(0, committed, staged.sampler));
  const auto weights = [&] {
    const auto view = staged.stage->inner()->weights(0);
    return std::vector<float>(view.begin(), view.end());
  };
  const std::vector<float> before = weights();
  staged.tree.reset(committed.back());
  GrowJob job{0, committed, &staged.sampler, {8, 16, 0.01f, 1.0f, 0.0f}, &staged.tree, {}};
  staged.grower->grow({&job, 1});
  EXPECT_EQ(weights(), before);
  // Whatever the target drew: the draft has spoken.
  staged.grower->observe(0, committed, std::span(text).subspan(20, 1));
  EXPECT_NE(weights(), before);
}

TEST(Stage, ThreeLevelsGiveTheTreesOfOne) {
  Draft draft, middle(2);
  const OwnNgram own(draft);
  ModelDrafter::Options options;
  options.context = 512;
  auto inner_stage = ModelDrafter::make(middle.model, own.grower(), options, middle.pool);
  ASSERT_TRUE(inner_stage.has_value());
  Staged deep(draft, only(std::move(*inner_stage)));
  Staged plain(draft, nullptr);
  const std::vector<Token> text = draft.write(testing::some_tokens(6, kVocab, 4), 150, 5);
  EXPECT_EQ(deep.replay(text, 6).trees, plain.replay(text, 6).trees);
}

TEST(Stage, TheSameTreesWhenTheDraftIsAskedByTheWay) {
  // A request that begins like the one before finds its tokens computed, and says the same.
  Draft draft;
  Staged staged(draft, nullptr);
  const std::vector<Token> text = draft.write(testing::some_tokens(40, kVocab, 4), 120, 6);
  const auto first = staged.replay(text, 40);
  const std::vector<Token> other = testing::some_tokens(50, kVocab, 5);
  staged.replay(other, 30);
  EXPECT_EQ(staged.replay(text, 40).trees, first.trees);
  EXPECT_EQ(staged.replay(text, 40).trees, first.trees);
}

TEST(Stage, AFullContextStopsTheGuessesOnly) {
  Draft draft;
  const std::vector<Token> text = draft.write(testing::some_tokens(6, kVocab, 4), 100, 6);
  Staged wide(draft, nullptr), narrow(draft, nullptr, {}, 48);
  const auto all = wide.replay(text, 6);
  const auto part = narrow.replay(text, 6);
  // The same cycles at first, then one token a cycle.
  const std::size_t same =
      std::mismatch(part.trees.begin(), part.trees.end(), all.trees.begin()).first - part.trees.begin();
  EXPECT_GT(same, all.trees.size() / 5);
  EXPECT_EQ(part.trees.substr(part.trees.size() - 6), "+1\n+1\n");
  EXPECT_EQ(part.tokens, all.tokens);
}

TEST(Stage, LongPromptsAreComputedInChunks) {
  Draft draft;
  Staged staged(draft, nullptr);
  const std::vector<Token> text = draft.write(testing::some_tokens(200, kVocab, 4), 230, 6);
  const auto run = staged.replay(text, 200);
  EXPECT_GT(run.tokens, 0u);
  // Also where the draft lags behind by more than a pass has rows.
  ASSERT_TRUE(staged.grower->begin(0, std::span(text).first(20), staged.sampler));
  staged.grower->observe(0, std::span(text).first(20), std::span(text).subspan(20, 180));
  staged.tree.reset(text[199]);
  GrowJob job{0, std::span(text).first(200), &staged.sampler, {8, 16, 0.01f, 1.0f, 0.0f}, &staged.tree, {}};
  staged.grower->grow({&job, 1});
  std::string tree;
  for (int n = 1; n < staged.tree.size(); ++n)
    tree += std::to_string(staged.tree.parent(n)) + ":" + std::to_string(staged.tree.token(n)) + "=";
  EXPECT_EQ(run.trees.substr(0, 3), tree.substr(0, 3));
}

TEST(Stage, NothingIsAllocatedBetweenBeginAndEnd) {
  Draft draft;
  const OwnNgram own(draft);
  const std::vector<Token> text = draft.write(testing::some_tokens(40, kVocab, 4), 150, 5);
  Sampling sampling;
  sampling.temperature = 1.0f;
  sampling.top_k = 20;
  std::vector<std::unique_ptr<Drafter>> inner;
  inner.push_back(std::make_unique<NgramDrafter>(own.model));
  inner.push_back(std::make_unique<LookupDrafter>(1, 512));
  Staged staged(draft, std::make_unique<Grower>(std::move(inner), Grower::Options{1, 64}), sampling);
  ASSERT_TRUE(staged.grower->begin(0, std::span(text).first(40), staged.sampler));
  std::size_t guessed = 0;
  const testing::AllocationCount count;
  for (std::size_t at = 40; at + 3 < text.size(); at += 3) {
    staged.tree.reset(text[at - 1]);
    GrowJob job{0, std::span(text).first(at), &staged.sampler, {8, 16, 0.0f, 1.0f, 0.0f}, &staged.tree, {}};
    staged.grower->grow({&job, 1});
    staged.grower->observe(0, std::span(text).first(at), std::span(text).subspan(at, 3));
    guessed += static_cast<std::size_t>(staged.tree.size()) - 1;
  }
  EXPECT_EQ(count.so_far(), 0);
  EXPECT_GT(guessed, 100u);
}

TEST(Stage, SequencesDoNotSeeEachOther) {
  Draft draft;
  const std::vector<Token> a = testing::some_tokens(30, kVocab, 4), b = testing::some_tokens(17, kVocab, 5);
  const Budget budget{8, 16, 0.01f, 1.0f, 0.0f};
  const auto show = [](const TokenTree& tree) {
    std::string all;
    for (int n = 1; n < tree.size(); ++n)
      all += std::to_string(tree.parent(n)) + ":" + std::to_string(tree.token(n)) + " ";
    return all;
  };
  Staged alone(draft, nullptr);
  ASSERT_TRUE(alone.grower->begin(0, a, alone.sampler));
  alone.tree.reset(a.back());
  GrowJob job{0, a, &alone.sampler, budget, &alone.tree, {}};
  alone.grower->grow({&job, 1});

  Staged both(draft, only(std::make_unique<LookupDrafter>(2, 512), 2), {}, 512, 2);
  ASSERT_TRUE(both.grower->begin(0, b, both.sampler));
  ASSERT_TRUE(both.grower->begin(1, a, both.sampler));
  TokenTree other;
  other.reset(b.back());
  both.tree.reset(a.back());
  GrowJob jobs[] = {{0, b, &both.sampler, budget, &other, {}}, {1, a, &both.sampler, budget, &both.tree, {}}};
  both.grower->grow(jobs);
  EXPECT_EQ(show(both.tree), show(alone.tree));
  EXPECT_NE(show(both.tree), "");
}

}  // namespace
}  // namespace coppice::core
