// The quantised product without dot products: SMULL and SMLAL multiply signed bytes into int16, SADALP adds
// pairs into int32. Two products of 8-bit weights fit int16 (2 * 128 * 127 = 32,512); of narrower ones all
// eight of a block do (8 * 32 * 127 = 32,512), so there one widening at a group's end is enough (numerics
// 23).
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

#include "kernels/neon_levels.inc"

// Two outputs each, four products an output, of inputs 16 * part + 4 * j .. + 3.
template <PackedKind kind, int rows, int vectors, int part, int j>
COPPICE_INLINE void add_words(const std::byte* w, const std::int8_t* x, std::size_t x_stride,
                              int16x8_t (*words)[vectors][2]) {
  for (int v = 0; v < vectors; ++v) {
    const int8x16_t levels = load_levels<kind, part, j>(w + 16 * v);
    for (int r = 0; r < rows; ++r) {
      const int8x16_t q = four_codes(x + static_cast<std::size_t>(r) * x_stride + 16 * part + 4 * j);
      int16x8_t* const to = words[r][v];
      to[0] = vmlal_s8(to[0], vget_low_s8(levels), vget_low_s8(q));
      to[1] = vmlal_high_s8(to[1], levels, q);
    }
  }
}

template <PackedKind kind, int rows, int vectors, int group, int j>
COPPICE_INLINE void add_four(const std::byte* w, const std::int8_t* x, std::size_t x_stride,
                             int16x8_t (*words)[vectors][2]) {
  add_words<kind, rows, vectors, group, j>(w, x, x_stride, words);
  if constexpr (kGroups<kind> == 1) add_words<kind, rows, vectors, 1, j>(w, x, x_stride, words);
}

template <PackedKind kind, int rows, int vectors, int group>
COPPICE_INLINE void narrow_sums(const std::byte* w, const std::int8_t* x, std::size_t x_stride,
                                int32x4_t (*sum)[vectors]) {
  int16x8_t words[rows][vectors][2];
  for (auto& row : words)
    for (auto& pair : row) pair[0] = pair[1] = vdupq_n_s16(0);
  add_four<kind, rows, vectors, group, 0>(w, x, x_stride, words);
  add_four<kind, rows, vectors, group, 1>(w, x, x_stride, words);
  add_four<kind, rows, vectors, group, 2>(w, x, x_stride, words);
  add_four<kind, rows, vectors, group, 3>(w, x, x_stride, words);
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v) {
      const int32x4_t a = vpaddlq_s16(words[r][v][0]), b = vpaddlq_s16(words[r][v][1]);
      sum[r][v] = vaddq_s32(sum[r][v], vpaddq_s32(a, b));
    }
}

// Two outputs each, two sums an output, of inputs 16 * part + 4 * j .. + 7.
template <PackedKind kind, int rows, int vectors, int part, int j>
COPPICE_INLINE void add_pairs(const std::byte* w, const std::int8_t* x, std::size_t x_stride,
                              int32x4_t (*pairs)[vectors][2]) {
  for (int v = 0; v < vectors; ++v) {
    const int8x16_t first = load_levels<kind, part, j>(w + 16 * v),
                    second = load_levels<kind, part, j + 1>(w + 16 * v);
    for (int r = 0; r < rows; ++r) {
      const std::int8_t* q = x + static_cast<std::size_t>(r) * x_stride + 16 * part + 4 * j;
      const int8x16_t a = four_codes(q), b = four_codes(q + 4);
      int32x4_t* const to = pairs[r][v];
      const int16x8_t low =
          vmlal_s8(vmull_s8(vget_low_s8(first), vget_low_s8(a)), vget_low_s8(second), vget_low_s8(b));
      to[0] = vpadalq_s16(to[0], low);
      to[1] = vpadalq_s16(to[1], vmlal_high_s8(vmull_high_s8(first, a), second, b));
    }
  }
}

template <PackedKind kind, int rows, int vectors>
COPPICE_INLINE void wide_sums(const std::byte* w, const std::int8_t* x, std::size_t x_stride,
                              int32x4_t (*sum)[vectors]) {
  int32x4_t pairs[rows][vectors][2];
  for (auto& row : pairs)
    for (auto& pair : row) pair[0] = pair[1] = vdupq_n_s32(0);
  add_pairs<kind, rows, vectors, 0, 0>(w, x, x_stride, pairs);
  add_pairs<kind, rows, vectors, 0, 2>(w, x, x_stride, pairs);
  add_pairs<kind, rows, vectors, 1, 0>(w, x, x_stride, pairs);
  add_pairs<kind, rows, vectors, 1, 2>(w, x, x_stride, pairs);
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v)
      sum[r][v] = vaddq_s32(sum[r][v], vpaddq_s32(pairs[r][v][0], pairs[r][v][1]));
}

// sum[r][v] += level * q over a group of a block.
template <PackedKind kind, int rows, int vectors, int group>
COPPICE_INLINE void group_sums(const std::byte* w, const std::int8_t* x, std::size_t x_stride,
                               int32x4_t (*sum)[vectors]) {
  if constexpr (kWide<kind>) {
    wide_sums<kind, rows, vectors>(w, x, x_stride, sum);
  } else {
    narrow_sums<kind, rows, vectors, group>(w, x, x_stride, sum);
  }
}

#include "kernels/neon_matmul.inc"

}  // namespace

void matmul_neon(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  quantised_matmul(task, w, group_begin, group_end);
}

}  // namespace coppice::core
#endif
