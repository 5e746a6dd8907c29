// AVX2, FMA and F16C (Haswell, Zen and later).
#include "kernels/isa_begin.h"

#include "kernels/exact_math.h"
#include "kernels/isa_tables.h"
#include "kernels/kv_block.h"

#if defined(__AVX2__)
#include <immintrin.h>

namespace coppice::core {
namespace {

// Each builds on those before it.
// clang-format off
#include "kernels/vectors_avx2.inc"
#include "kernels/simd_elementwise.inc"
#include "kernels/simd_attention.inc"
#include "kernels/simd_store_kv.inc"
#include "kernels/simd_float_matmul.inc"
#include "kernels/simd_noise.inc"
// clang-format on

void matmul(const MatmulTask& task, int group_begin, int group_end) {
  const WeightsView w = view_of(*task.weights);
  w.kind >= PackedKind::q4 ? matmul_avx2(task, w, group_begin, group_end)
                           : float_matmul(task, w, group_begin, group_end);
}

#include "kernels/simd_table.inc"

}  // namespace

constinit const Kernels kAvx2Kernels = table("avx2");

}  // namespace coppice::core
#endif
