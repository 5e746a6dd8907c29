// A pass does not allocate: counted by replacing operator new in this test binary.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "model/testing.h"

namespace {
std::atomic<bool> counting{false};
std::atomic<int> allocations{0};

void* allocate(std::size_t bytes) {
  if (counting.load()) allocations.fetch_add(1);
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace coppice::core {
namespace {

using namespace testing;

TEST(Allocation, AThousandCyclesOfReservePassAndKeepAllocateNothing) {
  ThreadPool pool(2);
  RandomModelOptions shape;
  shape.layers = 1;
  auto context = make_context(make_model(shape, pool), pool);
  KvCache& cache = context->cache();
  const int sequence = *cache.open();
  run_chain(*context, sequence, some_tokens(3, 320));
  int failures = 0;
  allocations = 0;
  counting = true;
  for (int cycle = 0; cycle < 1000; ++cycle) {
    const int length = cache.length(sequence);
    const Row rows[] = {{sequence, 7, length, kCommitted, kCommitted, kLogits},
                        {sequence, 8, length + 1, 5, kCommitted, kLogits},
                        {sequence, 9, length + 2, 6, 5, kHidden}};
    const int path[] = {5, 6};
    if (!cache.reserve(sequence, length + 3) || !context->forward(rows)) ++failures;
    cache.keep(sequence, path);
    if (length > 300) cache.rewind(sequence, 10);
  }
  counting = false;
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(allocations.load(), 0);
}

}  // namespace
}  // namespace coppice::core
