// Advanced SIMD of Armv8.0: every 64-bit Arm CPU.
#include "kernels/isa_begin.h"

#include "kernels/exact_math.h"
#include "kernels/isa_tables.h"
#include "kernels/kv_block.h"

#if defined(__aarch64__)
#include <arm_neon.h>

namespace coppice::core {
namespace {

// Each builds on those before it.
// clang-format off
#include "kernels/vectors_neon.inc"
#include "kernels/simd_elementwise.inc"
#include "kernels/simd_attention.inc"
#include "kernels/simd_store_kv.inc"
#include "kernels/simd_float_matmul.inc"
#include "kernels/simd_noise.inc"
// clang-format on

void matmul(const MatmulTask& task, int group_begin, int group_end) {
  const WeightsView w = view_of(*task.weights);
  w.kind >= PackedKind::q4 ? matmul_neon(task, w, group_begin, group_end)
                           : float_matmul(task, w, group_begin, group_end);
}

#include "kernels/simd_table.inc"

}  // namespace

constinit const Kernels kNeonKernels = table("neon");

}  // namespace coppice::core
#endif
