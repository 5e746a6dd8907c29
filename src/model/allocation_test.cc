// A pass does not allocate: counted by replacing operator new in this test binary.
#include <gtest/gtest.h>

#include "base/allocation_count.h"
#include "model/testing.h"

namespace coppice::core {
namespace {

using namespace testing;

TEST(Allocation, AThousandCyclesOfReservePassAndKeepAllocateNothing) {
  ThreadPool pool(2);
  RandomModelOptions shape;
  shape.layers = 1;
  ContextOptions options;
  options.feature_layers = {0, 1};
  auto context = make_context(make_model(shape, pool), pool, options);
  KvCache& cache = context->cache();
  const int sequence = *cache.open();
  run_chain(*context, sequence, some_tokens(3, 320));
  int failures = 0;
  const AllocationCount count;
  for (int cycle = 0; cycle < 1000; ++cycle) {
    const int length = cache.length(sequence);
    const Row rows[] = {{sequence, 7, length, kCommitted, kCommitted, kLogits},
                        {sequence, 8, length + 1, 5, kCommitted, kLogits},
                        {sequence, 9, length + 2, 6, 5, kHidden | kFeatures}};
    const int path[] = {5, 6};
    if (!cache.reserve(sequence, length + 3) || !context->forward(rows)) ++failures;
    cache.keep(sequence, path);
    if (length > 300) cache.rewind(sequence, 10);
  }
  const int allocations = count.so_far();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(allocations, 0);
}

}  // namespace
}  // namespace coppice::core
