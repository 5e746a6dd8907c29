// The quantised product with VPDPBUSD in 512 bits. With more than 6 rows the compiler keeps some results in
// L1 until the block's end; the multiplier ports, which bound this kernel, do not notice (measured on Zen 4:
// 73% of the VPDPBUSD peak with offsets, 80% without, from 2 rows on; 8 of 11 and of 10 multiplications are
// VPDPBUSD).
#include "kernels/isa_begin.h"

#include "kernels/isa_tables.h"

#if defined(__AVX512VNNI__)
#include "kernels/lanes_512vnni.h"

namespace coppice::core {
namespace {

struct Vector : Lanes512Vnni {
  static constexpr int kManyRows = 6;  // more than 8 rows: all results stay in registers, 2% faster on Zen 4
  static constexpr int kPanelTile = 6;
};

}  // namespace

void matmul_avx512vnni(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  lanes_matmul<Vector>(task, w, group_begin, group_end);
}

}  // namespace coppice::core
#endif
