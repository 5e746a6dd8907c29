#include "base/allocation_count.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace coppice::core {
namespace {

struct alignas(64) Line {
  char bytes[64];
};

// GCC leaves out a new whose delete it sees.
template <class T>
[[gnu::noinline]] void drop(T* memory) {
  __asm__ volatile("" : : "r"(memory) : "memory");
  delete memory;
}

TEST(AllocationCount, SeesEveryKindOfNewByAnyThreadWhileItLives) {
  const testing::AllocationCount count;
  drop(new int(3));
  EXPECT_EQ(count.so_far(), 1);
  { const std::vector<char> array(7); }
  EXPECT_EQ(count.so_far(), 2);
  auto* line = new Line;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(line) % alignof(Line), 0u);
  drop(line);
  EXPECT_EQ(count.so_far(), 3);
  std::thread([] { drop(new int(4)); }).join();
  EXPECT_GE(count.so_far(), 4);  // the thread's own start may allocate too
}

TEST(AllocationCount, IsZeroWhereNothingWasAllocated) {
  const testing::AllocationCount count;
  EXPECT_EQ(count.so_far(), 0);
}

}  // namespace
}  // namespace coppice::core
