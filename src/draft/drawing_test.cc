#include "draft/drawing.h"

#include <gtest/gtest.h>

#include <set>

namespace coppice::core {
namespace {

constexpr int kVocab = 64;

Sampler sampler_of(Acceptance acceptance, float temperature = 1.0f) {
  Sampling sampling;
  sampling.temperature = temperature;
  sampling.acceptance = acceptance;
  return *Sampler::make(sampling, kVocab, {});
}

std::vector<float> flat() { return std::vector<float>(kVocab, 1.0f / kVocab); }

TEST(SiblingChances, NeverRiseAndSumToAtMostOneWhateverWasLearned) {
  SiblingChances chances;
  for (int i = 0; i < 400; ++i) chances.learn(1, 4, i % 5 == 0 ? -1 : i % 3 == 0 ? 0 : 3);
  for (int sureness = 0; sureness < 4; ++sureness) {
    const auto all = chances.chances(sureness);
    float sum = 0;
    for (std::size_t r = 0; r < all.size(); ++r) {
      EXPECT_GE(all[r], 0.0f);
      if (r > 0) {
        EXPECT_LE(all[r], all[r - 1]);
      }
      sum += all[r];
    }
    EXPECT_LE(sum, 1.0f);
  }
}

TEST(SiblingChances, ApproachWhatIsSeen) {
  SiblingChances chances;
  for (int i = 0; i < 1000; ++i) chances.learn(2, 2, i % 10 < 6 ? 0 : i % 10 < 8 ? 1 : -1);
  EXPECT_NEAR(chances.chances(2)[0], 0.6f, 0.01f);
  EXPECT_NEAR(chances.chances(2)[1], 0.2f, 0.01f);
  EXPECT_EQ(chances.chances(1), SiblingChances().chances(1));
}

TEST(Drawing, IsOnForSampledRejectionOnly) {
  Drawing drawing(8);
  drawing.start(sampler_of(Acceptance::rejection));
  EXPECT_TRUE(drawing.on());
  drawing.start(sampler_of(Acceptance::keyed));
  EXPECT_FALSE(drawing.on());
  drawing.start(sampler_of(Acceptance::rejection, 0.0f));
  EXPECT_FALSE(drawing.on());
}

TEST(Drawing, BranchesAndTreesDoNotShareDrawsAndTheOrderOfAskingDoesNotMatter) {
  const auto q = flat();
  const std::vector<std::vector<Token>> paths{{}, {1}, {2}, {1, 2}, {2, 1}, {1, 1}};
  Drawing forth(32), back(32);
  forth.start(sampler_of(Acceptance::rejection));
  back.start(sampler_of(Acceptance::rejection));
  std::set<std::array<Token, kMaxDrawn>> seen;
  for (int tree = 0; tree < 5; ++tree) {
    forth.new_tree();
    back.new_tree();
    for (std::size_t i = 0; i < paths.size(); ++i) {
      forth.draw(paths[i], q, 4);
      back.draw(paths[paths.size() - 1 - i], q, 3);
    }
    for (const auto& path : paths) {
      auto four = forth.find(path)->tokens;
      EXPECT_TRUE(seen.insert(four).second);
      four[3] = 0;
      EXPECT_EQ(four, back.find(path)->tokens);
    }
  }
}

TEST(Drawing, LearnsFromTheSiblingsThatWereInTheTree) {
  Drawing drawing(8);
  drawing.start(sampler_of(Acceptance::rejection));
  drawing.new_tree();
  const int n = drawing.draw({}, flat(), 3);
  const auto before = drawing.chances().chances(0);
  drawing.learn({}, drawing.node(n).tokens[2]);  // none was kept: nothing to learn
  EXPECT_EQ(drawing.chances().chances(0), before);
  drawing.node(n).kept = 2;
  drawing.learn({}, drawing.node(n).tokens[2]);  // the third was not in the tree: both were refused
  EXPECT_LT(drawing.chances().chances(0)[0], before[0]);
  drawing.forget();
  EXPECT_EQ(drawing.find({}), nullptr);
}

}  // namespace
}  // namespace coppice::core
