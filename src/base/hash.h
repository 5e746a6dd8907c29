// A hash of many bytes at the speed of memory, to notice what changed by accident; it keeps no secret and
// stops no forger. The same on every machine (little endian, as all of Coppice).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace coppice::core {

struct Hash128 {
  std::uint64_t low = 0, high = 0;
  bool operator==(const Hash128&) const = default;
};

Hash128 hash_of(std::span<const std::byte> bytes);
std::string to_hex(const Hash128& hash);  // 32 digits, the high half first

}  // namespace coppice::core
