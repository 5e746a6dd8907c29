#include "base/file_lock.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <optional>

namespace coppice::core {
namespace {

TEST(FileLock, OneHolderAtATime) {
  const std::string path = ::testing::TempDir() + "file_lock_test";
  std::optional<FileLock> lock = std::move(*FileLock::take(path));
  const auto second = FileLock::take(path);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another process"), std::string::npos);
  std::optional<FileLock> moved = std::move(*lock);
  lock.reset();
  EXPECT_FALSE(FileLock::take(path)) << "moving it let it go";
  moved.reset();
  EXPECT_TRUE(FileLock::take(path));
  EXPECT_FALSE(FileLock::take("/nowhere/at/all"));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace coppice::core
