#include "engine/sequences.h"

#include <gtest/gtest.h>

#include <numeric>

namespace coppice::core {
namespace {

KvCache make_cache(int sequences, int positions) {
  KvLayout layout;
  layout.type = CacheType::f32;
  layout.heads = layout.kv_heads = 1;
  layout.head_dim = 8;
  KvOptions options;
  options.sequences = sequences;
  options.positions = positions;
  options.slots = 4;
  return std::move(*KvCache::make(layout, 1, options));
}

std::vector<Token> counting(int first, int count) {
  std::vector<Token> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

TEST(Sequences, APromptThatBeginsAlikeTakesOverWhatIsThere) {
  KvCache cache = make_cache(2, 64);
  Sequences sequences(cache);
  auto first = sequences.take(counting(0, 20), 24);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->reused, 0);
  cache.commit(first->sequence, 20);
  sequences.put(first->sequence, counting(0, 20));
  auto again = sequences.take(counting(0, 12), 24);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->sequence, first->sequence);
  EXPECT_EQ(again->reused, 11) << "all but the last token, which is the root";
  EXPECT_EQ(cache.length(again->sequence), 11);
}

TEST(Sequences, TheOldestIdleOneGoesWhenRoomIsNeeded) {
  KvCache cache = make_cache(2, 64);
  Sequences sequences(cache);
  auto a = sequences.take(counting(0, 4), 32);
  auto b = sequences.take(counting(100, 4), 32);
  ASSERT_TRUE(a && b);
  EXPECT_FALSE(sequences.take(counting(200, 4), 32)) << "both are in use";
  cache.commit(a->sequence, 4);
  sequences.put(a->sequence, counting(0, 4));
  auto c = sequences.take(counting(200, 4), 32);
  ASSERT_TRUE(c);
  EXPECT_EQ(c->reused, 0);
}

}  // namespace
}  // namespace coppice::core
