// Sixteen outputs in a 512-bit register with VPDPBUSD, for matmul_lanes.h. Included by ISA files only, which
// have AVX-512 VNNI.
#pragma once

#include "kernels/lanes_512.h"
#include "kernels/matmul_panels.h"

namespace coppice::core {
namespace {

struct Lanes512Vnni : Lanes512 {
  static constexpr Product kProduct = Product::dot4;
  static constexpr int kRows = 8;                   // of a pass that one tile serves
  static constexpr std::size_t kAhead = 24 * 1024;  // bytes, measured: docs/numerics.md 21
  static COPPICE_INLINE Ints dot4(Ints sum, Ints weights, Ints codes) {
    return _mm512_dpbusd_epi32(sum, weights, codes);
  }
};

}  // namespace
}  // namespace coppice::core
