// Eight outputs in a 256-bit register, for matmul_lanes.h. Included by ISA files only, which have AVX2, FMA
// and F16C.
#pragma once

#include <immintrin.h>

#include "kernels/isa_begin.h"

namespace coppice::core {
namespace {

struct Lanes256 {
  static constexpr int kLanes = 8;
  using Ints = __m256i;
  using Floats = __m256;
  using Signed = __m256i;

  static COPPICE_INLINE Ints load(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static COPPICE_INLINE Ints four_codes(const std::int8_t* p) {
    std::int32_t word;
    __builtin_memcpy(&word, p, 4);
    return _mm256_set1_epi32(word);
  }
  static COPPICE_INLINE Ints splat(std::int32_t x) { return _mm256_set1_epi32(x); }
  static COPPICE_INLINE Ints bit_or(Ints a, Ints b) { return _mm256_or_si256(a, b); }
  // The field of `bits` bits at bit `from` of every byte, moved to bit `to`.
  template <int bits, int to, int from>
  static COPPICE_INLINE Ints field(Ints x) {
    if constexpr (from > to) x = _mm256_srli_epi16(x, from - to);
    if constexpr (to > from) x = _mm256_slli_epi16(x, to - from);
    return _mm256_and_si256(x, _mm256_set1_epi8(static_cast<char>(((1 << bits) - 1) << to)));
  }
  static COPPICE_INLINE Ints lookup(const std::uint8_t* table, Ints codes) {
    const __m128i row = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(row), codes);
  }
  // A byte an output.
  static COPPICE_INLINE Ints widen(const std::byte* p) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static COPPICE_INLINE Ints widen_unsigned(const std::byte* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static COPPICE_INLINE Ints low_nibbles(Ints x) { return _mm256_and_si256(x, _mm256_set1_epi8(15)); }
  static COPPICE_INLINE Ints high_nibbles(Ints x) { return low_nibbles(_mm256_srli_epi16(x, 4)); }
  // Sums stay chains: GCC would regroup them into trees, whose leaves do not fit in the registers.
  static COPPICE_INLINE Ints kept(Ints x) {
    __asm__("" : "+x"(x));
    return x;
  }
  static COPPICE_INLINE Ints add(Ints a, Ints b) { return kept(_mm256_add_epi32(a, b)); }
  static COPPICE_INLINE Ints sub(Ints a, Ints b) { return _mm256_sub_epi32(a, b); }
  template <int n>
  static COPPICE_INLINE Ints shift_left(Ints x) {
    return _mm256_slli_epi32(x, n);
  }

  // VPMADDUBSW: unsigned by signed bytes, neighbours added into int16, saturating.
  static COPPICE_INLINE Ints pairs(Ints weights, Ints codes) { return _mm256_maddubs_epi16(weights, codes); }
  static COPPICE_INLINE Ints add_pairs(Ints a, Ints b) { return kept(_mm256_add_epi16(a, b)); }
  static COPPICE_INLINE Ints widen_pairs(Ints x) { return _mm256_madd_epi16(x, _mm256_set1_epi16(1)); }
  // 8-bit weights as sign and size: the sign moves to the activation.
  static COPPICE_INLINE Signed signed_codes(Ints x) { return _mm256_xor_si256(x, _mm256_set1_epi8(-128)); }
  static COPPICE_INLINE Ints size_of(Signed x) { return _mm256_abs_epi8(x); }
  static COPPICE_INLINE Ints with_sign_of(Signed x, Ints codes) { return _mm256_sign_epi8(codes, x); }

  static COPPICE_INLINE Floats zero() { return _mm256_setzero_ps(); }
  static COPPICE_INLINE Floats splat(float x) { return _mm256_set1_ps(x); }
  static COPPICE_INLINE Floats halves(const std::byte* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  // bf16
  static COPPICE_INLINE Floats powers(const std::byte* p) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
  }
  static COPPICE_INLINE Floats float_of(Ints x) { return _mm256_cvtepi32_ps(x); }
  static COPPICE_INLINE Floats bits_of(Ints x) { return _mm256_castsi256_ps(x); }
  static COPPICE_INLINE Floats sub(Floats a, Floats b) { return _mm256_sub_ps(a, b); }
  static COPPICE_INLINE Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static COPPICE_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  static COPPICE_INLINE void store(float* p, Floats x) { _mm256_storeu_ps(p, x); }

  // For matmul_panels.h.
  static COPPICE_INLINE void store(std::int8_t* p, Ints x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x);
  }
  static COPPICE_INLINE Floats load(const float* p) { return _mm256_loadu_ps(p); }
};

}  // namespace
}  // namespace coppice::core
