#include "policy/cost_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/os.h"

namespace coppice::core {
namespace {

CostTable table() {
  CostTable t;
  t.points = {{1, 1.0}, {4, 1.1}, {6, 1.3}, {8, 1.6}, {16, 3.0}};
  return t;
}

double rows(const CostModel& model, double n) { return model.seconds({n, 0, 0}); }

TEST(CostModel, GivesWhatWasMeasuredAndALineBetween) {
  const CostModel model(table());
  EXPECT_DOUBLE_EQ(rows(model, 1), 1.0);
  EXPECT_DOUBLE_EQ(rows(model, 6), 1.3);
  EXPECT_DOUBLE_EQ(rows(model, 7), 1.45);
  EXPECT_DOUBLE_EQ(rows(model, 24), 4.4) << "behind the last point the line goes on";
  EXPECT_DOUBLE_EQ(rows(model, 0.5), 1.0);
}

TEST(CostModel, MoreRowsNeverCostLess) {
  CostTable t;
  t.points = {{1, 1.0}, {2, 0.9}, {3, 1.1}, {4, 0.7}, {5, 1.4}};
  const CostModel model(t);
  for (int n = 2; n <= 5; ++n) EXPECT_GE(rows(model, n), rows(model, n - 1)) << n;
  EXPECT_DOUBLE_EQ(rows(model, 1), 0.925) << "the mean of those that fall";
  EXPECT_DOUBLE_EQ(rows(model, 5), 1.4);
}

TEST(CostModel, TheContextCostsAPartForAllRowsAndAPartForEach) {
  CostTable t = table();
  t.per_position = 0.001;
  t.per_row_position = 0.0001;
  const CostModel model(t);
  PassShape pass;
  pass.add_request(4, 100);
  EXPECT_DOUBLE_EQ(model.seconds(pass), 1.1 + 0.1 + 0.04);
  pass.add_request(2, 200);
  EXPECT_DOUBLE_EQ(model.seconds(pass), 1.3 + 0.3 + 0.04 + 0.04);
}

TEST(CostModel, ASlowPassChangesNoDecision) {
  CostModel model(table());
  model.refine({8, 0, 0}, 100 * 1.6);
  EXPECT_NEAR(rows(model, 8) / rows(model, 1), 1.6, 0.008);
}

TEST(CostModel, ANoisyNeighbourCancelsOut) {
  CostModel model(table());
  for (int i = 0; i < 100; ++i) {
    model.refine({1, 0, 0}, 1.7 * 1.0);
    model.refine({8, 0, 0}, 1.7 * 1.6);
  }
  EXPECT_NEAR(rows(model, 1), 1.7, 0.02);
  EXPECT_NEAR(rows(model, 8) / rows(model, 1), 1.6, 0.02);
  EXPECT_NEAR(rows(model, 16) / rows(model, 1), 3.0, 0.1) << "also where nothing was seen";
}

TEST(CostModel, WhatWasMeasuredWronglyIsPutRight) {
  CostTable wrong = table();
  wrong.points[3].seconds = 2.4;
  CostModel model(wrong);
  for (int i = 0; i < 600; ++i) {
    model.refine({1, 0, 0}, 1.0);
    model.refine({8, 0, 0}, 1.6);
  }
  EXPECT_NEAR(rows(model, 8) / rows(model, 1), 1.6, 0.08);
  EXPECT_EQ(model.refined(), 1200u);
}

TEST(Typical, OneOutlierHardlyMovesIt) {
  Typical seconds;
  seconds.add(2);
  EXPECT_EQ(seconds.value(), 2);
  seconds.add(1000);
  EXPECT_LT(seconds.value(), 2.11);
  for (int i = 0; i < 200; ++i) seconds.add(3);
  EXPECT_NEAR(seconds.value(), 3, 0.01);
}

class CostFile : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(std::filesystem::path(path_).parent_path()); }
  void write(const std::string& text) {
    ASSERT_TRUE(write_file(path_, [&](const Append& append) {
      return append(std::as_bytes(std::span(text.data(), text.size())));
    }));
  }
  std::string problem(const std::string& key = "this machine") const {
    const auto loaded = load_costs(path_, key);
    return loaded ? "loaded" : loaded.error().message;
  }
  std::string path_ = testing::TempDir() + "coppice_costs_test_" + std::to_string(::getpid()) + "/a.costs";
};

TEST_F(CostFile, KeepsWhatWasMeasured) {
  CostTable t = table();
  t.per_position = 1.25e-7;
  t.per_row_position = 3e-9;
  t.prompt_row = 0.79;
  ASSERT_TRUE(save_costs(path_, "this machine", t));
  const auto loaded = load_costs(path_, "this machine");
  ASSERT_TRUE(loaded) << loaded.error().message;
  ASSERT_EQ(loaded->points.size(), t.points.size());
  for (std::size_t i = 0; i < t.points.size(); ++i) {
    EXPECT_EQ(loaded->points[i].rows, t.points[i].rows);
    EXPECT_EQ(loaded->points[i].seconds, t.points[i].seconds);
  }
  EXPECT_EQ(loaded->per_position, t.per_position);
  EXPECT_EQ(loaded->per_row_position, t.per_row_position);
  EXPECT_EQ(loaded->prompt_row, t.prompt_row);
}

TEST_F(CostFile, OfAnotherMachineIsNotTaken) {
  ASSERT_TRUE(save_costs(path_, "another machine", table()));
  EXPECT_NE(problem().find("another machine or model"), std::string::npos) << problem();
}

TEST_F(CostFile, DamagedSaysHow) {
  ASSERT_TRUE(save_costs(path_, "this machine", table()));
  const std::string whole = *read_file(path_);
  for (std::size_t length = 0; length + 1 < whole.size(); length += 9) {
    write(whole.substr(0, length));
    EXPECT_NE(problem(), "loaded") << "cut off behind " << length << " bytes";
  }
  const std::string head = "coppice costs 2\nthis machine\n", tail = "context 0 0 1\nend\n";
  write(head + "rows 4 1\nrows 1 1\n" + tail);
  EXPECT_NE(problem().find("rows 1 in 1 seconds cannot be"), std::string::npos) << problem();
  write(head + "rows 1 -1\n" + tail);
  EXPECT_NE(problem().find("cannot be"), std::string::npos);
  write(head + "rows 1 nan\n" + tail);
  EXPECT_NE(problem(), "loaded");
  write(head + "rows 1 1\ncontext 0 0 2\nend\n");
  EXPECT_NE(problem().find("of the context cannot be"), std::string::npos);
  write(head + tail);
  EXPECT_NE(problem().find("cut off"), std::string::npos);
  write("rows 1 1\n");
  EXPECT_NE(problem().find("is no file of costs"), std::string::npos);
}

}  // namespace
}  // namespace coppice::core
