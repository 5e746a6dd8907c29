// A vector of 8 or 16 outputs in plain C++, instruction by instruction what lanes_256.h and lanes_512.h are:
// for tests that run the tiles of matmul_lanes.h where the CPU lacks their instructions. Slow.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/matmul_tile.h"
#include "quant/formats.h"

// Never inlined: unrolled tiles of these take a minute to compile, and GCC 12's -fivopts then gets the first
// half's addresses wrong (clang, -O0, -O3 and -fno-ivopts do not).
#define COPPICE_EMULATED static __attribute__((noinline))

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
  COPPICE_EMULATED std::array<T, 4 * lanes / sizeof(T)> as(const Ints& x) {
    return std::bit_cast<std::array<T, 4 * lanes / sizeof(T)>>(x);
  }
  // f(a[i], b[i]) for every element of type T, wrapped to it.
  template <class T, class F>
  COPPICE_EMULATED Ints each(const Ints& a, const Ints& b, F f) {
    auto x = as<T>(a);
    const auto y = as<T>(b);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(f(x[i], y[i]));
    return std::bit_cast<Ints>(x);
  }
  template <class F>
  COPPICE_EMULATED Floats each(const Floats& a, const Floats& b, F f) {
    Floats out;
    for (std::size_t i = 0; i < lanes; ++i) out.v[i] = f(a.v[i], b.v[i]);
    return out;
  }

  COPPICE_EMULATED Ints load(const std::byte* p) {
    Ints x;
    std::memcpy(x.bytes.data(), p, sizeof x);
    return x;
  }
  COPPICE_EMULATED Ints four_codes(const std::int8_t* p) {
    std::int32_t word;
    std::memcpy(&word, p, 4);
    return splat(word);
  }
  COPPICE_EMULATED Ints splat(std::int32_t x) {
    std::array<std::int32_t, lanes> words;
    words.fill(x);
    return std::bit_cast<Ints>(words);
  }
  COPPICE_EMULATED Ints bit_or(const Ints& a, const Ints& b) {
    return each<std::uint8_t>(a, b, [](int x, int y) { return x | y; });
  }
  template <int bits, int to, int from>
  COPPICE_EMULATED Ints field(const Ints& x) {
    return each<std::uint8_t>(x, x, [](int a, int) { return (a >> from & ((1 << bits) - 1)) << to; });
  }
  // VPSHUFB: the low nibble chooses, and the top bit gives zero.
  COPPICE_EMULATED Ints lookup(const std::uint8_t* table, const Ints& codes) {
    return each<std::uint8_t>(codes, codes, [table](int a, int) { return a & 128 ? 0 : table[a & 15]; });
  }
  COPPICE_EMULATED Ints widen(const std::byte* p) {
    std::array<std::int32_t, lanes> words;
    for (std::size_t i = 0; i < lanes; ++i) words[i] = static_cast<std::int8_t>(p[i]);
    return std::bit_cast<Ints>(words);
  }
  COPPICE_EMULATED Ints widen_unsigned(const std::byte* p) {
    std::array<std::int32_t, lanes> words;
    for (std::size_t i = 0; i < lanes; ++i) words[i] = static_cast<std::uint8_t>(p[i]);
    return std::bit_cast<Ints>(words);
  }
  COPPICE_EMULATED Ints low_nibbles(const Ints& x) {
    return each<std::uint8_t>(x, x, [](int a, int) { return a & 15; });
  }
  COPPICE_EMULATED Ints high_nibbles(const Ints& x) {
    return each<std::uint8_t>(x, x, [](int a, int) { return a >> 4; });
  }
  COPPICE_EMULATED Ints add(const Ints& a, const Ints& b) {
    return each<std::uint32_t>(a, b, [](std::uint32_t x, std::uint32_t y) { return x + y; });
  }
  COPPICE_EMULATED Ints sub(const Ints& a, const Ints& b) {
    return each<std::uint32_t>(a, b, [](std::uint32_t x, std::uint32_t y) { return x - y; });
  }
  template <int n>
  COPPICE_EMULATED Ints shift_left(const Ints& a) {
    return each<std::uint32_t>(a, a, [](std::uint32_t x, std::uint32_t) { return x << n; });
  }

  COPPICE_EMULATED Ints dot4(const Ints& sum, const Ints& weights, const Ints& codes) {
    auto out = as<std::uint32_t>(sum);
    const auto w = as<std::uint8_t>(weights);
    const auto q = as<std::int8_t>(codes);
    for (std::size_t i = 0; i < 4 * lanes; ++i) out[i / 4] += static_cast<std::uint32_t>(w[i] * q[i]);
    return std::bit_cast<Ints>(out);
  }
  COPPICE_EMULATED Ints pairs(const Ints& weights, const Ints& codes) {
    std::array<std::int16_t, 2 * lanes> out;
    const auto w = as<std::uint8_t>(weights);
    const auto q = as<std::int8_t>(codes);
    for (std::size_t i = 0; i < 2 * lanes; ++i) {
      const int sum = w[2 * i] * q[2 * i] + w[2 * i + 1] * q[2 * i + 1];
      out[i] = static_cast<std::int16_t>(std::clamp(sum, -32768, 32767));
    }
    return std::bit_cast<Ints>(out);
  }
  COPPICE_EMULATED Ints add_pairs(const Ints& a, const Ints& b) {
    return each<std::uint16_t>(a, b, [](int x, int y) { return x + y; });
  }
  COPPICE_EMULATED Ints widen_pairs(const Ints& a) {
    std::array<std::int32_t, lanes> out;
    const auto x = as<std::int16_t>(a);
    for (std::size_t i = 0; i < lanes; ++i) out[i] = x[2 * i] + x[2 * i + 1];
    return std::bit_cast<Ints>(out);
  }
  COPPICE_EMULATED Signed signed_codes(const Ints& x) {
    return each<std::uint8_t>(x, x, [](int a, int) { return a ^ 128; });
  }
  COPPICE_EMULATED Ints size_of(const Signed& x) {
    return each<std::int8_t>(x, x, [](int a, int) { return a < 0 ? -a : a; });
  }
  COPPICE_EMULATED Ints with_sign_of(const Signed& x, const Ints& codes) {
    return each<std::int8_t>(x, codes, [](int a, int q) { return a < 0 ? -q : q; });
  }

  COPPICE_EMULATED Floats zero() { return splat(0.0f); }
  COPPICE_EMULATED Floats splat(float x) {
    Floats out;
    out.v.fill(x);
    return out;
  }
  COPPICE_EMULATED Floats halves(const std::byte* p) {
    Floats out;
    for (std::size_t i = 0; i < lanes; ++i) {
      std::uint16_t half;
      std::memcpy(&half, p + 2 * i, 2);
      out.v[i] = f16_to_f32(half);
    }
    return out;
  }
  COPPICE_EMULATED Floats powers(const std::byte* p) {
    Floats out;
    for (std::size_t i = 0; i < lanes; ++i) {
      std::uint16_t half;
      std::memcpy(&half, p + 2 * i, 2);
      out.v[i] = bf16_to_f32(half);
    }
    return out;
  }
  COPPICE_EMULATED Floats float_of(const Ints& x) {
    Floats out;
    const auto words = as<std::int32_t>(x);
    for (std::size_t i = 0; i < lanes; ++i) out.v[i] = static_cast<float>(words[i]);
    return out;
  }
  COPPICE_EMULATED Floats bits_of(const Ints& x) { return std::bit_cast<Floats>(x); }
  COPPICE_EMULATED Floats sub(const Floats& a, const Floats& b) {
    return each(a, b, [](float x, float y) { return x - y; });
  }
  COPPICE_EMULATED Floats mul(const Floats& a, const Floats& b) {
    return each(a, b, [](float x, float y) { return x * y; });
  }
  COPPICE_EMULATED Floats fma(const Floats& a, const Floats& b, const Floats& c) {
    Floats out;
    for (std::size_t i = 0; i < lanes; ++i) out.v[i] = std::fma(a.v[i], b.v[i], c.v[i]);
    return out;
  }
  COPPICE_EMULATED void store(float* p, const Floats& x) { std::memcpy(p, x.v.data(), sizeof x); }

  template <int zero>
  COPPICE_EMULATED Ints less(const Ints& x) {
    return each<std::uint8_t>(x, x, [](int a, int) { return a - zero; });
  }
  COPPICE_EMULATED void store(std::int8_t* p, const Ints& x) { std::memcpy(p, x.bytes.data(), sizeof x); }
  COPPICE_EMULATED Ints load(const std::int32_t* p) { return load(reinterpret_cast<const std::byte*>(p)); }
  COPPICE_EMULATED Floats load(const float* p) {
    Floats out;
    std::memcpy(out.v.data(), p, sizeof out);
    return out;
  }
};

}  // namespace
}  // namespace coppice::core
