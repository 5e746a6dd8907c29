#include "api/measure.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

namespace coppice {
namespace {

TEST(Measure, ASpreadIsMedianAndQuartiles) {
  const Spread odd = spread_of({5, 1, 3, 2, 4});
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.low, 2);
  EXPECT_EQ(odd.high, 4);
  const Spread even = spread_of({1, 2});
  EXPECT_EQ(even.median, 1.5);
  EXPECT_EQ(even.low, 1.25);
  EXPECT_EQ(spread_of({7}).high, 7);
  EXPECT_EQ(spread_of({}).median, 0);
}

TEST(Measure, RatiosAreMadeWithinARound) {
  // A machine that was half as fast in the second round changes no ratio.
  const double one[] = {1, 2, 1}, other[] = {3, 6, 3};
  const Spread ratio = divided(other, one);
  EXPECT_EQ(ratio.low, 3);
  EXPECT_EQ(ratio.high, 3);
  EXPECT_EQ(divided(6.0, other).median, 2);
}

TEST(Measure, EverythingIsRunEveryRoundAndWhoBeginsRotates) {
  std::string order;
  std::vector<Timed> timed;
  for (const char name : {'a', 'b', 'c'})
    timed.push_back({[&order, name] {
                       order += name;
                       return Status();
                     },
                     [&order] {
                       order += '.';
                       return Status();
                     }});
  ASSERT_TRUE(alternate(timed, 2, {}, ""));
  EXPECT_EQ(order, ".a.b.c.b.c.a.c.a.b");  // the first round is not timed
  for (const Timed& one : timed) EXPECT_EQ(one.seconds.size(), 2u);
}

TEST(Measure, ProgressRisesAndCanStop) {
  Timed timed[] = {{[] { return Status(); }}};
  std::vector<double> heard;
  const BenchProgress progress = [&](double fraction, std::string_view what) {
    EXPECT_EQ(what, "x");
    heard.push_back(fraction);
    return heard.size() < 3;
  };
  EXPECT_FALSE(alternate(timed, 3, progress, "x", {0.5, 1.0}));
  EXPECT_EQ(heard, (std::vector<double>{0.5, 0.625, 0.75}));
}

TEST(Measure, ErrorsEndIt) {
  int runs = 0;
  Timed timed[] = {{[&]() -> Status {
    ++runs;
    return fail("no");
  }}};
  EXPECT_FALSE(alternate(timed, 3, {}, ""));
  EXPECT_EQ(runs, 1);
}

TEST(Measure, EveryByteIsReadByOneOfTheThreads) {
  core::ThreadPool pool(3);
  core::Kernels counting = core::kernels();
  static std::atomic<std::size_t> bytes;
  bytes = 0;
  counting.read_all = [](const std::byte*, std::size_t count) {
    bytes += count;
    return 1.0f;
  };
  const Limits limits(pool, counting);
  std::vector<std::byte> memory(64 * 1000);
  const std::span<const std::byte> parts[] = {
      {memory.data(), 64 * 7}, {memory.data(), 64 * 1000}, {memory.data(), 64}};
  limits.read(parts);
  EXPECT_EQ(bytes, 64u * 1008);
}

}  // namespace
}  // namespace coppice
