#include "tree/token_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace coppice::core {
namespace {

TEST(TokenTree, StartsWithARootOfValueOne) {
  TokenTree tree;
  tree.reset(7);
  EXPECT_EQ(tree.size(), 1);
  EXPECT_EQ(tree.token(0), 7);
  EXPECT_EQ(tree.parent(0), kNoNode);
  EXPECT_EQ(tree.depth(0), 0);
  EXPECT_EQ(tree.value(0), 1.0f);
  EXPECT_EQ(tree.first_child(0), kNoNode);
}

TEST(TokenTree, AddingATokenThatIsThereOnlyWidensItsSources) {
  TokenTree tree;
  tree.reset(7);
  const int a = tree.add(0, 5, 1.5f, 0.5f, 1);
  EXPECT_EQ(tree.add(0, 5, 9.0f, 0.9f, 4), a);
  EXPECT_EQ(tree.size(), 2);
  EXPECT_EQ(tree.sources(a), 5u);
  EXPECT_EQ(tree.score(a), 1.5f);
  EXPECT_EQ(tree.value(a), 0.5f);
}

TEST(TokenTree, AChildIsWorthAtMostItsParent) {
  TokenTree tree;
  tree.reset(7);
  const int a = tree.add(0, 5, 0, 2.0f, 1);
  const int b = tree.add(a, 5, 0, 0.4f, 1);
  const int c = tree.add(b, 5, 0, 0.6f, 1);
  EXPECT_EQ(tree.value(a), 1.0f);
  EXPECT_EQ(tree.value(b), 0.4f);
  EXPECT_EQ(tree.value(c), 0.4f);
  EXPECT_EQ(tree.value(tree.add(c, 6, 0, std::numeric_limits<float>::quiet_NaN(), 1)), 0.0f);
}

TEST(TokenTree, SiblingsAreListedInTheOrderOfAdding) {
  TokenTree tree;
  tree.reset(7);
  const int a = tree.add(0, 3, 0, 0.1f, 1);
  const int below = tree.add(a, 9, 0, 0.1f, 1);
  const int b = tree.add(0, 1, 0, 0.3f, 1);
  const int c = tree.add(0, 2, 0, 0.2f, 1);
  EXPECT_EQ(tree.first_child(0), a);
  EXPECT_EQ(tree.next_sibling(a), b);
  EXPECT_EQ(tree.next_sibling(b), c);
  EXPECT_EQ(tree.next_sibling(c), kNoNode);
  EXPECT_EQ(tree.child(0, 1), b);
  EXPECT_EQ(tree.child(0, 9), kNoNode);
  EXPECT_EQ(tree.child(a, 9), below);
  Token path[2];
  EXPECT_EQ(tree.path(below, path), 2);
  EXPECT_EQ(path[0], 3);
  EXPECT_EQ(path[1], 9);
}

TEST(TokenTree, AFullTreeTakesNoNewNodeButStillWidensSources) {
  TokenTree tree(3);
  tree.reset(0);
  const int a = tree.add(0, 1, 0, 0.5f, 1);
  tree.add(0, 2, 0, 0.5f, 1);
  EXPECT_EQ(tree.add(0, 3, 0, 0.5f, 1), kNoNode);
  EXPECT_EQ(tree.add(0, 1, 0, 0.5f, 2), a);
  EXPECT_EQ(tree.sources(a), 3u);
  EXPECT_EQ(tree.size(), 3);
}

TEST(TokenTree, DepthEndsAtTheStatedLimit) {
  TokenTree tree;
  tree.reset(0);
  int node = 0;
  for (int d = 0; d < kMaxTreeDepth; ++d) {
    node = tree.add(node, d, 0, 1.0f, 1);
    ASSERT_NE(node, kNoNode);
  }
  EXPECT_EQ(tree.depth(node), kMaxTreeDepth);
  EXPECT_EQ(tree.add(node, 1, 0, 1.0f, 1), kNoNode);
}

// Random trees against the definition: sort all nodes, keep the first n.
TEST(TokenTree, KeepBestKeepsTheMostValuableNodesTheirAncestorsAndTheirOrder) {
  std::mt19937 random(5);
  for (int round = 0; round < 500; ++round) {
    TokenTree tree(64);
    tree.reset(99);
    for (int i = 0; i < 60; ++i)  // coarse values, so that there are many ties
      tree.add(static_cast<int>(random() % tree.size()), static_cast<Token>(random() % 5), float(i),
               float(random() % 6) / 5, 1);
    const TokenTree old = tree;
    std::vector<int> best;
    for (int i = 1; i < old.size(); ++i) best.push_back(i);
    std::stable_sort(best.begin(), best.end(), [&](int a, int b) { return old.value(a) > old.value(b); });
    const int n = static_cast<int>(random() % 64);
    if (n < static_cast<int>(best.size())) best.resize(n);
    std::set<int> expected(best.begin(), best.end());
    expected.insert(0);

    std::vector<int> kept(old.size());
    tree.keep_best(n, kept.data());
    ASSERT_EQ(tree.size(), static_cast<int>(expected.size()));
    int next = 0;
    for (int i = 0; i < old.size(); ++i) {
      if (!expected.count(i)) {
        ASSERT_EQ(kept[i], kNoNode);
        continue;
      }
      ASSERT_EQ(kept[i], next);
      ASSERT_EQ(tree.token(next), old.token(i));
      ASSERT_EQ(tree.score(next), old.score(i));
      ASSERT_EQ(tree.value(next), old.value(i));
      ASSERT_EQ(tree.depth(next), old.depth(i));
      if (i > 0) {
        ASSERT_EQ(tree.parent(next), kept[old.parent(i)]);
        ASSERT_EQ(tree.child(tree.parent(next), tree.token(next)), next);
      }
      ++next;
    }
    for (int i = 0; i < tree.size(); ++i)  // the lists hold exactly the children, in order
      for (int c = tree.first_child(i), before = i; c != kNoNode; before = c, c = tree.next_sibling(c)) {
        ASSERT_EQ(tree.parent(c), i);
        ASSERT_GT(c, before);
      }
  }
}

TEST(TokenTree, KeepsWhatIsNamedInItsOrder) {
  TokenTree tree;
  tree.add(0, 1, 0.5f, 0.5f, 1);
  tree.add(0, 2, 0.4f, 0.4f, 2);
  tree.add(1, 3, 0.9f, 0.45f, 1);
  tree.add(2, 4, 0.8f, 0.32f, 4);
  const std::uint8_t named[] = {0, 0, 1, 0, 1};  // the root stays by itself
  tree.keep(named);
  ASSERT_EQ(tree.size(), 3);
  EXPECT_EQ(tree.token(1), 2);
  EXPECT_EQ(tree.token(2), 4);
  EXPECT_EQ(tree.parent(2), 1);
  EXPECT_EQ(tree.sources(2), 4u);
  EXPECT_EQ(tree.child(0, 1), kNoNode);
  EXPECT_EQ(tree.first_child(0), 1);
}

}  // namespace
}  // namespace coppice::core
