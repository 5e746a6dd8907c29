// The quantised product with VPDPBUSD in 512 bits. With more than 6 rows the compiler keeps some results in
// L1 until the block's end; the multiplier ports, which bound this kernel, do not notice (measured on Zen 4:
// 73% of the VPDPBUSD peak with offsets, 80% without, from 2 rows on; 8 of 11 and of 10 multiplications are
// VPDPBUSD).
#include "kernels/isa_begin.h"

#include "kernels/isa_tables.h"

#if defined(__AVX512VNNI__)
#include "kernels/lanes_512.h"
#include "kernels/matmul_lanes.h"

namespace coppice::core {
namespace {

struct Vector : Lanes512 {
  static constexpr Product kProduct = Product::dot4;
  static constexpr int kRows = 8;                   // of a pass that one tile serves
  static constexpr int kManyRows = 6;               // of others: all results stay in registers, 2% faster
  static constexpr std::size_t kAhead = 24 * 1024;  // bytes, measured: docs/numerics.md 21
  static COPPICE_INLINE Ints dot4(Ints sum, Ints weights, Ints codes) {
    return _mm512_dpbusd_epi32(sum, weights, codes);
  }
};

}  // namespace

void matmul_avx512vnni(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  lanes_matmul<Vector>(task, w, group_begin, group_end);
}

}  // namespace coppice::core
#endif
