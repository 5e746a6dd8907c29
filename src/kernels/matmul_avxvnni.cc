// The quantised product with VPDPBUSD in 256 bits: what AVX2 became without AVX-512.
#include "kernels/isa_begin.h"

#include "kernels/isa_tables.h"

#if defined(__AVXVNNI__)
#include "kernels/lanes_256.h"
#include "kernels/matmul_panels.h"

namespace coppice::core {
namespace {

struct Vector : Lanes256 {
  static constexpr Product kProduct = Product::dot4;
  static constexpr int kRows = 6;
  static constexpr std::size_t kAhead = 16 * 1024;  // bytes
  static constexpr int kPanelTile = 6;
  static COPPICE_INLINE Ints dot4(Ints sum, Ints weights, Ints codes) {
    return _mm256_dpbusd_avx_epi32(sum, weights, codes);
  }
};

}  // namespace

void matmul_avxvnni(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  lanes_matmul<Vector>(task, w, group_begin, group_end);
}

}  // namespace coppice::core
#endif
