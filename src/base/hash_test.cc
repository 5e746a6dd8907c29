#include "base/hash.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

namespace coppice::core {
namespace {

std::vector<std::byte> numbered(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

TEST(Hash, IsTheSameOnEveryMachine) {
  const Hash128 some = hash_of(numbered(1000));
  EXPECT_EQ(some.low, 0x252b7b2730e28d24u);
  EXPECT_EQ(some.high, 0x6f8f1cc620f09585u);
}

TEST(Hash, EveryBitAndTheLengthCount) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  std::size_t expected = 0;
  std::vector<std::byte> bytes = numbered(200);
  const auto add = [&](std::span<const std::byte> part) {
    const Hash128 hash = hash_of(part);
    seen.insert({hash.low, hash.high});
    ++expected;
  };
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      bytes[i] ^= static_cast<std::byte>(1 << bit);
      add(bytes);
      bytes[i] ^= static_cast<std::byte>(1 << bit);
    }
  const std::vector<std::byte> zeros(200);
  for (std::size_t length = 0; length <= zeros.size(); ++length) add(std::span(zeros).first(length));
  EXPECT_EQ(seen.size(), expected);
}

TEST(Hash, TwoChangesDoNotCancel) {
  std::vector<std::byte> bytes = numbered(256);
  const Hash128 before = hash_of(bytes);
  for (std::size_t one = 0; one < 64; ++one)
    for (std::size_t other = 64; other < 128; ++other) {  // bits of the first and of the ninth word
      bytes[one / 8] ^= static_cast<std::byte>(1 << one % 8);
      bytes[56 + other / 8] ^= static_cast<std::byte>(1 << other % 8);
      EXPECT_NE(hash_of(bytes), before) << one << " and " << other;
      bytes[one / 8] ^= static_cast<std::byte>(1 << one % 8);
      bytes[56 + other / 8] ^= static_cast<std::byte>(1 << other % 8);
    }
}

TEST(Hash, WordsThatChangePlacesCount) {
  auto bytes = numbered(4096);
  const Hash128 before = hash_of(bytes);
  for (const std::size_t distance : {std::size_t{8}, std::size_t{64}, std::size_t{2048}}) {
    for (std::size_t i = 0; i < 8; ++i) std::swap(bytes[i], bytes[i + distance]);
    EXPECT_NE(hash_of(bytes), before) << distance;
    for (std::size_t i = 0; i < 8; ++i) std::swap(bytes[i], bytes[i + distance]);
  }
  EXPECT_EQ(hash_of(bytes), before);
}

}  // namespace
}  // namespace coppice::core
