#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "base/float_control_testing.h"
#include "base/os.h"

namespace coppice::core {
namespace {

// Keeps `count` cores busy while it lives.
class BusyNeighbour {
 public:
  explicit BusyNeighbour(int count) {
    for (int i = 0; i < count; ++i)
      threads_.emplace_back([this] {
        while (!stop_.load(std::memory_order_relaxed)) work_.fetch_add(1, std::memory_order_relaxed);
      });
  }
  ~BusyNeighbour() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> work_{0};
  std::vector<std::thread> threads_;
};

// Every thread writes its cell, meets the others, and reads all cells: a barrier that lets anyone through
// early shows as an old value. Plain ints, so that ThreadSanitizer checks the ordering too.
int stale_reads(ThreadPool& pool, int rounds) {
  std::vector<int> cells(static_cast<std::size_t>(pool.size()), -1);
  std::atomic<int> stale{0};
  pool.run([&](int thread) {
    for (int round = 0; round < rounds; ++round) {
      cells[static_cast<std::size_t>(thread)] = round;
      pool.barrier();
      for (const int cell : cells)
        if (cell != round) stale.fetch_add(1);
      pool.barrier();
    }
  });
  return stale.load();
}

TEST(ThreadPool, RunsTheBodyOnceOnEveryThread) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    std::vector<int> calls(static_cast<std::size_t>(threads), 0);
    for (int i = 0; i < 100; ++i) pool.run([&](int thread) { ++calls[static_cast<std::size_t>(thread)]; });
    for (const int count : calls) EXPECT_EQ(count, 100);
  }
}

TEST(ThreadPool, TheCallerIsThreadZero) {
  ThreadPool pool(2);
  std::vector<std::thread::id> ids(2);
  pool.run([&](int thread) { ids[static_cast<std::size_t>(thread)] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_NE(ids[1], ids[0]);
}

TEST(ThreadPool, ABarrierLetsNobodyThroughEarly) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    EXPECT_EQ(stale_reads(pool, 500), 0);
  }
}

TEST(ThreadPool, ManyThreadsOnFewCoresStillMeet) {
  ThreadPool pool(3 * usable_cores() + 1);
  EXPECT_EQ(stale_reads(pool, 200), 0);
}

TEST(ThreadPool, AThousandBarriersCompleteBesideABusyNeighbour) {
  BusyNeighbour neighbour(usable_cores());
  ThreadPool pool(usable_cores() + 1);
  EXPECT_EQ(stale_reads(pool, 500), 0);
}

TEST(ThreadPool, WakesWorkersThatWentToSleep) {
  ThreadPool pool(2);
  std::atomic<int> calls{0};
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // longer than they spin
    pool.run([&](int thread) {
      if (thread == 1)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the caller sleeps as well
      calls.fetch_add(1);
    });
  }
  EXPECT_EQ(calls.load(), 10);
}

TEST(ThreadPool, SecondCallerWaitsForTheFirst) {
  ThreadPool pool(2);
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  const auto call = [&] {
    for (int i = 0; i < 200; ++i)
      pool.run([&](int thread) {
        if (thread == 0) most.store(std::max(most.load(), inside.fetch_add(1) + 1));
        pool.barrier();
        if (thread == 0) inside.fetch_sub(1);
      });
  };
  std::thread other(call);
  call();
  other.join();
  EXPECT_EQ(most.load(), 1);
}

TEST(ThreadPool, ManyShortLivedPoolsStartAndStop) {
  for (int i = 0; i < 200; ++i) {
    ThreadPool pool(1 + i % 4);
    const int stale = i % 3 == 0 ? 0 : stale_reads(pool, 3);  // some are never used
    EXPECT_EQ(stale, 0);
  }
}

#ifdef COPPICE_FLOAT_CONTROL
TEST(ThreadPool, EveryThreadComputesWithTheDefaultFloatEnvironment) {
  const std::uint64_t saved = float_control();
  set_float_control(saved | kFlushing);  // a host process that flushes denormals to zero
  std::vector<std::uint64_t> words(3, 0);
  {
    ThreadPool pool(3);
    pool.run([&](int thread) { words[static_cast<std::size_t>(thread)] = float_control(); });
  }
  const std::uint64_t after = float_control();
  set_float_control(saved);
  for (const std::uint64_t word : words) EXPECT_EQ(word & kFloatControlMask, kFloatControlDefault);
  EXPECT_EQ(after & kFlushing, kFlushing);
}
#endif

TEST(Share, CoversEverythingOnceAndEvenly) {
  for (const int total : {0, 1, 7, 64, 1'000'000'007}) {
    for (const int threads : {1, 2, 3, 16}) {
      int at = 0;
      for (int thread = 0; thread < threads; ++thread) {
        const Span1 part = share(total, thread, threads);
        EXPECT_EQ(part.begin, at);
        EXPECT_LE(part.end - part.begin, total / threads + 1);
        EXPECT_GE(part.end - part.begin, total / threads);
        at = part.end;
      }
      EXPECT_EQ(at, total);
    }
  }
}

}  // namespace
}  // namespace coppice::core
