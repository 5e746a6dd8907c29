#include "model/kv_cache.h"

#include <gtest/gtest.h>

#include <cstring>

#include "model/row.h"
#include "model/testing.h"

namespace coppice::core {
namespace {

using testing::expect_ok;
using testing::message;

constexpr int kLayers = 2;

KvLayout layout() {
  KvLayout layout;
  layout.type = CacheType::f32;
  layout.kv_heads = 2;
  layout.heads = 4;
  layout.head_dim = 4;
  return layout;
}

KvCache make_cache(int sequences, int positions) {
  KvOptions options;
  options.type = CacheType::f32;
  options.sequences = sequences;
  options.positions = positions;
  options.slots = 20;
  return std::move(*KvCache::make(layout(), kLayers, options));
}

// One position's keys and values, all equal to `value` plus the layer.
void write_lane(std::byte* block, int lane, float value) {
  float k[8], v[8];
  for (float& x : k) x = value;
  for (float& x : v) x = -value;
  kernels().store_kv(layout(), k, v, block, lane);
}

void append(KvCache& cache, int sequence, float value) {
  const int position = cache.length(sequence);
  expect_ok(cache.reserve(sequence, position + 1));
  for (int layer = 0; layer < kLayers; ++layer)
    write_lane(cache.committed_block(sequence, layer, position), position % kBlockPositions,
               value + static_cast<float>(layer));
  cache.commit(sequence, 1);
}

void fill(KvCache& cache, int sequence, int count, float first) {
  for (int i = 0; i < count; ++i) append(cache, sequence, first + static_cast<float>(10 * i));
}

std::vector<std::byte> saved(const KvCache& cache, int sequence) {
  std::vector<std::byte> bytes;
  expect_ok(cache.save(sequence, [&](std::span<const std::byte> part) -> Status {
    bytes.insert(bytes.end(), part.begin(), part.end());
    return {};
  }));
  return bytes;
}

TEST(KvCache, ASequenceIsReusedOnlyWhenClosed) {
  KvCache cache = make_cache(2, 32);
  const int first = *cache.open(), second = *cache.open();
  EXPECT_NE(first, second);
  EXPECT_NE(message(cache.open()).find("all 2 sequences"), std::string::npos);
  cache.close(first);
  EXPECT_EQ(*cache.open(), first);
  EXPECT_EQ(cache.length(first), 0);
}

TEST(KvCache, RoomThatIsNotThereIsRefusedAndNothingChanges) {
  KvCache cache = make_cache(1, 32);
  const int sequence = *cache.open();
  fill(cache, sequence, 5, 1);
  const auto before = saved(cache, sequence);
  EXPECT_NE(message(cache.reserve(sequence, 33)).find("cache is full"), std::string::npos);
  EXPECT_EQ(saved(cache, sequence), before);
  expect_ok(cache.reserve(sequence, 32));
}

TEST(KvCache, EverySequenceCanHaveItsShareOfThePositions) {
  KvCache cache = make_cache(3, 51);
  for (int i = 0; i < 3; ++i) expect_ok(cache.reserve(*cache.open(), 17));
}

TEST(KvCache, AllLayersOfTheFirstPositionsLieTogetherSoThatAShortTextTouchesFewPages) {
  KvCache cache = make_cache(1, 10000);
  const int sequence = *cache.open();
  fill(cache, sequence, 20, 1);  // two blocks of 16 positions in each layer
  const std::byte* first = cache.committed_block(sequence, 0, 0);
  const std::byte* last = cache.committed_block(sequence, kLayers - 1, 19);
  EXPECT_LT(last - first, static_cast<std::ptrdiff_t>(2 * kLayers * layout().block_bytes()));
}

TEST(KvCache, KeepMovesSlotsInTheOrderOfThePath) {
  KvCache cache = make_cache(1, 64), expected = make_cache(1, 64);
  const int sequence = *cache.open(), other = *expected.open();
  fill(cache, sequence, 14, 1);
  fill(expected, other, 14, 1);
  const int path[] = {19, 2, 7};
  for (int i = 0; i < 3; ++i) {
    for (int layer = 0; layer < kLayers; ++layer)
      write_lane(cache.scratch_block(sequence, layer, path[i]), path[i] % kBlockPositions,
                 500.0f + static_cast<float>(i + layer));
    append(expected, other, 500.0f + static_cast<float>(i));
  }
  cache.set_parent(sequence, 2, 19);
  expect_ok(cache.reserve(sequence, 17));
  cache.keep(sequence, path);
  EXPECT_EQ(cache.length(sequence), 17);
  EXPECT_EQ(saved(cache, sequence), saved(expected, other));
  EXPECT_EQ(cache.parent(sequence, 2), kCommitted);
}

TEST(KvCache, WholeBlocksAreSharedAndThePartialOneIsCopied) {
  KvCache cache = make_cache(2, 200);
  const int from = *cache.open(), to = *cache.open();
  fill(cache, from, 40, 1);
  expect_ok(cache.share(from, to, 37));
  for (int block = 0; block < 2; ++block) EXPECT_EQ(cache.table(from)[block], cache.table(to)[block]);
  EXPECT_NE(cache.table(from)[2], cache.table(to)[2]);
  const auto before = saved(cache, from);
  fill(cache, to, 20, 900);
  EXPECT_EQ(saved(cache, from), before);
}

TEST(KvCache, ASharedBlockIsNeverWrittenAfterRewindingIntoIt) {
  for (const bool full : {false, true}) {
    KvCache cache = make_cache(2, full ? 20 : 200);
    const int from = *cache.open(), to = *cache.open();
    fill(cache, from, 32, 1);
    expect_ok(cache.share(from, to, 32));
    if (full) {  // nothing is left for a copy
      ASSERT_TRUE(cache.reserve(from, 48));
      cache.rewind(to, 24);
      EXPECT_FALSE(cache.has_room(to, 25));
      EXPECT_NE(message(cache.reserve(to, 25)).find("cache is full"), std::string::npos);
      cache.rewind(from, 32);
      cache.close(from);
      expect_ok(cache.reserve(to, 25));
      continue;
    }
    const auto before = saved(cache, from);
    cache.rewind(to, 24);
    fill(cache, to, 8, 900);
    EXPECT_EQ(saved(cache, from), before);
    cache.rewind(from, 20);
    fill(cache, from, 12, 1 + 200);
    EXPECT_EQ(saved(cache, from), before);
  }
}

TEST(KvCache, ClosingOneOfTwoSharersLeavesTheOther) {
  KvCache cache = make_cache(2, 64);
  const int from = *cache.open(), to = *cache.open();
  fill(cache, from, 32, 1);
  const auto before = saved(cache, from);
  expect_ok(cache.share(from, to, 32));
  cache.close(from);
  const int again = *cache.open();
  fill(cache, again, 40, 700);
  EXPECT_EQ(saved(cache, to), before);
}

TEST(KvCache, RandomSharingRewindingAndClosingNeverMixesSequences) {
  testing::Dice dice(9);
  KvCache cache = make_cache(5, 400);
  std::vector<std::vector<float>> expected(5);  // values by position; what each sequence should hold
  for (int i = 0; i < 5; ++i) ASSERT_EQ(*cache.open(), i);
  float next = 1;
  for (int step = 0; step < 3000; ++step) {
    const int sequence = dice.below(5), other = dice.below(5);
    auto& values = expected[sequence];
    switch (dice.below(6)) {
      case 0: {
        const int length = dice.below(static_cast<int>(values.size()) + 1);
        cache.rewind(sequence, length);
        values.resize(length);
        break;
      }
      case 1: {
        if (other == sequence || expected[other].empty()) break;
        cache.rewind(sequence, 0);
        const int length = dice.below(static_cast<int>(expected[other].size()) + 1);
        const bool shared = cache.share(other, sequence, length).has_value();
        values.clear();
        if (shared) values.assign(expected[other].begin(), expected[other].begin() + length);
        break;
      }
      case 2:
        cache.close(sequence);
        ASSERT_EQ(*cache.open(), sequence);
        values.clear();
        break;
      default:
        for (int i = dice.below(20); i > 0; --i) {
          if (!cache.reserve(sequence, cache.length(sequence) + 1)) break;
          values.push_back(next);
          append(cache, sequence, next);
          next += 1;
        }
    }
    for (int i = 0; i < 5; ++i) {
      ASSERT_EQ(cache.length(i), static_cast<int>(expected[i].size()));
      for (int position = 0; position < cache.length(i); ++position) {
        float first;  // K of head 0, dimension 0: [head_dim][16]
        std::memcpy(&first, cache.committed_block(i, 1, position) + 4 * (position % kBlockPositions), 4);
        ASSERT_EQ(first, expected[i][position] + 1)
            << "step " << step << " sequence " << i << " at " << position;
      }
    }
  }
}

TEST(KvCache, WhatWasSavedLoadsAndNothingElseDoes) {
  KvCache cache = make_cache(2, 100);
  const int from = *cache.open(), to = *cache.open();
  fill(cache, from, 21, 1);
  fill(cache, to, 30, 400);
  const auto bytes = saved(cache, from);
  expect_ok(cache.load(to, bytes));
  EXPECT_EQ(cache.length(to), 21);
  EXPECT_EQ(saved(cache, to), bytes);

  EXPECT_NE(message(cache.load(to, {bytes.data(), 10})).find("too short"), std::string::npos);
  EXPECT_NE(message(cache.load(to, {bytes.data(), bytes.size() - 1})).find("positions need"),
            std::string::npos);
  const char* expectations[] = {"mark", nullptr, "type", "KV heads", "head size", "layers", "positions need"};
  for (int field = 0; field < 7; ++field) {
    if (expectations[field] == nullptr) continue;
    auto damaged = bytes;
    damaged[field * 4] ^= std::byte{0x40};
    EXPECT_NE(message(cache.load(to, damaged)).find(expectations[field]), std::string::npos) << field;
  }
  EXPECT_EQ(saved(cache, to), bytes) << "a refused file changes nothing";
}

}  // namespace
}  // namespace coppice::core
