// The quantised product with dot products: SDOT multiplies four signed bytes of each of four outputs with the
// four codes in one lane of another register, and adds them to int32 (numerics 23).
#include "kernels/isa_begin.h"

#include "kernels/isa_tables.h"

#if defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>

#include "kernels/matmul_tile.h"

namespace coppice::core {
namespace {

constexpr int kTileRows = 4;

#include "kernels/neon_levels.inc"

// Inputs 16 * part + 4 * j .. + 3: `q` holds the codes of 16 inputs, four in a lane.
template <PackedKind kind, int rows, int vectors, int part, int j>
COPPICE_INLINE void add_inputs(const std::byte* w, const int8x16_t (*q)[2], int32x4_t (*sum)[vectors]) {
  for (int v = 0; v < vectors; ++v) {
    const int8x16_t levels = load_levels<kind, part, j>(w + 16 * v);
    for (int r = 0; r < rows; ++r) sum[r][v] = vdotq_laneq_s32(sum[r][v], levels, q[r][part], j);
  }
}

// Both parts, or the group that is one.
template <PackedKind kind, int rows, int vectors, int group, int j>
COPPICE_INLINE void add_four(const std::byte* w, const int8x16_t (*q)[2], int32x4_t (*sum)[vectors]) {
  add_inputs<kind, rows, vectors, group, j>(w, q, sum);
  if constexpr (kGroups<kind> == 1) add_inputs<kind, rows, vectors, 1, j>(w, q, sum);
}

// sum[r][v] += level * q over a group of a block.
template <PackedKind kind, int rows, int vectors, int group>
COPPICE_INLINE void group_sums(const std::byte* w, const std::int8_t* x, std::size_t x_stride,
                               int32x4_t (*sum)[vectors]) {
  int8x16_t q[rows][2];
  for (int r = 0; r < rows; ++r)
    for (int part = group; part < group + kGroupParts<kind>; ++part)
      q[r][part] = vld1q_s8(x + static_cast<std::size_t>(r) * x_stride + 16 * part);
  add_four<kind, rows, vectors, group, 0>(w, q, sum);
  add_four<kind, rows, vectors, group, 1>(w, q, sum);
  add_four<kind, rows, vectors, group, 2>(w, q, sum);
  add_four<kind, rows, vectors, group, 3>(w, q, sum);
}

#include "kernels/neon_matmul.inc"

}  // namespace

void matmul_neondot(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  quantised_matmul(task, w, group_begin, group_end);
}

}  // namespace coppice::core
#endif
