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

// Inputs 4 * j .. 4 * j + 3 of each half of the block: `q` holds the codes of 16 inputs, four in a lane.
template <PackedKind kind, int rows, int vectors, int j>
COPPICE_INLINE void add_inputs(const std::byte* w, const int8x16_t (*q)[2], int32x4_t (*sum)[vectors]) {
  for (int v = 0; v < vectors; ++v) {
    const auto load = [&](int at) {
      return vld1q_u8(reinterpret_cast<const std::uint8_t*>(w + 64 * at + 16 * v));
    };
    uint8x16_t low = load(j), high;
    if constexpr (kind == PackedKind::q8) {
      low = veorq_u8(low, vdupq_n_u8(128));  // as a signed byte: code - 128
      high = veorq_u8(load(4 + j), vdupq_n_u8(128));
    } else {
      high = vshrq_n_u8(low, 4);
      low = vandq_u8(low, vdupq_n_u8(15));
    }
    for (int r = 0; r < rows; ++r) {
      sum[r][v] = vdotq_laneq_s32(sum[r][v], vreinterpretq_s8_u8(low), q[r][0], j);
      sum[r][v] = vdotq_laneq_s32(sum[r][v], vreinterpretq_s8_u8(high), q[r][1], j);
    }
  }
}

// sum[r][v] += w * q over a block; for 8-bit weights (w - 128) * q.
template <PackedKind kind, int rows, int vectors>
COPPICE_INLINE void block_sums(const std::byte* w, const std::int8_t* x, std::size_t x_stride,
                               int32x4_t (*sum)[vectors]) {
  int8x16_t q[rows][2];
  for (int r = 0; r < rows; ++r)
    for (int half = 0; half < 2; ++half)
      q[r][half] = vld1q_s8(x + static_cast<std::size_t>(r) * x_stride + 16 * half);
  add_inputs<kind, rows, vectors, 0>(w, q, sum);
  add_inputs<kind, rows, vectors, 1>(w, q, sum);
  add_inputs<kind, rows, vectors, 2>(w, q, sum);
  add_inputs<kind, rows, vectors, 3>(w, q, sum);
}

#include "kernels/neon_matmul.inc"

}  // namespace

void matmul_neondot(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  quantised_matmul(task, w, group_begin, group_end);
}

}  // namespace coppice::core
#endif
