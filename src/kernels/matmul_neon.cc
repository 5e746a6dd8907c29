// The quantised product without dot products: SMULL and SMLAL multiply signed bytes into int16, SADALP adds
// pairs into int32. Two products of 8-bit weights fit int16 (2 * 128 * 127 = 32,512); of 4-bit ones all eight
// of a block do (8 * 15 * 127 = 15,240), so there one widening at the block's end is enough (numerics 23).
#include "kernels/isa_begin.h"

#include "kernels/isa_tables.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#include "kernels/matmul_tile.h"

namespace coppice::core {
namespace {

constexpr int kTileRows = 3;

// Four codes, four times.
int8x16_t four_codes(const std::int8_t* codes) {
  std::int32_t word;
  __builtin_memcpy(&word, codes, 4);
  return vreinterpretq_s8_s32(vdupq_n_s32(word));
}

uint8x16_t load_128(const std::byte* p) { return vld1q_u8(reinterpret_cast<const std::uint8_t*>(p)); }

template <int rows, int vectors>
COPPICE_INLINE void sums_q4(const std::byte* w, const std::int8_t* x, std::size_t x_stride,
                            int32x4_t (*sum)[vectors]) {
  int16x8_t words[rows][vectors][2];  // two outputs each, four products an output
  for (auto& row : words)
    for (auto& pair : row) pair[0] = pair[1] = vdupq_n_s16(0);
  for (int j = 0; j < 4; ++j)
    for (int v = 0; v < vectors; ++v) {
      const uint8x16_t pair = load_128(w + 64 * j + 16 * v);
      const int8x16_t low = vreinterpretq_s8_u8(vandq_u8(pair, vdupq_n_u8(15))),
                      high = vreinterpretq_s8_u8(vshrq_n_u8(pair, 4));
      for (int r = 0; r < rows; ++r) {
        const std::int8_t* q = x + static_cast<std::size_t>(r) * x_stride + 4 * j;
        const int8x16_t a = four_codes(q), b = four_codes(q + 16);
        int16x8_t* const to = words[r][v];
        to[0] = vmlal_s8(to[0], vget_low_s8(low), vget_low_s8(a));
        to[1] = vmlal_high_s8(to[1], low, a);
        to[0] = vmlal_s8(to[0], vget_low_s8(high), vget_low_s8(b));
        to[1] = vmlal_high_s8(to[1], high, b);
      }
    }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) {
      const int32x4_t a = vpaddlq_s16(words[r][v][0]), b = vpaddlq_s16(words[r][v][1]);
      sum[r][v] = vaddq_s32(sum[r][v], vpaddq_s32(a, b));
    }
}

template <int rows, int vectors>
COPPICE_INLINE void sums_q8(const std::byte* w, const std::int8_t* x, std::size_t x_stride,
                            int32x4_t (*sum)[vectors]) {
  int32x4_t pairs[rows][vectors][2];  // two outputs each, two sums an output
  for (auto& row : pairs)
    for (auto& pair : row) pair[0] = pair[1] = vdupq_n_s32(0);
  const auto code = [](uint8x16_t byte) { return vreinterpretq_s8_u8(veorq_u8(byte, vdupq_n_u8(128))); };
  for (int j = 0; j < 8; j += 2)
    for (int v = 0; v < vectors; ++v) {
      const int8x16_t first = code(load_128(w + 64 * j + 16 * v)),
                      second = code(load_128(w + 64 * (j + 1) + 16 * v));  // byte - 128
      for (int r = 0; r < rows; ++r) {
        const std::int8_t* q = x + static_cast<std::size_t>(r) * x_stride + 4 * j;
        const int8x16_t a = four_codes(q), b = four_codes(q + 4);
        int32x4_t* const to = pairs[r][v];
        const int16x8_t low =
            vmlal_s8(vmull_s8(vget_low_s8(first), vget_low_s8(a)), vget_low_s8(second), vget_low_s8(b));
        to[0] = vpadalq_s16(to[0], low);
        to[1] = vpadalq_s16(to[1], vmlal_high_s8(vmull_high_s8(first, a), second, b));
      }
    }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v)
      sum[r][v] = vaddq_s32(sum[r][v], vpaddq_s32(pairs[r][v][0], pairs[r][v][1]));
}

// sum[r][v] += w * q over a block; for 8-bit weights (w - 128) * q.
template <PackedKind kind, int rows, int vectors>
COPPICE_INLINE void block_sums(const std::byte* w, const std::int8_t* x, std::size_t x_stride,
                               int32x4_t (*sum)[vectors]) {
  if constexpr (kind == PackedKind::q8) {
    sums_q8<rows, vectors>(w, x, x_stride, sum);
  } else {
    sums_q4<rows, vectors>(w, x, x_stride, sum);
  }
}

#include "kernels/neon_matmul.inc"

}  // namespace

void matmul_neon(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  quantised_matmul(task, w, group_begin, group_end);
}

}  // namespace coppice::core
#endif
