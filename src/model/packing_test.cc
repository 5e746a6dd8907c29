#include "model/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "model/packing_testing.h"
#include "model/testing.h"

namespace coppice::core {
namespace {

using testing::Packed;
using testing::Weights;

class PackingTest : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(EachFormat, PackingTest,
                         ::testing::Values("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q8_0"),
                         [](const auto& row) { return std::string(row.param); });

TEST_P(PackingTest, AnyNumberOfThreadsGivesTheBytesOfPackingMatrixByMatrix) {
  const Weights weights(GetParam());
  const auto file = *gguf::File::parse(weights.bytes, "weights.gguf");
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    Packed packed(*file);
    const auto memory = pack_weights(*file, packed.jobs, pool, {});
    ASSERT_TRUE(memory) << memory.error().message;
    for (const PackJob& job : packed.jobs) {
      const PackedMatrix& matrix = *job.matrix;
      const auto alone = pack(*job.tensor->format, job.tensor->data, matrix.outputs, matrix.inputs);
      ASSERT_TRUE(alone);
      ASSERT_EQ(matrix.data.size(), alone->data.size());
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(matrix.data.data()) % 64, 0u);
      EXPECT_EQ(std::memcmp(matrix.data.data(), alone->data.data(), matrix.bytes()), 0) << job.tensor->name;
    }
  }
}

TEST(Packing, TheFirstScaleThatIsNotFiniteIsNamedWhateverTheThreads) {
  Weights weights("Q8_0");
  weights.spoil("large", 19999);
  weights.spoil("large", 7);
  weights.spoil("one more", 0);
  const auto file = *gguf::File::parse(weights.bytes, "weights.gguf");
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    Packed packed(*file);
    EXPECT_EQ(testing::message(pack_weights(*file, packed.jobs, pool, {})),
              "weights.gguf: tensor large has a value or scale that is not finite in row 7 at value 0");
  }
}

TEST(Packing, ProgressRisesFromZeroToOne) {
  const Weights weights("F16");
  const auto file = *gguf::File::parse(weights.bytes, "weights.gguf");
  ThreadPool pool(2);
  Packed packed(*file);
  std::vector<double> heard;
  ASSERT_TRUE(pack_weights(*file, packed.jobs, pool, [&](double now) { heard.push_back(now); }));
  EXPECT_EQ(heard.front(), 0.0);
  EXPECT_EQ(heard.back(), 1.0);
  EXPECT_TRUE(std::is_sorted(heard.begin(), heard.end()));
}

TEST(Packing, NothingOfThePackedTensorsStaysMapped) {
  const std::string path = ::testing::TempDir() + "coppice_packing_test.gguf";
  const Weights weights("F32");
  testing::expect_ok(write_file(path, [&](const Append& append) { return append(weights.bytes); }));
  const auto file = *gguf::File::open(path);
  ThreadPool pool(2);
  Packed packed(*file);
  ASSERT_TRUE(pack_weights(*file, packed.jobs, pool, {}));
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  std::size_t kilobytes = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) inside = line.find(path) != std::string::npos;
    if (inside && line.rfind("Rss:", 0) == 0) kilobytes += std::stoul(line.substr(4));
  }
  EXPECT_LE(kilobytes, 64u);  // the header's pages and those the system maps beside them
  EXPECT_GT(weights.bytes.size(), std::size_t{20} << 20);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace coppice::core
