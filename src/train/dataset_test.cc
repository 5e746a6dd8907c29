#include "train/dataset.h"

#include <gtest/gtest.h>

#include <map>

#include "train/testing.h"

namespace coppice::core::train {
namespace {

using testing::TinyCorpus;
using testing::write_corpus;

constexpr DatasetOptions kSmall{16, 4, 64, 0.2, 3};

std::unique_ptr<Dataset> open(const std::string& folder, DatasetOptions options = kSmall) {
  auto data = Dataset::open({&folder, 1}, options);
  EXPECT_TRUE(data) << (data ? "" : data.error().message);
  return data ? std::move(*data) : nullptr;
}

// Scored tokens of one epoch, each as (its id, what the target said first).
std::map<std::pair<std::int64_t, std::int64_t>, int> epoch(const Dataset& data, std::int64_t first) {
  std::map<std::pair<std::int64_t, std::int64_t>, int> seen;
  HostBatch batch;
  for (std::int64_t i = 0; i < data.batches_per_epoch(); ++i) {
    data.batch(first + i, false, batch);
    EXPECT_LE(batch.rows * batch.length, kSmall.batch_tokens);
    EXPECT_LE(batch.length, kSmall.window);
    for (std::size_t c = 0; c < batch.scored.size(); ++c)
      if (batch.scored[c]) ++seen[{batch.ids[c], batch.top[c * static_cast<std::size_t>(batch.top_k)]}];
  }
  return seen;
}

TEST(Dataset, AnEpochHasEveryScoredTokenOnce) {
  const auto data = open(write_corpus({}, "epoch"));
  std::int64_t count = 0;
  const auto first = epoch(*data, 0);
  for (const auto& [key, n] : first) count += n;
  EXPECT_EQ(count, data->scored_tokens());
  const std::int64_t batches = data->batches_per_epoch();
  EXPECT_EQ(epoch(*data, batches), first) << "the second epoch has the same tokens in another order";
}

TEST(Dataset, TheSameSeedGivesTheSameBatches) {
  const std::string folder = write_corpus({}, "seed");
  const auto a = open(folder), b = open(folder);
  HostBatch x, y;
  for (std::int64_t i : {0, 5, 90, 2}) {  // over epochs, and back
    a->batch(i, true, x);
    b->batch(i, true, y);
    EXPECT_EQ(x.ids, y.ids);
    EXPECT_EQ(x.feature_halves, y.feature_halves);
  }
}

TEST(Dataset, HeldOutTextsAreNeverLearnedFrom) {
  const auto data = open(write_corpus({}, "held"));
  EXPECT_GT(data->held_out_tokens(), 0);
  std::int64_t total = 0;
  for (int i = 0; i < TinyCorpus{}.texts; ++i) {
    const CorpusRecord text = testing::tiny_text({}, i);
    total += static_cast<std::int64_t>(text.ids.size()) - text.start;
  }
  EXPECT_EQ(data->scored_tokens() + data->held_out_tokens(), total);
}

TEST(Dataset, AStretchBeginsWithTokensThatOnlyGiveAPast) {
  const auto data = open(write_corpus({}, "past"));
  HostBatch batch;
  for (std::int64_t i = 0; i < data->batches_per_epoch(); ++i) {
    data->batch(i, true, batch);
    for (int r = 0; r < batch.rows; ++r) {
      const std::size_t row = static_cast<std::size_t>(r) * static_cast<std::size_t>(batch.length);
      EXPECT_FALSE(batch.scored[row]) << "the first token has no past";
      for (std::int64_t t = batch.lengths[static_cast<std::size_t>(r)]; t < batch.length; ++t)
        EXPECT_FALSE(batch.scored[row + static_cast<std::size_t>(t)]) << "padding";
    }
  }
}

TEST(Dataset, FeaturesHaveTheMomentsItSays) {
  const auto data = open(write_corpus({}, "moments"));
  std::vector<float> mean, scale;
  data->feature_moments(1000000, mean, scale);
  ASSERT_EQ(mean.size(), 128u);
  for (std::size_t i = 0; i < mean.size(); ++i) {
    EXPECT_LT(std::abs(mean[i]), 3) << i;
    EXPECT_NEAR(scale[i], 0.27, 0.1) << i;  // of values spread over -6 to 6
  }
}

TEST(Dataset, SeveralCorporaAreOne) {
  const std::string folders[] = {write_corpus({}, "one"), write_corpus({}, "two")};
  const auto one = Dataset::open({folders, 1}, kSmall), both = Dataset::open(folders, kSmall);
  ASSERT_TRUE(one && both);
  EXPECT_EQ((*both)->texts(), 2 * (*one)->texts());
  EXPECT_EQ((*both)->held_out_tokens(), 2 * (*one)->held_out_tokens());  // a prompt's texts stay on one side
}

TEST(Dataset, CorporaOfDifferentShapesAreRefused) {
  TinyCorpus bare;
  bare.features = false;
  const std::string folders[] = {write_corpus({}, "with"), write_corpus(bare, "without")};
  const auto refused = Dataset::open(folders, kSmall);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--features"), std::string::npos) << refused.error().message;
}

TEST(Dataset, ACorpusWithNothingToLearnFromIsRefused) {
  const std::string empty = testing::fresh_folder("empty");
  EXPECT_FALSE(Dataset::open({&empty, 1}, kSmall));
  DatasetOptions bad = kSmall;
  bad.context = 1;
  auto refused = Dataset::open({&empty, 1}, bad);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("context = 1"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace coppice::core::train
