// The floating-point control word, for tests that play a host process which flushes denormals to zero.
#pragma once

#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace coppice::core {

#if defined(__x86_64__)
#define COPPICE_FLOAT_CONTROL 1
constexpr std::uint64_t kFlushing = 0x8040;  // flush to zero, denormals are zero
// Without the flags of what has happened: all exceptions masked, nearest even, no flushing.
constexpr std::uint64_t kFloatControlMask = 0xffc0, kFloatControlDefault = 0x1f80;

inline std::uint64_t float_control() { return _mm_getcsr(); }
inline void set_float_control(std::uint64_t word) { _mm_setcsr(static_cast<unsigned>(word)); }
#elif defined(__aarch64__)
#define COPPICE_FLOAT_CONTROL 1
constexpr std::uint64_t kFlushing = 1u << 24;
constexpr std::uint64_t kFloatControlMask = ~std::uint64_t{0}, kFloatControlDefault = 0;

inline std::uint64_t float_control() {
  std::uint64_t word;
  __asm__ volatile("mrs %0, fpcr" : "=r"(word));
  return word;
}
inline void set_float_control(std::uint64_t word) {
  __asm__ volatile("msr fpcr, %0" : : "r"(word) : "memory");
}
#endif

}  // namespace coppice::core
