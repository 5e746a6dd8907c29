#include "draft/grower.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/thread_pool.h"
#include "draft/lookup_drafter.h"
#include "draft/mixture.h"

namespace coppice::core {
namespace {

// Says what a function says; one feature per candidate, the logit of what it gave as its chance.
struct FakeDrafter : Drafter {
  using Say = std::function<std::vector<Candidate>(const Query&)>;
  std::string label = "fake";
  DrafterShape form{1, 1, false};
  Say say;
  int calls = 0;
  std::vector<int> sizes;  // queries per call
  std::set<std::vector<Token>> asked;
  std::vector<Token> committed;
  int foresight = 0;  // above 0: every so-and-so-many-th node is known in advance

  explicit FakeDrafter(Say s, bool costly = false) : say(std::move(s)) { form.costly = costly; }
  std::string_view name() const override { return label; }
  DrafterShape shape() const override { return form; }
  Status begin(int, std::span<const Token> tokens, const Sampler&) override {
    committed.assign(tokens.begin(), tokens.end());
    return {};
  }
  void end(int) override {}
  static std::vector<Token> key(const Query& q) {
    std::vector<Token> k{q.sequence};
    k.insert(k.end(), q.state.path.begin(), q.state.path.end());
    return k;
  }
  void predict(std::span<Query> queries) override {
    ++calls;
    sizes.push_back(static_cast<int>(queries.size()));
    for (Query& q : queries) {
      asked.insert(key(q));
      for (const Candidate& c : say(q)) q.candidates[q.count++] = c;
    }
  }
  bool knows(const Query& q) const override {
    const bool foreseen = foresight > 0 && !q.state.path.empty() && q.state.index() % foresight == 0;
    return !form.costly || foreseen || asked.count(key(q)) != 0;
  }
  void describe(const Query& q, std::span<const Token> tokens, float* out, int stride) override {
    const auto said = say(q);
    for (std::size_t i = 0; i < tokens.size(); ++i)
      for (const Candidate& c : said)
        if (c.token == tokens[i]) out[i * stride] = c.logprob;
  }
  void observe(int, std::span<const Token> accepted) override {
    committed.insert(committed.end(), accepted.begin(), accepted.end());
    asked.clear();
  }
};

// The feature of a candidate whose chance shall be p where the candidates' chances leave `rest` to other
// tokens.
float score(float p, float rest) { return std::log(p / rest); }

struct Bench {
  std::vector<FakeDrafter*> drafters;
  std::unique_ptr<Grower> grower;
  Sampler sampler;
  std::vector<Token> committed{7, 8, 9};
  TokenTree tree{kMaxTreeNodes};

  explicit Bench(std::vector<FakeDrafter*> d, int sequences = 1) : drafters(d) {
    std::vector<std::unique_ptr<Drafter>> owned;
    owned.reserve(d.size());
    for (FakeDrafter* x : d) owned.emplace_back(x);
    grower = std::make_unique<Grower>(std::move(owned), Grower::Options{sequences, 64});
    // A candidate's score is the sum of the drafters' features, greedy and sampled alike.
    std::vector<float> prior = Mixture::untaught(grower->features(), 1);
    const std::size_t mode = Mixture::shape(grower->features(), 1).weights();
    for (int m = 0; m < 2; ++m)
      for (int f = 0; f < grower->features(); ++f) prior[m * mode + f] = f < kOwnFeatures ? 0.0f : 1.0f;
    EXPECT_TRUE(grower->set_prior(prior));
    for (int s = 0; s < sequences; ++s) EXPECT_TRUE(grower->begin(s, committed, sampler));
  }
  TokenTree& grow(Budget budget) {
    tree.reset(committed.back());
    GrowJob job{0, committed, &sampler, budget, &tree, {}};
    grower->grow({&job, 1});
    return tree;
  }
};

// Everywhere the same: token 1 with .6, token 2 with .3.
std::vector<Candidate> two(const Query&) { return {{1, score(0.6f, 0.1f)}, {2, score(0.3f, 0.1f)}}; }

std::vector<std::vector<Token>> paths(const TokenTree& tree) {
  std::vector<std::vector<Token>> all;
  for (int n = 1; n < tree.size(); ++n) {
    std::vector<Token> path(tree.depth(n));
    tree.path(n, path.data());
    all.push_back(path);
  }
  return all;
}

using Paths = std::vector<std::vector<Token>>;

TEST(Grower, GrowsBestFirst) {
  Bench bench({new FakeDrafter(two)});
  // .6, .36, .3, .216, then .18 three times over: 2 1 (from .3), 1 2 (from .6 x .3)...
  const TokenTree& tree = bench.grow({5, 16, 0.01f});
  EXPECT_EQ(paths(tree), (Paths{{1}, {1, 1}, {2}, {1, 1, 1}, {1, 2}}));
  EXPECT_FLOAT_EQ(tree.value(1), 0.6f);
  EXPECT_FLOAT_EQ(tree.value(2), 0.36f);
}

TEST(Grower, NoNodeIsWorthLessThanItsPrice) {
  Bench bench({new FakeDrafter(two)});
  const TokenTree& tree = bench.grow({60, 16, 0.2f});
  EXPECT_EQ(paths(tree), (Paths{{1}, {1, 1}, {2}, {1, 1, 1}}));
}

TEST(Grower, DepthAndNodesAreLimits) {
  Bench bench({new FakeDrafter(two)});
  for (int depth = 1; depth <= 4; ++depth) {
    const TokenTree& tree = bench.grow({40, depth, 0.0f});
    int deepest = 0;
    for (int n = 0; n < tree.size(); ++n) deepest = std::max(deepest, tree.depth(n));
    EXPECT_EQ(deepest, depth);
    EXPECT_EQ(tree.size() - 1, std::min(40, (2 << depth) - 2));
  }
  EXPECT_EQ(bench.grow({0, 16, 0.0f}).size(), 1);
  EXPECT_EQ(bench.grow({8, 0, 0.0f}).size(), 1);
}

TEST(Grower, WidthLimitsTheChildrenOfANode) {
  Bench bench({new FakeDrafter(two)});
  Budget budget{4, 16, 0.0f};
  budget.width = 1;
  EXPECT_EQ(paths(bench.grow(budget)), (Paths{{1}, {1, 1}, {1, 1, 1}, {1, 1, 1, 1}}));
  budget.width = 2;
  EXPECT_EQ(paths(bench.grow(budget)), (Paths{{1}, {1, 1}, {2}, {1, 1, 1}}));
}

TEST(Grower, ACertainChainStopsAtTheDeepestTree) {
  Bench bench({new FakeDrafter([](const Query&) { return std::vector<Candidate>{{1, 9.0f}}; })});
  EXPECT_EQ(bench.grow({200, 200, 0.0f}).size(), 1 + kMaxTreeDepth);
}

TEST(Grower, SiblingsAreDistinctAndNameAllTheirSources) {
  auto* a = new FakeDrafter([](const Query&) { return std::vector<Candidate>{{1, 0.0f}, {2, 0.0f}}; });
  auto* b = new FakeDrafter([](const Query&) { return std::vector<Candidate>{{2, 1.0f}, {3, -1.0f}}; });
  Bench bench({a, b});
  const TokenTree& tree = bench.grow({8, 1, 0.0f});
  ASSERT_EQ(tree.size(), 4);
  EXPECT_EQ(tree.sources(tree.child(0, 1)), 1u);
  EXPECT_EQ(tree.sources(tree.child(0, 2)), 3u);
  EXPECT_EQ(tree.sources(tree.child(0, 3)), 2u);
  // Every drafter describes every candidate: 2 was said by both, so it stands above both.
  EXPECT_EQ(tree.token(1), 2);
}

TEST(Grower, TiesGoToTheEarlierCandidate) {
  Bench bench({new FakeDrafter([](const Query&) {
    return std::vector<Candidate>{{5, 0.0f}, {4, 0.0f}, {3, 0.0f}};
  })});
  EXPECT_EQ(paths(bench.grow({2, 1, 0.0f})), (Paths{{5}, {4}}));
}

TEST(Grower, ACostlyDrafterIsAskedOncePerLevelForAllJobs) {
  auto* costly = new FakeDrafter(two, true);
  Bench bench({costly}, 3);
  std::vector<TokenTree> trees(3);
  std::vector<GrowJob> jobs;
  for (int s = 0; s < 3; ++s) {
    trees[s].reset(9);
    jobs.push_back({s, bench.committed, &bench.sampler, {5, 3, 0.01f}, &trees[s], {}});
  }
  bench.grower->grow(jobs);
  EXPECT_EQ(costly->calls, 3);
  EXPECT_EQ(costly->sizes[0], 3);
  // The same tree as a cheap drafter gives when depth is 3.
  Bench cheap({new FakeDrafter(two)});
  const auto expected = paths(cheap.grow({5, 3, 0.01f}));
  for (const TokenTree& tree : trees) {
    auto grown = paths(tree);
    EXPECT_EQ(std::set(grown.begin(), grown.end()), std::set(expected.begin(), expected.end()));
  }
}

TEST(Grower, WhatACostlyDrafterKnowsIsExpandedForNothing) {
  auto* costly = new FakeDrafter(two, true);
  Bench bench({costly});
  costly->asked = {{0, 1}, {0, 1, 1}};
  bench.grow({5, 16, 0.01f});
  // 1 pass at the root; [1] and [1 1] cost nothing; the rest of the frontier is one more pass.
  const int passes = static_cast<int>(
      std::count_if(costly->sizes.begin(), costly->sizes.end(), [](int n) { return n > 1; }));
  EXPECT_LE(passes, 1);
  EXPECT_TRUE(costly->asked.count({0}));
}

TEST(Grower, APassPriceSendsTheCheapDraftersOnAlone) {
  auto* costly = new FakeDrafter([](const Query&) { return std::vector<Candidate>{{1, 0.0f}}; }, true);
  auto* cheap = new FakeDrafter([](const Query&) { return std::vector<Candidate>{{2, 0.0f}}; });
  Bench bench({costly, cheap});
  Budget budget{6, 3, 0.0f};
  budget.pass_price = 100.0f;
  const TokenTree& tree = bench.grow(budget);
  EXPECT_EQ(costly->calls, 1);
  EXPECT_NE(tree.child(0, 1), kNoNode);
  // Below the first level only the cheap drafter spoke.
  for (int n = 1; n < tree.size(); ++n) {
    if (tree.depth(n) > 1) {
      EXPECT_EQ(tree.sources(n), 2u);
    }
  }
  EXPECT_EQ(tree.size(), 7);
}

TEST(Grower, TheMixerLearnsWhoIsRight) {
  // A says 1, B says 2; B is right from now on.
  auto* a = new FakeDrafter([](const Query&) { return std::vector<Candidate>{{1, 1.0f}}; });
  auto* b = new FakeDrafter([](const Query&) { return std::vector<Candidate>{{2, 1.0f}}; });
  Bench bench({a, b});
  for (int cycle = 0; cycle < 1000; ++cycle) {
    bench.grow({2, 1, 0.0f});
    const Token drawn = 2;
    bench.grower->observe(0, bench.committed, {&drawn, 1});
    bench.committed.push_back(drawn);
  }
  const TokenTree& tree = bench.grow({2, 1, 0.0f});
  EXPECT_EQ(tree.token(1), 2);
  EXPECT_GT(tree.value(1), 0.8f);
  EXPECT_LT(tree.value(2), 0.2f);
  EXPECT_EQ(a->committed, bench.committed);
}

TEST(Grower, LearnsAtVisitedNodesThatWereNeverExpanded) {
  auto* drafter = new FakeDrafter(two);
  Bench bench({drafter});
  bench.grow({1, 1, 0.0f});  // only [1]: the node itself is a leaf
  const std::vector<float> before(bench.grower->weights(0).begin(), bench.grower->weights(0).end());
  const std::vector<Token> drawn{1, 2};
  const int calls = drafter->calls;
  bench.grower->observe(0, bench.committed, drawn);
  EXPECT_EQ(drafter->calls, calls + 1);
  EXPECT_NE(before, std::vector<float>(bench.grower->weights(0).begin(), bench.grower->weights(0).end()));
}

TEST(Grower, EverySequenceStartsWithThePrior) {
  Bench bench({new FakeDrafter(two)});
  const std::vector<float> before(bench.grower->weights(0).begin(), bench.grower->weights(0).end());
  const Token drawn = 2;
  bench.grow({4, 4, 0.0f});
  bench.grower->observe(0, bench.committed, {&drawn, 1});
  bench.grower->end(0);
  ASSERT_TRUE(bench.grower->begin(0, bench.committed, bench.sampler));
  EXPECT_EQ(before, std::vector<float>(bench.grower->weights(0).begin(), bench.grower->weights(0).end()));
}

TEST(Grower, GrowsBelowGivenNodesOfATreeThatIsThere) {
  Bench bench({new FakeDrafter(two)});
  TokenTree& tree = bench.tree;
  tree.reset(9);
  const int a = tree.add(0, 5, 0.5f, 0.5f, 0);
  const int b = tree.add(a, 1, 0.2f, 0.2f, 0);
  const std::vector<int> from{a};
  GrowJob job{0, bench.committed, &bench.sampler, {2, 4, 0.0f}, &tree, from};
  bench.grower->grow({&job, 1});
  // [5 1] is there already and costs nothing; two new ones: [5 1 1] (.18) and [5 2] (.15).
  EXPECT_EQ(tree.size(), 5);
  EXPECT_NE(tree.child(b, 1), kNoNode);
  EXPECT_NE(tree.child(a, 2), kNoNode);
  EXPECT_EQ(tree.child(0, 1), kNoNode);
}

TEST(Grower, SameTreesWhateverElseIsGrownBeside) {
  const auto say = [](const Query& q) {
    const Token last = q.state.back(0);
    return std::vector<Candidate>{{last % 5 + 1, score(0.5f, 0.1f)}, {last % 3 + 11, score(0.4f, 0.1f)}};
  };
  Bench alone({new FakeDrafter(say, true), new FakeDrafter(two)});
  const auto expected = paths(alone.grow({9, 6, 0.01f}));
  Bench bench({new FakeDrafter(say, true), new FakeDrafter(two)}, 2);
  TokenTree other;
  bench.tree.reset(9);
  other.reset(3);
  const std::vector<Token> others{1, 3};
  GrowJob jobs[] = {{1, others, &bench.sampler, {20, 9, 0.0f}, &other, {}},
                    {0, bench.committed, &bench.sampler, {9, 6, 0.01f}, &bench.tree, {}}};
  bench.grower->grow(jobs);
  EXPECT_EQ(paths(bench.tree), expected);
}

// Trees and weights of 40 cycles; the costly drafter knows some nodes in advance when `foresight` is above 0.
std::string history(int foresight) {
  const auto say = [](const Query& q) {
    const Token last = q.state.back(0);
    return std::vector<Candidate>{
        {last % 5 + 1, score(0.5f, 0.2f)}, {last % 3 + 11, score(0.3f, 0.2f)}, {3, -2.0f}};
  };
  auto* costly = new FakeDrafter(say, true);
  costly->foresight = foresight;
  Bench bench({costly, new FakeDrafter(two)});
  std::string all;
  for (int cycle = 0; cycle < 40; ++cycle) {
    const TokenTree& tree = bench.grow({6, 8, 0.01f});
    for (int n = 1; n < tree.size(); ++n)
      all += std::to_string(tree.parent(n)) + ":" + std::to_string(tree.token(n)) + " ";
    std::vector<Token> drawn;
    int node = 0;
    for (int step = 0; step < 3; ++step) {
      drawn.push_back((cycle * 7 + step) % 4 == 0 ? 2 : bench.committed.back() % 5 + 1);
      if ((node = tree.child(node, drawn.back())) == kNoNode) break;
    }
    bench.grower->observe(0, bench.committed, drawn);
    bench.committed.insert(bench.committed.end(), drawn.begin(), drawn.end());
  }
  for (const float w : bench.grower->weights(0)) all += std::to_string(w) + " ";
  return all;
}

// The same requests on one thread and on three.
TEST(Grower, SameTreesOnAnyNumberOfThreads) {
  constexpr int kSequences = 5;
  const auto trees_on = [&](int threads) {
    ThreadPool pool(threads);
    std::vector<std::unique_ptr<Drafter>> drafters;
    drafters.push_back(std::make_unique<LookupDrafter>(kSequences, 512));
    Grower grower(std::move(drafters), Grower::Options{kSequences, 64});
    if (threads > 1) grower.use(pool);
    const Sampler sampler = *Sampler::make({}, 64, {});
    std::vector<std::vector<Token>> texts(kSequences);
    for (int s = 0; s < kSequences; ++s) {
      for (int i = 0; i < 40; ++i) texts[s].push_back((i * (s + 2) + i * i / 7) % 12);
      EXPECT_TRUE(grower.begin(s, texts[s], sampler));
    }
    std::vector<std::vector<Token>> grown;
    for (int cycle = 0; cycle < 20; ++cycle) {
      std::vector<TokenTree> trees(kSequences);
      std::vector<GrowJob> jobs;
      for (int s = 0; s < kSequences; ++s) {
        trees[s].reset(texts[s].back());
        Budget budget;
        budget.nodes = 3 + s;
        budget.costly = false;
        jobs.push_back({s, texts[s], &sampler, budget, &trees[s], {}});
      }
      grower.grow(jobs);
      for (int s = 0; s < kSequences; ++s) {
        for (int n = 0; n < trees[s].size(); ++n) grown.push_back({trees[s].token(n), trees[s].parent(n)});
        const std::vector<Token> drawn = {static_cast<Token>((cycle * 5 + s) % 12)};
        const std::vector<Token> before = texts[s];
        texts[s].push_back(drawn[0]);
        grower.observe(s, before, drawn);
      }
    }
    return grown;
  };
  const auto alone = trees_on(1);
  EXPECT_GT(alone.size(), 200u);
  EXPECT_EQ(trees_on(3), alone);
}

TEST(Grower, TreesAndLearningDoNotDependOnWhatWasKnownInAdvance) {
  const std::string none = history(0);
  for (int foresight = 2; foresight <= 5; ++foresight) EXPECT_EQ(history(foresight), none);
}

TEST(Grower, SampledGuessesKnowTheNoise) {
  // The drafter's distribution is the target's: 16 tokens, chances falling by 0.8. With the noise known, the
  // first guess is nearly always the draw; without, it would be right as often as the likeliest token is.
  std::vector<Candidate> said;
  double sum = 0;
  for (int t = 0; t < 16; ++t) sum += std::pow(0.8, t);
  for (int t = 0; t < 16; ++t) {
    const float p = static_cast<float>(std::pow(0.8, t) / sum);
    said.push_back({t, score(p, 0.02f)});
  }
  Bench bench({new FakeDrafter([&](const Query&) { return said; })});
  Sampling sampling;
  sampling.temperature = 1.0f;
  sampling.seed = 5;
  bench.sampler = *Sampler::make(sampling, 16, {});
  bench.grower->end(0);
  ASSERT_TRUE(bench.grower->begin(0, bench.committed, bench.sampler));
  int right = 0;
  for (int cycle = 0; cycle < 400; ++cycle) {
    const TokenTree& tree = bench.grow({1, 1, 0.0f});
    const auto index = static_cast<std::int64_t>(bench.committed.size());
    Token drawn = 0;
    double best = -1e9;
    for (int t = 0; t < 16; ++t) {
      const double score = std::log(std::pow(0.8, t) / sum) + bench.sampler.noise(index, t);
      if (score > best) best = score, drawn = t;
    }
    right += tree.size() == 2 && tree.token(1) == drawn;
    bench.grower->observe(0, bench.committed, {&drawn, 1});
    bench.committed.push_back(drawn);
  }
  EXPECT_GT(right, 380);
}

TEST(ChanceWithNoise, IsThePosteriorOfAGumbelMaxDraw) {
  EXPECT_EQ(chance_with_noise(0.3f, 5.0, 0.0f), 0.3f);
  EXPECT_EQ(chance_with_noise(0.0f, 5.0, 1.0f), 0.0f);
  EXPECT_EQ(chance_with_noise(1.0f, -5.0, 1.0f), 1.0f);
  EXPECT_GT(chance_with_noise(0.3f, 3.0, 1.0f), chance_with_noise(0.3f, 0.0, 1.0f));
  // Averaged over Gumbel noise it is p again: the integral by midpoints of u in (0, 1).
  double mean = 0;
  for (int i = 0; i < 10000; ++i) {
    const double u = (i + 0.5) / 10000;
    mean += chance_with_noise(0.3f, -std::log(-std::log(u)), 1.0f) / 10000;
  }
  EXPECT_NEAR(mean, 0.3, 1e-3);
}

TEST(Grower, UnlikelyGuessesAreNotGrownAndCounted) {
  Bench bench({new FakeDrafter(two)});
  Budget budget{5, 2, 0.01f};
  budget.least_chance = 0.35f;  // of a guess given its parent, not of the whole path
  bench.tree.reset(9);
  GrowJob job{0, bench.committed, &bench.sampler, budget, &bench.tree, {}};
  bench.grower->grow({&job, 1});
  EXPECT_EQ(paths(bench.tree), (Paths{{1}, {1, 1}}));
  EXPECT_EQ(job.rejected, 2) << "token 2 below the root and below 1";
}

TEST(Grower, ACostlyDrafterThatIsNotAllowedIsNotAskedAndTheOthersAre) {
  auto* first = new FakeDrafter([](const Query&) { return std::vector<Candidate>{{1, 0.0f}}; }, true);
  auto* second = new FakeDrafter([](const Query&) { return std::vector<Candidate>{{2, 0.0f}}; }, true);
  auto* cheap = new FakeDrafter([](const Query&) { return std::vector<Candidate>{{3, 0.0f}}; });
  Bench bench({first, second, cheap}, 2);
  std::vector<TokenTree> trees(2);
  std::vector<GrowJob> jobs;
  for (int s = 0; s < 2; ++s) {
    Budget budget{8, 1, 0.0f};
    budget.drafters = s == 0 ? 0b010 : 0b001;  // the cheap one needs no leave
    trees[static_cast<std::size_t>(s)].reset(9);
    jobs.push_back({s, bench.committed, &bench.sampler, budget, &trees[static_cast<std::size_t>(s)], {}});
  }
  bench.grower->grow(jobs);
  EXPECT_EQ(first->sizes, std::vector<int>{1});
  EXPECT_EQ(second->sizes, std::vector<int>{1});
  EXPECT_EQ(trees[0].child(0, 1), kNoNode);
  EXPECT_NE(trees[0].child(0, 2), kNoNode);
  EXPECT_NE(trees[0].child(0, 3), kNoNode);
  EXPECT_NE(trees[1].child(0, 1), kNoNode);
  EXPECT_EQ(trees[1].child(0, 2), kNoNode);
  EXPECT_EQ(trees[0].sources(trees[0].child(0, 2)), 2u);
}

TEST(Grower, SaysWhatTheDraftThoughtOfAToken) {
  auto* costly = new FakeDrafter(
      [](const Query&) {
        return std::vector<Candidate>{{1, std::log(0.6f)}, {2, std::log(0.3f)}};
      },
      true);
  Bench bench({costly, new FakeDrafter(two)});
  bench.grow({1, 1, 0.0f});
  const PathState root{bench.committed, {}};
  EXPECT_FLOAT_EQ(*bench.grower->logprob(0, root, 2, ~0u), std::log(0.3f));
  EXPECT_NEAR(*bench.grower->logprob(0, root, 5, ~0u), std::log(0.1), 1e-5) << "all it did not list";
  const Token path[] = {1};
  EXPECT_FALSE(bench.grower->logprob(0, {bench.committed, path}, 2, ~0u)) << "it was not asked there";
  EXPECT_FALSE(bench.grower->logprob(0, root, 2, 0b10)) << "a cheap drafter is no draft";
}

}  // namespace
}  // namespace coppice::core
