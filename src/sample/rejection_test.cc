// Exact in distribution: chi-squared on a vocabulary of 12, two levels deep, so that what follows an
// acceptance is tested as well. Each wrong variant is the algorithm with one classic mistake; the same test
// must see it.
#include "sample/rejection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "sample/testing.h"

namespace coppice::core {
namespace {

constexpr int kVocab = 12;
constexpr int kDraws = 200000;
using Distribution = std::array<float, kVocab>;

TEST(ChiSquared, TailAgreesWithPublishedQuantiles) {
  EXPECT_NEAR(chi_squared_tail(3.841458820694124, 1), 0.05, 1e-12);
  EXPECT_NEAR(chi_squared_tail(18.307038053275146, 10), 0.05, 1e-12);
  EXPECT_NEAR(chi_squared_tail(149.4492527, 100), 0.001, 1e-9);
  EXPECT_NEAR(chi_squared_tail(2.0, 2), std::exp(-1.0), 1e-14);
}

// Uneven, with zeros: what filters leave.
Distribution random_distribution(std::uint64_t seed, int zeros) {
  TestRandom random(seed);
  Distribution p{};
  float total = 0;
  for (float& x : p) total += x = 0.02f + random.unit() * random.unit();
  for (int i = 0; i < zeros; ++i) {
    float& x = p[random.next() % kVocab];
    total -= x;
    x = 0;
  }
  for (float& x : p) x /= total;
  return p;
}

enum class Mistake { none, residual_not_normalised, q_not_renormalised, residual_reuses_draft, wrong_order };

// The rule written a second time, plainly, with room for mistakes.
Verdict flawed_decide(Mistake mistake, std::span<float> p, Siblings siblings, double draft_uniform,
                      TestRandom& random) {
  std::vector<Token> order(siblings.tokens.begin(), siblings.tokens.end());
  std::vector<double> q(siblings.q.begin(), siblings.q.end()), r(p.begin(), p.end());
  if (mistake == Mistake::wrong_order) std::reverse(order.begin(), order.end());
  const auto sum = [](const std::vector<double>& x) {
    double total = 0;
    for (const double v : x) total += v;
    return total;
  };
  const auto uniform = [&] { return (static_cast<double>(random.next() >> 12) + 0.5) * 0x1p-52; };
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (uniform() * q[order[i]] < r[order[i]]) return {order[i], static_cast<int>(i)};
    for (int id = 0; id < kVocab; ++id) r[id] = std::max(r[id] - q[id], 0.0);
    if (mistake != Mistake::residual_not_normalised) {
      const double total = sum(r);
      for (double& x : r) x /= total;
    }
    q[order[i]] = 0;
    if (mistake != Mistake::q_not_renormalised) {
      const double total = sum(q);
      for (double& x : q) x /= total;
    }
  }
  double left = (mistake == Mistake::residual_reuses_draft ? draft_uniform : uniform()) * sum(r);
  int last = -1;
  for (int id = 0; id < kVocab; ++id) {
    if (r[id] <= 0) continue;
    last = id;
    if ((left -= r[id]) < 0) break;
  }
  return {last, -1};
}

struct World {
  Distribution p, q;
  std::array<Distribution, kVocab> p_after, q_after;  // given the first token
};

World make_world(std::uint64_t seed) {
  World w;
  w.p = random_distribution(seed, 1);
  w.q = random_distribution(seed + 1, 2);
  for (int t = 0; t < kVocab; ++t) {
    w.p_after[t] = random_distribution(seed + 100 + t, 1);
    w.q_after[t] = random_distribution(seed + 200 + t, 2);
  }
  return w;
}

enum class Kind { sampled, point_masses };

// The p-value of pairs of tokens, emitted by trees with `siblings` children below the root and below each
// child.
double pair_p_value(int siblings, Kind kind, Mistake mistake = Mistake::none) {
  const World world = make_world(7);
  const NoiseKey key{2024, 0, 3};
  Rejection rejection(key, kVocab);
  std::uint64_t number = 0;
  TestRandom random(99);
  std::vector<std::int64_t> counts(kVocab * kVocab);
  const auto grow = [&](const Distribution& q, Token* out) {
    if (kind == Kind::sampled) return rejection.draw_siblings(q, siblings, number, out);
    for (int i = 0; i < siblings; ++i) out[i] = (5 * i + 2) % kVocab;  // somebody is sure of these
    return siblings;
  };
  const auto decide = [&](const Distribution& target, const Distribution& q, std::span<const Token> tokens,
                          double draft_uniform) {
    Distribution p = target;
    const Siblings s{tokens, kind == Kind::sampled ? std::span<const float>(q) : std::span<const float>()};
    return mistake == Mistake::none ? rejection.decide(p, s, number)
                                    : flawed_decide(mistake, p, s, draft_uniform, random);
  };
  for (int i = 0; i < kDraws; ++i) {
    Token first[kVocab], second[kVocab][kVocab];
    int seconds[kVocab];
    const double root_uniform = uniform(key, number, 1);  // what the first sibling was drawn with
    const int firsts = grow(world.q, first);
    for (int c = 0; c < firsts; ++c) seconds[c] = grow(world.q_after[first[c]], second[c]);
    const Verdict a = decide(world.p, world.q, {first, static_cast<std::size_t>(firsts)}, root_uniform);
    // When the walk ends, the next cycle goes on from there: here without a guess.
    const std::span<const Token> next =
        a.child < 0 ? std::span<const Token>()
                    : std::span<const Token>(second[a.child], static_cast<std::size_t>(seconds[a.child]));
    Distribution p = world.p_after[a.token];
    const bool flawed = mistake != Mistake::none && a.child >= 0;
    const Siblings s{next, kind == Kind::sampled ? std::span<const float>(world.q_after[a.token])
                                                 : std::span<const float>()};
    const Verdict b =
        flawed ? flawed_decide(mistake, p, s, random.unit(), random) : rejection.decide(p, s, number);
    ++counts[a.token * kVocab + b.token];
  }
  std::vector<double> chances;
  for (int a = 0; a < kVocab; ++a)
    for (int b = 0; b < kVocab; ++b) chances.push_back(double{world.p[a]} * world.p_after[a][b]);
  return chi_squared_p(counts, chances);
}

TEST(Rejection, ChainsEmitTheTargetsDistribution) { EXPECT_GT(pair_p_value(1, Kind::sampled), 1e-3); }
TEST(Rejection, TreesEmitTheTargetsDistribution) {
  EXPECT_GT(pair_p_value(2, Kind::sampled), 1e-3);
  EXPECT_GT(pair_p_value(4, Kind::sampled), 1e-3);
}
TEST(Rejection, CertainGuessesEmitTheTargetsDistribution) {
  EXPECT_GT(pair_p_value(1, Kind::point_masses), 1e-3);
  EXPECT_GT(pair_p_value(3, Kind::point_masses), 1e-3);
}
TEST(Rejection, TheTestSeesAResidualThatIsNotNormalised) {
  EXPECT_LT(pair_p_value(3, Kind::sampled, Mistake::residual_not_normalised), 1e-6);
}
TEST(Rejection, TheTestSeesAQThatIsNotRenormalised) {
  EXPECT_LT(pair_p_value(3, Kind::sampled, Mistake::q_not_renormalised), 1e-6);
}
TEST(Rejection, TheTestSeesAResidualThatReusesTheDraftsNoise) {
  EXPECT_LT(pair_p_value(1, Kind::sampled, Mistake::residual_reuses_draft), 1e-6);
}
TEST(Rejection, TheTestSeesSiblingsTestedInTheWrongOrder) {
  EXPECT_LT(pair_p_value(3, Kind::sampled, Mistake::wrong_order), 1e-6);
}

TEST(Rejection, TheSecondWritingIsRightWithoutAMistake) {
  const World world = make_world(7);
  Rejection rejection({1, 0, 0}, kVocab);
  std::uint64_t number = 0;
  TestRandom random(4);
  std::vector<std::int64_t> counts(kVocab);
  for (int i = 0; i < kDraws; ++i) {
    Token tokens[3];
    const int drawn = rejection.draw_siblings(world.q, 3, number, tokens);
    Distribution p = world.p;
    ++counts[flawed_decide(Mistake::none, p, {{tokens, static_cast<std::size_t>(drawn)}, world.q}, 0, random)
                 .token];
  }
  EXPECT_GT(chi_squared_p(counts, std::vector<double>(world.p.begin(), world.p.end())), 1e-3);
}

TEST(Rejection, SiblingsAreDistinctAndDrawnWithoutReplacement) {
  const Distribution q = random_distribution(3, 2);
  Rejection rejection({5, 0, 0}, kVocab);
  std::uint64_t number = 0;
  std::vector<std::int64_t> counts(kVocab * kVocab);
  for (int i = 0; i < kDraws; ++i) {
    Token out[2];
    ASSERT_EQ(rejection.draw_siblings(q, 2, number, out), 2);
    ++counts[out[0] * kVocab + out[1]];
  }
  std::vector<double> chances;
  for (int a = 0; a < kVocab; ++a)
    for (int b = 0; b < kVocab; ++b) chances.push_back(a == b ? 0 : double{q[a]} * q[b] / (1 - double{q[a]}));
  EXPECT_GT(chi_squared_p(counts, chances), 1e-3);
}

TEST(Rejection, NoMoreSiblingsAreDrawnThanHaveAChance) {
  Distribution q{};
  q[3] = 0.25f;
  q[8] = 0.75f;
  Rejection rejection({5, 0, 0}, kVocab);
  std::uint64_t number = 0;
  Token out[5];
  EXPECT_EQ(rejection.draw_siblings(q, 5, number, out), 2);
  EXPECT_EQ(out[0] + out[1], 11);
  EXPECT_EQ(q[3], 0.25f);
}

TEST(Rejection, AnEqualDraftIsAlwaysAccepted) {
  const Distribution q = random_distribution(11, 2);
  Rejection rejection({5, 0, 0}, kVocab);
  std::uint64_t number = 0;
  for (int i = 0; i < 20000; ++i) {
    Distribution p = q;
    Token token;
    rejection.draw_siblings(q, 1, number, &token);
    const Verdict verdict = rejection.decide(p, {{&token, 1}, q}, number);
    ASSERT_EQ(verdict.child, 0);
    ASSERT_EQ(verdict.token, token);
  }
}

TEST(Rejection, GreedyAcceptsExactlyTheTargetsToken) {
  Rejection rejection({5, 0, 0}, kVocab);
  std::uint64_t number = 0;
  const Token tokens[] = {4, 7, 9};
  Distribution p{};
  p[7] = 1;
  Verdict verdict = rejection.decide(p, {tokens, {}}, number);
  EXPECT_EQ(verdict.token, 7);
  EXPECT_EQ(verdict.child, 1);
  p = {};
  p[2] = 1;
  verdict = rejection.decide(p, {tokens, {}}, number);
  EXPECT_EQ(verdict.token, 2);
  EXPECT_EQ(verdict.child, -1);
}

TEST(Rejection, TheRunningNumberAdvancesByWhatIsUsed) {
  const Distribution q = random_distribution(11, 0);
  Rejection rejection({5, 0, 0}, kVocab);
  std::uint64_t number = 10;
  Token out[3];
  rejection.draw_siblings(q, 3, number, out);
  EXPECT_EQ(number, 13u);
  Distribution p{};
  p[out[0]] = 1;  // accepted at once
  rejection.decide(p, {out, {}}, number);
  EXPECT_EQ(number, 14u);
  p = q;
  rejection.decide(p, {{}, {}}, number);
  EXPECT_EQ(number, 15u);
}

}  // namespace
}  // namespace coppice::core
