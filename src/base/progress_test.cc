#include "base/progress.h"

#include <gtest/gtest.h>

namespace coppice::core {
namespace {

TEST(Progress, TheLineShowsFractionRateAndTimeLeft) {
  EXPECT_EQ(format_progress({"loading", 5e9, 20e9, "bytes", 2.0}, 200),
            "loading [######..................]  25%  2.5 GB/s  0:06 left");
  EXPECT_EQ(format_progress({"prefill", 300, 400, "tokens", 1.5}, 200),
            "prefill [##################......]  75%  200 tokens/s  0:01 left");
  EXPECT_EQ(format_progress({"counting", 1, 7201, "", 1.0}, 200),
            "counting [........................]   0%  2:00:00 left");
}

TEST(Progress, TheLineStartsWithoutARateAndEndsAtAHundred) {
  EXPECT_EQ(format_progress({"x", 0, 10, "tokens", 0}, 200), "x [........................]   0%");
  EXPECT_EQ(format_progress({"x", 12, 10, "", 1}, 200), "x [########################] 100%  0:00 left");
}

TEST(Progress, TheLineStaysInsideTheTerminal) {
  for (int columns = 0; columns < 90; ++columns)
    EXPECT_LE(static_cast<int>(format_progress({"loading", 1e9, 20e9, "bytes", 2.0}, columns).size()),
              std::max(columns - 1, 0));
}

TEST(Progress, NothingIsPrintedWhereStderrIsNotATerminal) {
  ::testing::internal::CaptureStderr();  // a file
  {
    Progress progress("loading", 10, "bytes");
    for (int i = 0; i <= 10; ++i) progress.update(i);
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace coppice::core
