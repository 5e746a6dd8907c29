#include <coppice/stats.h>
#include <gtest/gtest.h>

namespace coppice {
namespace {

Stats with_sources(std::vector<SourceStats> sources) {
  Stats stats;
  stats.sources = std::move(sources);
  return stats;
}

TEST(Stats, SourcesAreAddedByName) {
  Stats sum = with_sources({{"lookup", 10, 5}});
  sum.add(with_sources({{"ngram", 4, 1}, {"lookup", 2, 1}}));
  ASSERT_EQ(sum.sources.size(), 2u);
  EXPECT_EQ(sum.sources[0].proposed, 12u);
  EXPECT_EQ(sum.sources[1].accepted, 1u);
}

TEST(Stats, TwoDraftersOfOneNameStayTwo) {
  Stats sum;
  for (int i = 0; i < 2; ++i) sum.add(with_sources({{"model", 10, 5}, {"lookup", 1, 0}, {"model", 100, 50}}));
  ASSERT_EQ(sum.sources.size(), 3u);
  EXPECT_EQ(sum.sources[0].proposed, 20u);
  EXPECT_EQ(sum.sources[2].proposed, 200u);
  EXPECT_EQ(sum.sources[2].accepted, 100u);
}

}  // namespace
}  // namespace coppice
