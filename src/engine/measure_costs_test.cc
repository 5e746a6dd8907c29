#include "engine/measure_costs.h"

#include <gtest/gtest.h>

#include "model/random_model.h"

namespace coppice::core {
namespace {

std::unique_ptr<Context> make_context(ThreadPool& pool, int sequences, int slots, int positions) {
  static const auto bytes = *random_model({});
  ContextOptions options;
  options.kv.sequences = sequences;
  options.kv.positions = positions;
  options.kv.slots = slots;
  options.max_logits = sequences * (slots + 1);
  options.max_rows = options.max_logits + 64;
  return *Context::make(*Model::load(*gguf::File::parse(bytes, "random"), pool), options, pool);
}

// Time goes by with the rows: a pass of n takes 10 + n.
struct RowClock {
  Context* context;
  double operator()() const {
    const PassStats& stats = context->stats();
    return 10.0 * static_cast<double>(stats.passes) + static_cast<double>(stats.rows);
  }
};

TEST(MeasureCosts, GivesTheSecondsOfPassesOfEachNumberOfRows) {
  ThreadPool pool(1);
  auto context = make_context(pool, 4, 16, 600);
  MeasureOptions options;
  options.chunk = 64;
  options.seconds = 1e9;
  options.clock = RowClock{context.get()};
  const auto table = measure_costs(*context, options);
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_GT(table->points.size(), 10u);
  for (std::size_t i = 0; i < table->points.size(); ++i) {
    const CostPoint& point = table->points[i];
    EXPECT_EQ(point.seconds, 10 + point.rows) << point.rows << " rows";
    if (i > 0) {
      EXPECT_GT(point.rows, table->points[i - 1].rows);
    }
  }
  EXPECT_EQ(table->points.front().rows, 1);
  EXPECT_EQ(table->points.back().rows, 68) << "all rows there can be, of four sequences";
  EXPECT_EQ(table->per_position, 0);
  EXPECT_EQ(table->per_row_position, 0);
  EXPECT_GT(table->prompt_row, 0);
  EXPECT_LT(table->prompt_row, 1) << "a row without logits costs less";
}

TEST(MeasureCosts, LeavesTheContextAsItWas) {
  ThreadPool pool(1);
  auto context = make_context(pool, 2, 4, 64);
  MeasureOptions options;
  options.context = 2;  // the smallest there is
  options.clock = seconds;
  ASSERT_TRUE(measure_costs(*context, options));
  EXPECT_EQ(context->stats().passes, 0u);
  KvCache& cache = context->cache();
  const auto first = cache.open(), second = cache.open();
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(cache.reserve(*first, 32) && cache.reserve(*second, 32)) << "nothing is held";
}

TEST(MeasureCosts, OfASlowModelOnlyAFewPassesAreRun) {
  ThreadPool pool(1);
  auto context = make_context(pool, 1, 16, 400);
  double now = 0;
  std::uint64_t passes = 0;
  MeasureOptions options;
  options.seconds = 1;
  options.clock = [&] { return now += 0.5, passes = context->stats().passes, now; };  // half a second a look
  const auto table = measure_costs(*context, options);
  ASSERT_TRUE(table);
  EXPECT_LE(passes, 8u);
  EXPECT_EQ(table->points.size(), 5u);
}

TEST(MeasureCosts, WherePassesOfManyRequestsLieIsMeasuredOfASlowModelToo) {
  ThreadPool pool(1);
  auto context = make_context(pool, 12, 16, 400);
  double now = 0;
  MeasureOptions options;
  options.context = 30;
  options.clock = [&] { return now += 0.5; };
  const auto table = measure_costs(*context, options);
  ASSERT_TRUE(table);
  std::vector<double> rows;
  for (const CostPoint& point : table->points) rows.push_back(point.rows);
  EXPECT_EQ(rows, (std::vector<double>{1, 4, 8, 12, 14, 16, 20, 24, 204}));
}

}  // namespace
}  // namespace coppice::core
