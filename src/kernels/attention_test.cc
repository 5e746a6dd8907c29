// Attention and the cache: equal to the reference bit for bit, wherever positions lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "quant/formats.h"

namespace coppice::core {
namespace {

const Kernels& scalar() { return *all_kernels()[0]; }

class EveryTablesAttention : public ::testing::TestWithParam<const Kernels*> {
 protected:
  void SetUp() override {
    if (!usable(table())) GTEST_SKIP() << table().name << ": not on this machine";
  }
  const Kernels& table() const { return *GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Isa, EveryTablesAttention,
                         ::testing::ValuesIn(all_kernels().begin(), all_kernels().end()),
                         [](const auto& isa) { return std::string(isa.param->name); });

std::vector<float> normal_floats(std::size_t count, unsigned seed, float size = 1.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, size);
  std::vector<float> x(count);
  for (float& value : x) value = normal(random);
  return x;
}

// A sequence of `positions` random keys and values and one query at its end; scores are near enough to each
// other that every position counts.
struct Sequence {
  Sequence(KvLayout shape, int count, unsigned seed)
      : layout(shape),
        positions(count),
        row_values(static_cast<std::size_t>(shape.kv_heads * shape.head_dim)),
        keys(normal_floats(row_values * static_cast<std::size_t>(count), seed, 2.0f)),
        values(normal_floats(row_values * static_cast<std::size_t>(count), seed + 1)),
        q(normal_floats(static_cast<std::size_t>(shape.heads * shape.head_dim), seed + 2, 0.1f)) {}

  // Stores and attends with `committed` positions in shuffled blocks and the rest in scratch slots, spread
  // out or in a row. Lanes nobody owns hold NaN.
  std::vector<float> attend(const Kernels& k, int committed, bool spread, unsigned seed) const {
    std::mt19937 random(seed);
    const int block_count = (committed + 15) / 16 + 2, slot_count = 64 + 2 * (positions - committed);
    std::vector<std::int32_t> table(static_cast<std::size_t>(block_count));
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), random);
    std::vector<std::int32_t> slots(static_cast<std::size_t>(slot_count));
    std::iota(slots.begin(), slots.end(), spread ? 0 : 5);
    if (spread) std::shuffle(slots.begin(), slots.end(), random);
    const std::size_t stride = layout.block_bytes() + 64;
    Buffer blocks = std::move(*Buffer::make(stride * static_cast<std::size_t>(block_count)));
    Buffer scratch = std::move(*Buffer::make(stride * static_cast<std::size_t>(slot_count / 16 + 2)));
    std::memset(blocks.data(), 0xFF, blocks.size());
    std::memset(scratch.data(), 0xFF, scratch.size());
    for (int p = 0; p < positions; ++p) {
      const bool old = p < committed;
      const auto at = static_cast<std::size_t>(old ? p : slots[static_cast<std::size_t>(p - committed)]);
      std::byte* block = old ? blocks.data() + static_cast<std::size_t>(table[at / 16]) * stride
                             : scratch.data() + at / 16 * stride;
      k.store_kv(layout, keys.data() + row_values * static_cast<std::size_t>(p),
                 values.data() + row_values * static_cast<std::size_t>(p), block, static_cast<int>(at % 16));
    }
    std::vector<float> out(q.size(), -1.0f), workspace(attention_workspace(layout));
    AttentionRow row;
    row.q = q.data(), row.out = out.data(), row.position = positions - 1, row.committed = committed;
    row.table = table.data(), row.blocks = blocks.data(), row.block_stride = stride;
    row.slots = slots.data(), row.scratch = scratch.data(), row.scratch_stride = stride;
    AttentionTask task;
    task.rows = &row, task.row_count = 1, task.query_end = layout.heads, task.workspace = workspace.data();
    k.attention(layout, task);
    return out;
  }

  KvLayout layout;
  int positions;
  std::size_t row_values;
  std::vector<float> keys, values, q;
};

void expect_same_bits(const std::vector<float>& expected, const std::vector<float>& got,
                      const std::string& what) {
  ASSERT_EQ(expected.size(), got.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(std::memcmp(&expected[i], &got[i], sizeof(float)), 0)
        << what << " at " << i << ": " << got[i] << ", not " << expected[i];
}

const KvLayout kShapes[] = {
    {CacheType::f32, 3, 9, 64},  {CacheType::f16, 3, 9, 64},  {CacheType::q8_0, 3, 9, 64},
    {CacheType::f32, 2, 2, 2},   {CacheType::f16, 1, 2, 22},  {CacheType::q8_0, 2, 8, 32},
    {CacheType::f32, 1, 7, 80},  {CacheType::f16, 2, 10, 48}, {CacheType::q8_0, 1, 5, 96},
    {CacheType::f16, 1, 4, 128},
};

std::string name_of(const KvLayout& l) {
  return "type " + std::to_string(static_cast<int>(l.type)) + ", heads " + std::to_string(l.kv_heads) + "/" +
         std::to_string(l.heads) + ", dims " + std::to_string(l.head_dim);
}

TEST_P(EveryTablesAttention, EqualsTheScalarOneWhereverPositionsLie) {
  for (const KvLayout& shape : kShapes)
    for (const int positions : {1, 2, 15, 16, 17, 63, 64, 65, 130, 512, 513, 1100}) {
      if (positions > 600 && shape.head_dim > 64) continue;
      const Sequence s(shape, positions, static_cast<unsigned>(positions));
      const std::vector<float> expected = s.attend(scalar(), positions, false, 1);
      unsigned seed = 2;
      for (const int in_scratch : {0, 1, 7, 16, 40, positions}) {
        const int committed = std::max(0, positions - in_scratch);
        for (const bool spread : {false, true})
          expect_same_bits(
              expected, s.attend(table(), committed, spread, seed++),
              name_of(shape) + ", " + std::to_string(committed) + " of " + std::to_string(positions));
      }
    }
}

TEST_P(EveryTablesAttention, KvHeadsDoNotDependOnHowTheyAreShared) {
  const KvLayout shape{CacheType::f16, 3, 9, 64};
  const Sequence s(shape, 100, 3);
  const std::vector<float> all = s.attend(table(), 90, true, 1);
  // The same sequence with only one kv head must give that head's part.
  for (int head = 0; head < 3; ++head) {
    Sequence one({CacheType::f16, 1, 3, 64}, 100, 3);
    for (std::size_t p = 0; p < 100; ++p)
      for (std::size_t d = 0; d < 64; ++d) {
        one.keys[p * 64 + d] = s.keys[p * 192 + static_cast<std::size_t>(head) * 64 + d];
        one.values[p * 64 + d] = s.values[p * 192 + static_cast<std::size_t>(head) * 64 + d];
      }
    const auto begin = s.q.begin() + head * 192;
    one.q.assign(begin, begin + 192);
    expect_same_bits({all.begin() + head * 192, all.begin() + (head + 1) * 192},
                     one.attend(table(), 90, true, 1), "head " + std::to_string(head));
  }
}

// A pass of rows over one cache: `rows` of them commit one position each behind `before` positions, or are
// nodes of a tree whose parents are chosen at random. Each row must have the bits it has alone, however the
// queries are cut.
struct ManyRows {
  ManyRows(KvLayout shape, int before, int count, bool tree, unsigned seed)
      : layout(shape), row_values(static_cast<std::size_t>(shape.kv_heads * shape.head_dim)) {
    std::mt19937 random(seed);
    const int positions = before + count;
    const std::vector<float> keys =
        normal_floats(row_values * static_cast<std::size_t>(positions), seed, 2.0f);
    const std::vector<float> values =
        normal_floats(row_values * static_cast<std::size_t>(positions), seed + 1);
    q = normal_floats(static_cast<std::size_t>(count * shape.heads * shape.head_dim), seed + 2, 0.1f);
    stride = layout.block_bytes();
    table.resize(static_cast<std::size_t>(positions) / 16 + 2);
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), random);
    blocks = std::move(*Buffer::make(stride * table.size()));
    scratch = std::move(*Buffer::make(stride * (static_cast<std::size_t>(count) / 16 + 1)));
    std::memset(blocks.data(), 0xFF, blocks.size());
    std::memset(scratch.data(), 0xFF, scratch.size());
    paths.resize(static_cast<std::size_t>(count));
    rows.resize(static_cast<std::size_t>(count));
    for (int p = 0; p < positions; ++p) {
      const bool node = tree && p >= before;
      std::byte* block =
          node ? scratch.data() + static_cast<std::size_t>(p - before) / 16 * stride
               : blocks.data() + static_cast<std::size_t>(table[static_cast<std::size_t>(p) / 16]) * stride;
      scalar().store_kv(layout, keys.data() + row_values * static_cast<std::size_t>(p),
                        values.data() + row_values * static_cast<std::size_t>(p), block,
                        (node ? p - before : p) % 16);
    }
    for (int i = 0; i < count; ++i) {
      AttentionRow& row = rows[static_cast<std::size_t>(i)];
      auto& path = paths[static_cast<std::size_t>(i)];
      if (tree) {
        const int parent = static_cast<int>(random() % static_cast<unsigned>(i + 1)) - 1;  // -1: the root
        if (parent >= 0) path = paths[static_cast<std::size_t>(parent)];
        path.push_back(i);
      }
      row.committed = tree ? before : before + i + 1;
      row.position = row.committed + static_cast<int>(path.size()) - 1;
      row.table = table.data(), row.blocks = blocks.data(), row.block_stride = stride;
      row.slots = path.data(), row.scratch = scratch.data(), row.scratch_stride = stride;
      row.q = q.data() + static_cast<std::size_t>(i * layout.heads * layout.head_dim);
    }
  }

  std::vector<float> attend(const Kernels& k, int first, int count, const std::vector<int>& cuts) {
    const auto width = static_cast<std::size_t>(layout.heads * layout.head_dim);
    std::vector<float> out(width * static_cast<std::size_t>(count), -1.0f),
        workspace(attention_workspace(layout));
    for (int i = 0; i < count; ++i)
      rows[static_cast<std::size_t>(first + i)].out = out.data() + width * static_cast<std::size_t>(i);
    AttentionTask task;
    task.rows = rows.data() + first, task.row_count = count, task.workspace = workspace.data();
    task.cap = cap;
    for (std::size_t i = 0; i <= cuts.size(); ++i) {
      task.query_begin = i == 0 ? 0 : cuts[i - 1];
      task.query_end = i == cuts.size() ? count * layout.heads : cuts[i];
      k.attention(layout, task);
    }
    return out;
  }

  KvLayout layout;
  std::size_t row_values, stride = 0;
  float cap = 0;
  std::vector<float> q;
  std::vector<std::int32_t> table;
  Buffer blocks, scratch;
  std::vector<std::vector<std::int32_t>> paths;
  std::vector<AttentionRow> rows;
};

TEST_P(EveryTablesAttention, ARowHasTheSameBitsAloneAndAmongManyHoweverTheyAreShared) {
  const KvLayout shapes[] = {{CacheType::f16, 3, 9, 64},
                             {CacheType::q8_0, 2, 8, 32},
                             {CacheType::q8_0, 1, 5, 96},
                             {CacheType::f32, 1, 7, 24}};
  for (const KvLayout& shape : shapes)
    for (const bool tree : {false, true})
      for (const int before : {0, 5, 63, 64, 100, 509}) {
        const int count = 19;
        ManyRows many(shape, before, count, tree, static_cast<unsigned>(before + 1));
        const std::vector<float> whole = many.attend(table(), 0, count, {});
        const int queries = count * shape.heads;
        expect_same_bits(whole, many.attend(table(), 0, count, {1, 7, queries / 2, queries - 2}), "cuts");
        const auto width = static_cast<std::ptrdiff_t>(shape.heads * shape.head_dim);
        for (int i = 0; i < count; ++i)
          expect_same_bits(
              {whole.begin() + width * i, whole.begin() + width * (i + 1)}, many.attend(scalar(), i, 1, {}),
              name_of(shape) + ", row " + std::to_string(i) + " behind " + std::to_string(before));
      }
}

TEST_P(EveryTablesAttention, WindowsAndSoftCapsAreTheScalarOnesAndReadNothingThatIsMasked) {
  const KvLayout shapes[] = {
      {CacheType::f16, 2, 6, 64}, {CacheType::q8_0, 2, 8, 32}, {CacheType::f32, 1, 7, 24}};
  for (const KvLayout& shape : shapes)
    for (const bool tree : {false, true})
      for (const int before : {0, 63, 100, 560})
        for (const int window : {1, 5, 16, 64, 70, 530})
          for (const float cap : {0.0f, 3.0f}) {
            const int count = 19;
            ManyRows many(shape, before, count, tree, static_cast<unsigned>(before + 1));
            many.cap = cap;
            int least = 1 << 20;
            for (AttentionRow& row : many.rows) {
              row.first = std::max(0, row.position + 1 - window);
              least = std::min(least, row.first);
            }
            const std::string what =
                name_of(shape) + ", window " + std::to_string(window) + " behind " + std::to_string(before);
            const auto width = static_cast<std::size_t>(shape.heads * shape.head_dim);
            std::vector<float> expected;
            for (int i = 0; i < count; ++i) {
              const auto one = many.attend(scalar(), i, 1, {});
              expected.insert(expected.end(), one.begin(), one.end());
            }
            ASSERT_EQ(expected.size(), width * count);
            for (int p = 0; p + 16 <= std::min(least, before); p += 16)  // blocks that nobody may read
              std::memset(many.blocks.data() + static_cast<std::size_t>(many.table[p / 16]) * many.stride,
                          0xFF, many.stride);
            expect_same_bits(expected, many.attend(table(), 0, count, {}), what);
            expect_same_bits(expected, many.attend(table(), 0, count, {1, 7, count * shape.heads / 2}), what);
          }
}

TEST_P(EveryTablesAttention, LargeAndNegativeScoresStayExact) {
  Sequence s({CacheType::f32, 1, 3, 32}, 700, 11);
  for (float& q : s.q) q *= 400.0f;  // most weights underflow to exactly 0
  s.q[0] = 0.0f;
  const std::vector<float> expected = s.attend(scalar(), 700, false, 1);
  for (const float value : expected) ASSERT_TRUE(std::isfinite(value));
  expect_same_bits(expected, s.attend(table(), 650, true, 2), "large scores");
}

TEST_P(EveryTablesAttention, SegmentsAreMergedAsStated) {  // many heads: one rounding shows in few of them
  const Sequence s({CacheType::f32, 64, 128, 4}, 2100, 13);
  expect_same_bits(s.attend(scalar(), 2100, false, 1), s.attend(table(), 2090, true, 2), "segments");
}

TEST_P(EveryTablesAttention, StoresTheBytesTheScalarOneStores) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const KvLayout& shape : kShapes)
    for (int lane = 0; lane < 16; lane += 5) {
      const auto count = static_cast<std::size_t>(shape.kv_heads * shape.head_dim);
      for (const float size : {1.0f, 1e-9f, 1e-40f, 1e6f, 1e30f, 0.0f, inf, nan}) {
        std::vector<float> k = normal_floats(count, 1), v = normal_floats(count, 2);
        for (float& x : k) x *= std::isfinite(size) ? size : 1.0f;
        if (!std::isfinite(size)) k[1] = size, v[0] = -inf;
        std::vector<std::byte> expected(shape.block_bytes(), std::byte{0xAA}), got(expected);
        scalar().store_kv(shape, k.data(), v.data(), expected.data(), lane);
        table().store_kv(shape, k.data(), v.data(), got.data(), lane);
        EXPECT_TRUE(expected == got) << name_of(shape) << ", values of " << size;
      }
    }
}

TEST(ScalarAttention, IsSoftmaxInBaseTwo) {
  for (const CacheType type : {CacheType::f32, CacheType::f16, CacheType::q8_0}) {
    const KvLayout shape{type, 2, 4, 32};
    const double tolerance = type == CacheType::f32 ? 1e-5 : type == CacheType::f16 ? 5e-3 : 6e-2;
    Sequence s(shape, 600, 5);
    for (float& q : s.q) q *= 2.0f;
    const std::vector<float> out = s.attend(scalar(), 600, false, 1);
    for (std::size_t head = 0; head < 4; ++head) {
      std::vector<double> o(32, 0.0);
      double total = 0;
      for (std::size_t p = 0; p < 600; ++p) {
        double score = 0;
        for (std::size_t d = 0; d < 32; ++d)
          score += static_cast<double>(s.q[head * 32 + d]) * s.keys[p * 64 + head / 2 * 32 + d];
        const double e = std::exp2(score);
        total += e;
        for (std::size_t d = 0; d < 32; ++d) o[d] += e * s.values[p * 64 + head / 2 * 32 + d];
      }
      for (std::size_t d = 0; d < 32; ++d) EXPECT_NEAR(out[head * 32 + d], o[d] / total, tolerance);
    }
  }
}

TEST(ScalarAttention, CapsScoresByATanhAndSeesNothingBelowItsWindow) {
  ManyRows many({CacheType::f32, 1, 1, 32}, 640, 1, false, 5);
  for (float& q : many.q) q *= 3.0f;
  const double cap = 4;
  for (const int first : {0, 100, 600, 640}) {
    AttentionRow& row = many.rows[0];
    row.first = first;
    many.cap = static_cast<float>(cap * 1.4426950408889634);
    const std::vector<float> out = many.attend(scalar(), 0, 1, {});
    std::vector<double> o(32, 0.0);
    double total = 0;
    for (int p = first; p <= row.position; ++p) {
      const auto* head = reinterpret_cast<const float*>(
          row.blocks + static_cast<std::size_t>(row.table[p / 16]) * row.block_stride);
      double score = 0;
      for (int d = 0; d < 32; ++d) score += static_cast<double>(row.q[d]) * head[d * 16 + p % 16];
      const double e = std::exp(cap * std::tanh(score / (2 * 1.4426950408889634)));
      total += e;
      for (int d = 0; d < 32; ++d) o[static_cast<std::size_t>(d)] += e * head[32 * 16 + p % 16 * 32 + d];
    }
    for (std::size_t d = 0; d < 32; ++d) EXPECT_NEAR(out[d], o[d] / total, 1e-5) << first;
  }
}

TEST(KvLayout, CopyPositionMovesEveryBitOfALane) {
  for (const KvLayout& shape : kShapes) {
    const auto count = static_cast<std::size_t>(shape.kv_heads * shape.head_dim);
    const std::vector<float> k = normal_floats(count, 1), v = normal_floats(count, 2);
    std::vector<std::byte> from(shape.block_bytes()), to(shape.block_bytes(), std::byte{7}), expected(to);
    scalar().store_kv(shape, k.data(), v.data(), from.data(), 3);
    scalar().store_kv(shape, k.data(), v.data(), expected.data(), 12);
    copy_position(shape, from.data(), 3, to.data(), 12);
    EXPECT_TRUE(expected == to) << name_of(shape);
    EXPECT_EQ(shape.block_bytes() % 64, 0u);
  }
}

}  // namespace
}  // namespace coppice::core
