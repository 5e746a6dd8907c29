// A vector of 8 or 16 outputs in plain C++, instruction by instruction what lanes_256.h and lanes_512.h are:
// for tests that run the tiles of matmul_lanes.h where the CPU lacks their instructions. Slow.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 miscompiles the first half of 16 emulated lanes (right under clang, -O0, -O3, UBSan, -fno-ivopts).
#pragma GCC optimize("no-ivopts")
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/matmul_tile.h"
#include "quant/formats.h"

namespace coppice::core {
namespace {

template <int lanes>
struct LanesEmulated {
  static constexpr int kLanes = lanes;
  struct Ints {
    std::array<std::uint8_t, 4 * lanes> bytes;
  };
  struct Floats {
    std::array<float, lanes> v;
  };
  using Signed = Ints;

  template <class T>
  static std::array<T, 4 * lanes / sizeof(T)> as(const Ints& x) {
    return std::bit_cast<std::array<T, 4 * lanes / sizeof(T)>>(x);
  }
  // f(a[i], b[i]) for every element of type T, wrapped to it.
  template <class T, class F>
  static Ints each(const Ints& a, const Ints& b, F f) {
    auto x = as<T>(a);
    const auto y = as<T>(b);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(f(x[i], y[i]));
    return std::bit_cast<Ints>(x);
  }
  template <class F>
  static Floats each(const Floats& a, const Floats& b, F f) {
    Floats out;
    for (std::size_t i = 0; i < lanes; ++i) out.v[i] = f(a.v[i], b.v[i]);
    return out;
  }

  static Ints load(const std::byte* p) {
    Ints x;
    std::memcpy(x.bytes.data(), p, sizeof x);
    return x;
  }
  static Ints four_codes(const std::int8_t* p) {
    std::int32_t word;
    std::memcpy(&word, p, 4);
    return splat(word);
  }
  static Ints splat(std::int32_t x) {
    std::array<std::int32_t, lanes> words;
    words.fill(x);
    return std::bit_cast<Ints>(words);
  }
  static Ints low_nibbles(const Ints& x) {
    return each<std::uint8_t>(x, x, [](int a, int) { return a & 15; });
  }
  static Ints high_nibbles(const Ints& x) {
    return each<std::uint8_t>(x, x, [](int a, int) { return a >> 4; });
  }
  static Ints add(const Ints& a, const Ints& b) {
    return each<std::uint32_t>(a, b, [](std::uint32_t x, std::uint32_t y) { return x + y; });
  }
  static Ints sub(const Ints& a, const Ints& b) {
    return each<std::uint32_t>(a, b, [](std::uint32_t x, std::uint32_t y) { return x - y; });
  }
  template <int n>
  static Ints shift_left(const Ints& a) {
    return each<std::uint32_t>(a, a, [](std::uint32_t x, std::uint32_t) { return x << n; });
  }

  static Ints dot4(const Ints& sum, const Ints& weights, const Ints& codes) {
    auto out = as<std::uint32_t>(sum);
    const auto w = as<std::uint8_t>(weights);
    const auto q = as<std::int8_t>(codes);
    for (std::size_t i = 0; i < 4 * lanes; ++i) out[i / 4] += static_cast<std::uint32_t>(w[i] * q[i]);
    return std::bit_cast<Ints>(out);
  }
  static Ints pairs(const Ints& weights, const Ints& codes) {
    std::array<std::int16_t, 2 * lanes> out;
    const auto w = as<std::uint8_t>(weights);
    const auto q = as<std::int8_t>(codes);
    for (std::size_t i = 0; i < 2 * lanes; ++i) {
      const int sum = w[2 * i] * q[2 * i] + w[2 * i + 1] * q[2 * i + 1];
      out[i] = static_cast<std::int16_t>(std::clamp(sum, -32768, 32767));
    }
    return std::bit_cast<Ints>(out);
  }
  static Ints add_pairs(const Ints& a, const Ints& b) {
    return each<std::uint16_t>(a, b, [](int x, int y) { return x + y; });
  }
  static Ints widen_pairs(const Ints& a) {
    std::array<std::int32_t, lanes> out;
    const auto x = as<std::int16_t>(a);
    for (std::size_t i = 0; i < lanes; ++i) out[i] = x[2 * i] + x[2 * i + 1];
    return std::bit_cast<Ints>(out);
  }
  static Signed signed_codes(const Ints& x) {
    return each<std::uint8_t>(x, x, [](int a, int) { return a ^ 128; });
  }
  static Ints size_of(const Signed& x) {
    return each<std::int8_t>(x, x, [](int a, int) { return a < 0 ? -a : a; });
  }
  static Ints with_sign_of(const Signed& x, const Ints& codes) {
    return each<std::int8_t>(x, codes, [](int a, int q) { return a < 0 ? -q : q; });
  }

  static Floats zero() { return splat(0.0f); }
  static Floats splat(float x) {
    Floats out;
    out.v.fill(x);
    return out;
  }
  static Floats halves(const std::byte* p) {
    Floats out;
    for (std::size_t i = 0; i < lanes; ++i) {
      std::uint16_t half;
      std::memcpy(&half, p + 2 * i, 2);
      out.v[i] = f16_to_f32(half);
    }
    return out;
  }
  static Floats float_of(const Ints& x) {
    Floats out;
    const auto words = as<std::int32_t>(x);
    for (std::size_t i = 0; i < lanes; ++i) out.v[i] = static_cast<float>(words[i]);
    return out;
  }
  static Floats bits_of(const Ints& x) { return std::bit_cast<Floats>(x); }
  static Floats sub(const Floats& a, const Floats& b) {
    return each(a, b, [](float x, float y) { return x - y; });
  }
  static Floats mul(const Floats& a, const Floats& b) {
    return each(a, b, [](float x, float y) { return x * y; });
  }
  static Floats fma(const Floats& a, const Floats& b, const Floats& c) {
    Floats out;
    for (std::size_t i = 0; i < lanes; ++i) out.v[i] = std::fma(a.v[i], b.v[i], c.v[i]);
    return out;
  }
  static void store(float* p, const Floats& x) { std::memcpy(p, x.v.data(), sizeof x); }
};

}  // namespace
}  // namespace coppice::core
