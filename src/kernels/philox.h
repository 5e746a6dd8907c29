// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011), one block
// at a time. The tables carry a vectorised copy; integers are exact everywhere.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/exact_math.h"

namespace coppice::core {

inline std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::uint64_t key) {
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t a = std::uint64_t{kPhiloxM0} * counter[0];
    const std::uint64_t b = std::uint64_t{kPhiloxM1} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ k0, static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ k1, static_cast<std::uint32_t>(a)};
    k0 += kPhiloxW0;
    k1 += kPhiloxW1;
  }
  return counter;
}

}  // namespace coppice::core
