#include "base/os.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <vector>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include "base/float_control_testing.h"

namespace coppice::core {
namespace {

std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

class OsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/coppice-os-XXXXXX";
    directory_ = ::mkdtemp(pattern);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory_),
                                                  std::filesystem::directory_iterator()));
  }
  Status write(const std::string& name, std::string_view text) const {
    return write_file(path(name), [&](const Append& append) { return append(as_bytes(text)); });
  }

  std::string directory_;
};

TEST_F(OsTest, WhatIsWrittenIsReadBackAndMapped) {
  const std::string text = std::string(3'000'000, 'x') + "end";  // more than the write buffer
  const Status status = write_file(path("a"), [&](const Append& append) {
    for (std::size_t at = 0; at < text.size(); at += 700'001)
      if (Status s = append(as_bytes(std::string_view(text).substr(at, 700'001))); !s) return s;
    return Status();
  });
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_TRUE(read_file(path("a")).value() == text);
  const auto mapped = MappedFile::open(path("a"));
  ASSERT_TRUE(mapped);
  mapped->will_need();
  ASSERT_EQ(mapped->bytes().size(), text.size());
  EXPECT_EQ(std::memcmp(mapped->bytes().data(), text.data(), text.size()), 0);
}

// Kilobytes of the mapped file `path` that are in this process' memory.
std::size_t resident_kilobytes(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  std::size_t sum = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) inside = line.find(path) != std::string::npos;
    if (inside && line.rfind("Rss:", 0) == 0) sum += std::stoul(line.substr(4));
  }
  return sum;
}

TEST_F(OsTest, ReleasedPagesLeaveMemoryAndAreReadAgainFromTheFile) {
  ASSERT_TRUE(write("big", std::string(4 << 20, 'x')));
  const auto mapped = MappedFile::open(path("big"));
  ASSERT_TRUE(mapped);
  const std::span<const std::byte> bytes = mapped->bytes();
  const auto sum = [&] {
    std::size_t total = 0;
    for (const std::byte byte : bytes) total += std::to_integer<std::size_t>(byte);
    return total;
  };
  const std::size_t before = sum();
  EXPECT_EQ(resident_kilobytes(path("big")), 4096u);
  mapped->release(bytes.subspan(1, 5000));                 // the pages 0 and 1
  EXPECT_LE(resident_kilobytes(path("big")), 4096u - 8u);  // less where the system maps many pages as one
  mapped->release(bytes);
  EXPECT_EQ(resident_kilobytes(path("big")), 0u);
  mapped->release({});
  EXPECT_EQ(sum(), before);
}

TEST_F(OsTest, AFailedWriteLeavesTheOldFileAndNoTemporary) {
  ASSERT_TRUE(write("a", "old"));
  const Status status = write_file(path("a"), [&](const Append& append) {
    if (Status s = append(as_bytes("new")); !s) return s;
    return Status(fail("no more"));
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "no more");
  EXPECT_EQ(read_file(path("a")).value(), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OsTest, WritingThroughALinkKeepsTheLink) {
  ASSERT_TRUE(write("a", "old"));
  ASSERT_EQ(::symlink("a", path("link").c_str()), 0);
  ASSERT_TRUE(write("link", "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(read_file(path("a")).value(), "new");
}

TEST_F(OsTest, ADeviceIsWrittenToAndNotReplaced) {
  ASSERT_TRUE(write_file("/dev/null", [](const Append& append) { return append(as_bytes("gone")); }));
  struct stat info {};
  ASSERT_EQ(::stat("/dev/null", &info), 0);
  EXPECT_TRUE(S_ISCHR(info.st_mode));
}

TEST_F(OsTest, FilesThatCannotBeOpenedSayWhichAndWhy) {
  EXPECT_EQ(MappedFile::open(path("none")).error().message,
            path("none") + ": cannot open: No such file or directory");
  EXPECT_EQ(read_file(path("none")).error().message,
            path("none") + ": cannot open: No such file or directory");
  EXPECT_EQ(MappedFile::open(directory_).error().message, directory_ + ": is a directory, not a file");
  EXPECT_EQ(write("no/such", "").error().message,
            path("no/such") + ": cannot create: No such file or directory");
}

TEST_F(OsTest, AnEmptyFileMapsToNoBytes) {
  ASSERT_TRUE(write("empty", ""));
  const auto mapped = MappedFile::open(path("empty"));
  ASSERT_TRUE(mapped);
  EXPECT_TRUE(mapped->bytes().empty());
}

TEST(Buffer, IsZeroedAlignedAndKeepsItsAddressWhenMoved) {
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{4097}, std::size_t{2} << 20, std::size_t{5'000'001}}) {
    auto made = Buffer::make(bytes);
    ASSERT_TRUE(made);
    const std::byte* address = made->data();
    const std::size_t alignment = bytes >= (2u << 20) ? 2u << 20 : 64u;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % alignment, 0u);
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(made->data()[i], std::byte{0});
    made->data()[bytes - 1] = std::byte{7};
    const Buffer moved = std::move(*made);
    EXPECT_EQ(moved.data(), address);
    EXPECT_EQ(moved.size(), bytes);
    EXPECT_EQ(made->data(), nullptr);
  }
}

TEST(Buffer, APartIsTheKeepersMemoryAndFreesNothing) {
  Buffer keeper = *Buffer::make(256);
  {
    Buffer part = Buffer::part_of(std::span(keeper.data(), 256).subspan(64, 128));
    EXPECT_EQ(part.data(), keeper.data() + 64);
    EXPECT_EQ(part.size(), 128u);
    Buffer moved = std::move(part);
    moved.data()[0] = std::byte{7};
    Buffer own = *Buffer::make(64);
    std::swap(own, moved);
  }
  EXPECT_EQ(keeper.data()[64], std::byte{7});
}

TEST(Buffer, MoreThanTheMachineHasIsRefusedWithTheSize) {
  const auto made = Buffer::make(std::size_t{1} << 60);
  ASSERT_FALSE(made);
  EXPECT_TRUE(made.error().message.starts_with("cannot get 1152921504606846976 bytes of memory"))
      << made.error().message;
  EXPECT_FALSE(Buffer::make(~std::size_t{0}));
}

TEST(Machine, HasCoresMemoryAndAClockThatMovesForward) {
  EXPECT_GE(usable_cores(), 1);
  EXPECT_GT(memory_total(), 0u);
  EXPECT_LE(memory_available(), memory_total());
  const double before = seconds();
  EXPECT_GE(seconds(), before);
}

TEST(Machine, HardwareThreadsOfOneCoreCountOnce) {
  const std::string folder = testing::TempDir() + "coppice_cpus";
  for (const auto& [cpu, threads] :
       std::map<int, std::string>{{0, "0,4"}, {1, "1,5"}, {4, "0,4"}, {5, "1,5"}}) {
    const std::string topology = folder + "/cpu" + std::to_string(cpu) + "/topology";
    std::filesystem::create_directories(topology);
    std::ofstream(topology + "/thread_siblings_list") << threads << "\n";
  }
  EXPECT_EQ(separate_cores(std::vector{0, 1, 4, 5}, folder), 2);
  EXPECT_EQ(separate_cores(std::vector{0, 4}, folder), 1);
  EXPECT_EQ(separate_cores(std::vector{1, 7}, folder), 2);  // nothing is known of 7
  EXPECT_EQ(separate_cores(std::vector<int>{}, folder), 0);
  std::filesystem::remove_all(folder);
}

TEST(Machine, TheCacheDirectoryFollowsTheEnvironment) {
  const char* old = std::getenv("COPPICE_CACHE");
  const std::string saved = old == nullptr ? "" : old;
  ::setenv("COPPICE_CACHE", "/somewhere", 1);
  EXPECT_EQ(cache_directory(), "/somewhere");
  if (old == nullptr) {
    ::unsetenv("COPPICE_CACHE");
  } else {
    ::setenv("COPPICE_CACHE", saved.c_str(), 1);
  }
}

#if defined(__x86_64__)
TEST(CpuFeatures, AgreeWithTheCompilersOwnDetection) {
  const CpuFeatures& cpu = cpu_features();
  EXPECT_FALSE(cpu.name.empty());
  EXPECT_EQ(cpu.avx2, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(cpu.fma, __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(cpu.avx512f, __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(cpu.avx512bw, __builtin_cpu_supports("avx512bw") != 0);
  EXPECT_EQ(cpu.avx512dq, __builtin_cpu_supports("avx512dq") != 0);
  EXPECT_EQ(cpu.avx512vl, __builtin_cpu_supports("avx512vl") != 0);
  EXPECT_EQ(cpu.avx512_vnni, __builtin_cpu_supports("avx512vnni") != 0);
}
#elif defined(__aarch64__) && defined(__linux__)
TEST(CpuFeatures, AgreeWithTheProcessorsIdRegister) {
  const CpuFeatures& cpu = cpu_features();
  EXPECT_FALSE(cpu.name.empty());
  EXPECT_TRUE(cpu.neon && cpu.fma);
  if ((::getauxval(AT_HWCAP) & (1ul << 11)) == 0) GTEST_SKIP() << "ID registers: not on this machine";
  std::uint64_t isar0 = 0;
  __asm__("mrs %0, ID_AA64ISAR0_EL1" : "=r"(isar0));  // Linux answers for the processor
  EXPECT_EQ(cpu.dotprod, (isar0 >> 44 & 15) != 0);
}
#endif

#ifdef COPPICE_FLOAT_CONTROL
TEST(DefaultFloatScope, ComputesWithDenormalsInsideAndRestoresFlushingOutside) {
  const std::uint64_t saved = float_control();
  set_float_control(saved | kFlushing);
  volatile float tiny = 1e-38f;
  volatile float outside = tiny * 0.25f, inside = 0;
  {
    DefaultFloatScope scope;
    inside = tiny * 0.25f;
  }
  const std::uint64_t after = float_control();
  set_float_control(saved);
  EXPECT_EQ(after & kFlushing, kFlushing);
  EXPECT_EQ(outside, 0.0f);
  EXPECT_GT(inside, 0.0f);
}
#endif

}  // namespace
}  // namespace coppice::core
