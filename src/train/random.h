// Random numbers for training: a function of (seed, step), so that a run that stopped goes on as if it had
// not.
#pragma once

#include <cstdint>

namespace coppice::core::train {

class Random {
 public:
  Random(std::uint64_t seed, std::uint64_t step) : state_(mix(seed) ^ mix(step + 0x9e3779b97f4a7c15ull)) {}

  std::uint64_t next() {  // SplitMix64
    state_ += 0x9e3779b97f4a7c15ull;
    return mix(state_);
  }
  // Below n; n > 0. The bias of n / 2^64 is nobody's business here.
  std::uint64_t below(std::uint64_t n) { return next() % n; }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)

 private:
  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  }
  std::uint64_t state_;
};

}  // namespace coppice::core::train
