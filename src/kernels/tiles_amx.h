// AMX's tile registers, for matmul_tiles.h. Included by ISA files only, which have AMX-TILE and AMX-INT8.
//
// Configuring happens where a product begins and releasing where it ends: tile registers and their
// configuration belong to no function across a call (System V ABI: neither is preserved), so a host's own AMX
// code is not disturbed, and a thread between two products has no tile state that the system would save. The
// compiler's intrinsics are not used: GCC 12's loads do not tell it that they read memory, and its
// configuring that it reads 64 bytes, so that the stores before them may vanish.
#pragma once

#include <cstddef>

#include "kernels/isa_begin.h"
#include "kernels/tile_shapes.h"

namespace coppice::core {
namespace {

struct Tiles {
  void configure(const TileShapes& shapes) { __asm__ volatile("ldtilecfg %0" : : "m"(shapes)); }
  void release() { __asm__ volatile("tilerelease"); }
  template <int tile>
  COPPICE_INLINE void zero() {
    __asm__ volatile("tilezero %%tmm%c0" : : "i"(tile));
  }
  template <int tile>
  COPPICE_INLINE void load(const void* from, std::size_t stride) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(tile) : "memory");
  }
  template <int tile>
  COPPICE_INLINE void store(void* to, std::size_t stride) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(tile) : "memory");
  }
  // TDPBSSD: sums[m][n] += sum over k of a[m][k] * b[k / 4][4 * n + k % 4], all int8.
  template <int sums, int a, int b>
  COPPICE_INLINE void dot() {
    __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(a), "i"(b));
  }
};

}  // namespace
}  // namespace coppice::core
