#include "model/packing.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>

#include "gguf/writer.h"
#include "model/testing.h"
#include "quant/formats.h"

namespace coppice::core {
namespace {

// Rows of random numbers, quantised; the shapes reach over the edges of groups and of huge pages.
struct Shape {
  const char* name;
  std::int64_t inputs, outputs;
};
constexpr Shape kShapes[] = {{"tiny", 32, 1},    {"odd", 96, 17},       {"square", 64, 64},
                             {"long", 2048, 70}, {"large", 256, 20011}, {"one more", 32, 33}};

class Weights {
 public:
  explicit Weights(const std::string& format_name) {
    const Format& format = *find_format(format_name);
    gguf::Writer writer;
    std::mt19937 random(5);
    for (const Shape& shape : kShapes) {
      std::vector<float> row(static_cast<std::size_t>(shape.inputs));
      std::vector<std::byte> blocks;
      for (std::int64_t i = 0; i < shape.outputs; ++i) {
        for (float& value : row) value = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
        std::vector<std::byte> packed(row_bytes(format, shape.inputs));
        format.quantize(row.data(), packed.data(), shape.inputs);
        blocks.insert(blocks.end(), packed.begin(), packed.end());
      }
      writer.add_tensor(shape.name, format, {shape.inputs, shape.outputs}, std::move(blocks));
    }
    bytes = writer.to_bytes();
  }

  // Not finite from the scale of the row's first block on: only for formats whose block begins with it.
  void spoil(const char* name, std::int64_t row) {
    const auto file = *gguf::File::parse(bytes, "weights.gguf");
    const gguf::Tensor& tensor = *file->tensor(name);
    const std::size_t at = row_bytes(*tensor.format, tensor.shape[0]) * static_cast<std::size_t>(row);
    const std::uint16_t infinity = 0x7c00;
    std::memcpy(bytes.data() + (tensor.data - bytes.data()) + at, &infinity, 2);
  }

  std::vector<std::byte> bytes;
};

struct Packed {
  explicit Packed(const gguf::File& file) : matrices(file.tensors().size()) {
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      const gguf::Tensor& tensor = file.tensors()[i];
      matrices[i].kind = tensor.format->packed;
      matrices[i].inputs = static_cast<int>(tensor.shape[0]);
      matrices[i].outputs = static_cast<int>(tensor.shape[1]);
      jobs.push_back({&tensor, &matrices[i]});
    }
  }
  std::vector<PackedMatrix> matrices;
  std::vector<PackJob> jobs;
};

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

TEST(Packing, ProgressRisesToOne) {
  const Weights weights("F16");
  const auto file = *gguf::File::parse(weights.bytes, "weights.gguf");
  ThreadPool pool(2);
  Packed packed(*file);
  double last = 0;
  ASSERT_TRUE(pack_weights(*file, packed.jobs, pool, [&](double now) {
    EXPECT_GE(now, last);
    last = now;
  }));
  EXPECT_EQ(last, 1.0);
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
