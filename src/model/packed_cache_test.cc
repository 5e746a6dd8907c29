#include "model/packed_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "model/packing_testing.h"
#include "model/testing.h"

namespace coppice::core {
namespace {

namespace fs = std::filesystem;
using testing::expect_ok;
using testing::Packed;
using testing::Weights;

#define EXPECT_SAYS(text, what) EXPECT_NE((text).find(what), std::string::npos) << text

class PackedCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/coppice-pack-XXXXXX";
    folder_ = std::string(::mkdtemp(pattern)) + "/packed";
  }
  void TearDown() override { fs::remove_all(fs::path(folder_).parent_path()); }

  // Loads the weights by way of the cache and compares them with those packed without it.
  PackedCache load(const Weights& weights) {
    const auto file = *gguf::File::parse(weights.bytes, "weights.gguf");
    PackedCache cache;
    cache.folder = folder_;
    Packed packed(*file);
    const auto got = cached_weights(*file, packed.jobs, pool_, {}, cache);
    EXPECT_TRUE(got) << got.error().message;
    Packed right(*file);
    const auto kept = pack_weights(*file, right.jobs, pool_, {});
    for (std::size_t i = 0; i < packed.matrices.size(); ++i) {
      EXPECT_EQ(packed.matrices[i].data.size(), right.matrices[i].data.size());
      EXPECT_EQ(std::memcmp(packed.matrices[i].data.data(), right.matrices[i].data.data(),
                            right.matrices[i].bytes()),
                0);
    }
    return cache;
  }

  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  ThreadPool pool_{2};
  std::string folder_;
};

void overwrite(const std::string& path, std::size_t at, std::uint8_t value) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(value));
}

TEST_F(PackedCacheTest, TheSecondLoadMapsWhatTheFirstWrote) {
  for (const char* format : {"Q4_1", "Q4_0", "Q8_0", "F16", "F32"}) {
    const Weights weights(format);
    const PackedCache first = load(weights);
    EXPECT_FALSE(first.used);
    EXPECT_TRUE(first.written);
    EXPECT_EQ(first.problem, "");
    const PackedCache second = load(weights);
    EXPECT_TRUE(second.used);
    EXPECT_FALSE(second.written);
    EXPECT_EQ(second.problem, "");
    EXPECT_EQ(second.path, first.path);
  }
  EXPECT_EQ(files(), 5u);
}

TEST_F(PackedCacheTest, OtherWeightsHaveAnotherKeyAndAnyNumberOfThreadsTheSame) {
  Weights weights("Q4_1");
  const auto key = [&](int threads) {
    const auto file = *gguf::File::parse(weights.bytes, "weights.gguf");
    Packed packed(*file);
    ThreadPool pool(threads);
    return packed_key(*file, packed.jobs, pool);
  };
  const Hash128 before = key(1);
  EXPECT_EQ(key(3), before);
  weights.bytes[weights.bytes.size() / 2] ^= std::byte{1};
  EXPECT_NE(key(1), before);
}

TEST_F(PackedCacheTest, AFileThatIsNotWhatWasWrittenIsRefusedWithASentenceAndMadeAnew) {
  const Weights weights("Q4_1");
  const std::string path = load(weights).path;
  const std::size_t size = fs::file_size(path);
  const auto refused_after = [&](const std::function<void()>& change, const char* what) {
    change();
    const PackedCache cache = load(weights);
    EXPECT_FALSE(cache.used) << what;
    EXPECT_TRUE(cache.written) << what;
    EXPECT_SAYS(cache.problem, path);
    EXPECT_SAYS(cache.problem, what);
    EXPECT_SAYS(cache.problem, "packed anew");
    EXPECT_TRUE(load(weights).used) << what;
  };
  refused_after([&] { fs::resize_file(path, size - 1); }, "cut off or damaged");
  refused_after([&] { fs::resize_file(path, size + 1); }, "cut off or damaged");
  refused_after([&] { fs::resize_file(path, 100); }, "does not begin with COPPACK");
  refused_after([&] { fs::resize_file(path, 0); }, "does not begin with COPPACK");
  refused_after([&] { overwrite(path, 0, 'X'); }, "does not begin with COPPACK");
  refused_after([&] { overwrite(path, 8, 99); }, "is of version 99");
  refused_after(
      [&] {
        overwrite(path, 16, 0);
        overwrite(path, 17, 0);
        overwrite(path, 18, 0);
      },
      "the weights of another model");
  refused_after([&] { overwrite(path, 33, 0xee); }, "cut off or damaged");
  refused_after(
      [&] {
        overwrite(path, 41, 0xee);
        overwrite(path, 42, 0xee);
      },
      "is damaged");
  refused_after([&] { overwrite(path, 4000, 1); }, "is damaged");
  refused_after(
      [&] {
        for (std::size_t i = 0; i < 3; ++i)
          overwrite(path, size - 1000 + i, static_cast<std::uint8_t>(17 * i));
      },
      "is damaged");
}

TEST_F(PackedCacheTest, ANameThatSaysAnotherModelIsRefused) {
  const Weights one("Q4_1"), other("Q8_0");
  const std::string first = load(one).path, second = load(other).path;
  fs::copy_file(first, second, fs::copy_options::overwrite_existing);
  EXPECT_SAYS(load(other).problem, "another model");
}

TEST_F(PackedCacheTest, AFolderThatCannotBeWrittenIsSaidAndTheWeightsArePacked) {
  const Weights weights("Q4_0");
  std::ofstream(folder_) << "a file where the folder would be";
  const PackedCache cache = load(weights);
  EXPECT_FALSE(cache.used || cache.written);
  EXPECT_SAYS(cache.problem, folder_);
  EXPECT_SAYS(cache.problem, "packed at every load");
}

TEST_F(PackedCacheTest, APipeOrADeviceUnderTheNameIsSaidAndNeverWrittenTo) {
  const Weights weights("Q4_0");
  const std::string path = load(weights).path;
  const auto left_alone = [&](const char* what) {
    ::alarm(20);  // a pipe nobody reads from would keep a writer waiting
    const PackedCache cache = load(weights);
    ::alarm(0);
    EXPECT_FALSE(cache.used || cache.written) << what;
    EXPECT_EQ(cache.problem, path + ": is not a regular file; the weights are packed at every load") << what;
    EXPECT_TRUE(fs::exists(path)) << what;
  };
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  left_alone("a pipe");
  fs::remove(path);
  fs::create_symlink("/dev/null", path);
  left_alone("a device");
  fs::remove(path);
  fs::create_directory(path);
  left_alone("a folder");
}

TEST_F(PackedCacheTest, WeightsThatAreRefusedLeaveNoFile) {
  Weights weights("Q8_0");
  weights.spoil("large", 7);
  const auto file = *gguf::File::parse(weights.bytes, "weights.gguf");
  PackedCache cache;
  cache.folder = folder_;
  Packed packed(*file);
  EXPECT_SAYS(testing::message(cached_weights(*file, packed.jobs, pool_, {}, cache)), "not finite in row 7");
  EXPECT_FALSE(fs::exists(cache.path));
}

TEST_F(PackedCacheTest, ProcessesThatWriteAtOnceAllLeaveAWholeFile) {
  const Weights weights("Q4_1");
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto file = *gguf::File::parse(weights.bytes, "weights.gguf");
      ThreadPool pool(1);
      PackedCache cache;
      cache.folder = folder_;
      Packed packed(*file);
      const auto got = cached_weights(*file, packed.jobs, pool, {}, cache);
      ::_exit(got && cache.problem.empty() ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files(), 1u) << "nothing half-written is left";
  EXPECT_TRUE(load(weights).used);
}

TEST_F(PackedCacheTest, AModelOutOfTheCacheGivesTheSameLogits) {
  const auto bytes = *random_model({});
  const auto file = *gguf::File::parse(bytes, "model.gguf");
  const auto tokens = testing::some_tokens(9, 320);
  std::vector<std::vector<std::vector<float>>> logits;
  for (int round = 0; round < 3; ++round) {
    PackedCache cache;
    cache.folder = folder_;
    const auto model = Model::load(file, pool_, {}, round == 0 ? nullptr : &cache);
    ASSERT_TRUE(model);
    EXPECT_EQ(cache.used, round == 2);
    auto context = testing::make_context(*model, pool_);
    const int sequence = *context->cache().open();
    logits.push_back(testing::run_chain(*context, sequence, tokens));
  }
  EXPECT_EQ(logits[1], logits[0]);
  EXPECT_EQ(logits[2], logits[0]);
}

}  // namespace
}  // namespace coppice::core
