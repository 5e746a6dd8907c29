// Keyed noise one value at a time (numerics 2, 3). The counter is {token / 2 or number's low word, index or
// number's high word, choice, stream | purpose << 24}, the key is the seed. One block serves two neighbouring
// token ids, 64 bits each, of which the upper 52 are used.
#include <bit>
#include <cmath>

#include "kernels/kernels.h"
#include "kernels/philox.h"

namespace coppice::core {
namespace {

// (2 k + 1) * 2^-53 for the upper 52 bits k: never 0, never 1, and every step is exact.
double unit_open(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t k = (std::uint64_t{high} << 32 | low) >> 12;
  return (std::bit_cast<double>(k | 0x3FF0000000000000u) - 1.0) + 0x1p-53;
}

std::array<std::uint32_t, 4> block(const NoiseKey& key, std::uint64_t words, std::uint32_t purpose) {
  return philox4x32({static_cast<std::uint32_t>(words), static_cast<std::uint32_t>(words >> 32), key.choice,
                     (key.stream & 0xFFFFFFu) | purpose << 24},
                    key.seed);
}

double token_uniform(const NoiseKey& key, std::int64_t index, int token) {
  const auto counter = static_cast<std::uint64_t>(index) << 32 | static_cast<std::uint32_t>(token) / 2;
  const auto r = block(key, counter, 0);
  const int at = token % 2 * 2;
  return unit_open(r[at], r[at + 1]);
}

}  // namespace

double gumbel_noise(const NoiseKey& key, std::int64_t index, int token) {
  return -log_exact(-log_exact(token_uniform(key, index, token)));
}

float gumbel_noise_bound(const NoiseKey& key, std::int64_t index, int token) {
  const auto v = std::bit_cast<std::uint64_t>(1.0 - token_uniform(key, index, token));
  const std::int64_t exponent = static_cast<std::int64_t>(v - kOneBits) >> 52;
  const double f = std::bit_cast<double>(v - (static_cast<std::uint64_t>(exponent) << 52)) - 1.0;
  return static_cast<float>(std::fma(static_cast<double>(exponent) + f, kMinusLn2, kBoundSlack));
}

double uniform(const NoiseKey& key, std::uint64_t number, std::uint32_t purpose) {
  const auto r = block(key, number, purpose);
  return unit_open(r[0], r[1]);
}

}  // namespace coppice::core
