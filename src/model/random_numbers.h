// Random weights whose every rounding is the same everywhere: a splitmix64 generator, and a bell curve as the
// sum of four uniform numbers (no libm).
#pragma once

#include <cstdint>

namespace coppice::core {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  void skip(std::int64_t draws) { state_ += kStep * static_cast<std::uint64_t>(draws); }
  std::uint64_t bits() {
    std::uint64_t z = (state_ += kStep);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Mean 0, standard deviation about 1: each 16-bit uniform has a variance of 65536^2 / 12.
  float bell() {
    const std::uint64_t b = bits();
    std::int64_t sum = -2 * 65535;
    for (int i = 0; i < 4; ++i) sum += static_cast<std::int64_t>((b >> (16 * i)) & 0xffff);
    return static_cast<float>(sum) * (1.0f / 37837.0f);  // 65536 / sqrt(3)
  }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15u;
  std::uint64_t state_;
};

}  // namespace coppice::core
