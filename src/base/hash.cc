// Eight chains of 64 bits, each over every eighth word: acc = rotate(acc ^ word) * odd number. For a given
// word that is a bijection of acc, so one changed word always changes its chain; eight chains hide the
// multiplier's latency. What the end mixes into two halves has the length in it, so that zeros at the end
// count.
#include "base/hash.h"

#include <fmt/format.h>

#include <cstring>

namespace coppice::core {
namespace {

constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15ull;  // 2^64 / golden ratio, odd

// The finaliser of MurmurHash3 (Appleby, public domain): every input bit reaches every output bit.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCDull;
  x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53ull;
  return x ^ (x >> 33);
}

// The chains shift by different amounts, or GCC makes vectors of them, whose CPUs have no product of 64 bits.
struct Chains {
  std::uint64_t a = mix(1), b = mix(2), c = mix(3), d = mix(4), e = mix(5), f = mix(6), g = mix(7),
                h = mix(8);

  template <int kShift>
  static void add(std::uint64_t& chain, const std::byte* at) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    const std::uint64_t x = (chain ^ word) * kOdd;
    chain = x ^ (x >> kShift);
  }
  void add_line(const std::byte* line) {
    add<29>(a, line);
    add<31>(b, line + 8);
    add<27>(c, line + 16);
    add<32>(d, line + 24);
    add<30>(e, line + 32);
    add<34>(f, line + 40);
    add<28>(g, line + 48);
    add<33>(h, line + 56);
  }
};

}  // namespace

Hash128 hash_of(std::span<const std::byte> bytes) {
  Chains chains;
  std::size_t at = 0;
  for (; at + 64 <= bytes.size(); at += 64) chains.add_line(bytes.data() + at);
  if (at < bytes.size()) {
    std::byte line[64] = {};
    std::memcpy(line, bytes.data() + at, bytes.size() - at);
    chains.add_line(line);
  }
  Hash128 hash{mix(bytes.size()), mix(~std::uint64_t{bytes.size()})};
  for (const std::uint64_t lane :
       {chains.a, chains.b, chains.c, chains.d, chains.e, chains.f, chains.g, chains.h}) {
    hash.low = mix(hash.low ^ lane) * kOdd;
    hash.high = mix(hash.high + lane);
  }
  return hash;
}

std::string to_hex(const Hash128& hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

}  // namespace coppice::core
