#include "policy/verification_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace coppice::core {
namespace {

// Nodes that were taken, of the only tree.
std::vector<int> taken_of(const TokenTree& tree, int most, int room, double patience) {
  VerificationBatch batch(1);
  batch.begin();
  batch.add(tree, most);
  batch.fill(room, patience);
  std::vector<int> nodes;
  for (int n = 1; n < tree.size(); ++n)
    if (batch.taken(0)[static_cast<std::size_t>(n)] != 0) nodes.push_back(n);
  EXPECT_EQ(static_cast<int>(nodes.size()), batch.guesses(0));
  return nodes;
}

// Two children of the root, and a chain below the first: 1 (0.6), 2 (0.5), 3 below 1 (0.4), 4 below 3 (0.3).
TokenTree forked() {
  TokenTree tree;
  tree.add(0, 1, 0.6f, 0.6f, 1);
  tree.add(0, 2, 0.5f, 0.5f, 1);
  tree.add(1, 3, 0.66f, 0.4f, 1);
  tree.add(3, 4, 0.75f, 0.3f, 1);
  return tree;
}

TEST(VerificationBatch, ARunGoesOnBeforeABetterGuessElsewhereWhileItIsNotFarBehind) {
  EXPECT_EQ(taken_of(forked(), 16, 3, 2), (std::vector<int>{1, 3, 4}));
  EXPECT_EQ(taken_of(forked(), 16, 3, 1.5), (std::vector<int>{1, 2, 3})) << "0.3 is too far behind 0.5";
}

TEST(VerificationBatch, WithoutPatienceGuessesGoInOrderOfValue) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    TokenTree tree;
    std::vector<std::pair<float, int>> waiting{{0.9f, 0}};
    for (int n = 1; n < 30; ++n) {  // best first, as trees are grown
      const auto best = std::max_element(waiting.begin(), waiting.end());
      const auto [value, parent] = *best;
      best->first *= 0.7f;
      const int node = tree.add(parent, n, value, value, 1);
      waiting.push_back({value * (0.3f + static_cast<float>(random() % 70) / 100), node});
    }
    TokenTree expected = tree, kept = tree;
    expected.keep_best(9);
    VerificationBatch batch(1);
    batch.begin();
    batch.add(tree, 16);
    batch.fill(9, 1);
    kept.keep(batch.taken(0));
    ASSERT_EQ(kept.size(), expected.size());
    for (int n = 0; n < kept.size(); ++n) EXPECT_EQ(kept.token(n), expected.token(n));
  }
}

TEST(VerificationBatch, WhateverIsTakenHasItsAncestors) {
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    TokenTree tree;
    for (int n = 1; n < 40; ++n)
      tree.add(static_cast<int>(random() % n), n, 1, static_cast<float>(random() % 100) / 100, 1);
    const int room = static_cast<int>(random() % 20);
    const auto nodes =
        taken_of(tree, 1 + static_cast<int>(random() % 30), room, 1 + static_cast<int>(random() % 4));
    EXPECT_LE(static_cast<int>(nodes.size()), room);
    for (const int n : nodes) {
      const int parent = tree.parent(n);
      EXPECT_TRUE(parent == 0 || std::find(nodes.begin(), nodes.end(), parent) != nodes.end());
    }
  }
}

TEST(VerificationBatch, TheBestOfAllRequestsShareAPassAndNobodyGetsMoreThanItsWindow) {
  std::vector<TokenTree> trees(3);
  const float chances[] = {0.9f, 0.5f, 0.8f};
  VerificationBatch batch(3);
  batch.begin();
  for (std::size_t r = 0; r < trees.size(); ++r) {
    float value = 1;
    for (int n = 0; n < 10; ++n) trees[r].add(n, 1, chances[r], value *= chances[r], 1);
    batch.add(trees[r], 4);
  }
  batch.fill(7, 1);
  EXPECT_EQ(batch.guesses(0), 4);
  EXPECT_EQ(batch.guesses(1), 0);
  EXPECT_EQ(batch.guesses(2), 3);
  EXPECT_EQ(batch.runs(0), 2) << "0.9, 0.81, and after the other's 0.8 the rest";
}

}  // namespace
}  // namespace coppice::core
