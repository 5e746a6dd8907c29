// The quantised product with VPDPBUSD: tiles of up to 4 rows x 32 outputs, so that two weight vectors are
// loaded once and each broadcast activation is used twice; about 25 registers. The first tile of rows fetches
// the weights ahead into L2, which makes time the larger of memory and arithmetic instead of their sum
// (numerics 21).
#include "kernels/isa_begin.h"

#include "kernels/isa_tables.h"

#if defined(__AVX512VNNI__)
#include <immintrin.h>

namespace coppice::core {
namespace {

constexpr int kTileRows = 6;
constexpr std::size_t kAhead = 24 * 1024;  // bytes, measured: docs/numerics.md 21
// The bits of 1.5 * 2^23: an integer sum started there is, read as a float, 1.5 * 2^23 + sum exactly.
constexpr std::int32_t kMagicBits = 0x4B400000;
constexpr float kMagic = 12582912.0f;

struct Tile {
  const std::byte* group;
  std::size_t group_bytes;
  int blocks;
  const std::int8_t* codes;  // [rows, blocks * 32]
  const float* scales;       // [rows, blocks]
  const float* scaled_sums;  // [rows, blocks]
  const std::int32_t* sums;  // [rows, blocks]
  float* y;
  std::size_t y_stride;

  void skip(std::size_t rows) {
    const std::size_t n = rows * static_cast<std::size_t>(blocks);
    codes += n * kBlockInputs;
    scales += n;
    scaled_sums += n;
    sums += n;
    y += rows * y_stride;
  }
};

template <PackedKind kind>
constexpr std::size_t kCodesBytes = kind == PackedKind::q8 ? 512 : 256;
template <PackedKind kind>
constexpr std::size_t kUnit = kCodesBytes<kind> + (kind == PackedKind::q4_offset ? 64 : 32);

__m512i four_codes(const std::int8_t* codes) {
  std::int32_t word;
  __builtin_memcpy(&word, codes, 4);
  return _mm512_set1_epi32(word);
}

__m512 halves(const std::byte* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

// acc += one block.
template <PackedKind kind, int rows, int groups>
COPPICE_INLINE void block_product(const Tile& t, const std::byte* const* w, std::size_t b,
                                  __m512 (*acc)[groups]) {
  constexpr int zero = kind == PackedKind::q4 ? 8 : kind == PackedKind::q8 ? 128 : 0;
  const auto blocks = static_cast<std::size_t>(t.blocks);
  const __m512i mask = _mm512_set1_epi8(15);
  __m512i sum[rows][groups];
  for (int r = 0; r < rows; ++r) {
    const std::int32_t start = zero ? kMagicBits - zero * t.sums[r * blocks + b] : kMagicBits;
    for (int g = 0; g < groups; ++g) sum[r][g] = _mm512_set1_epi32(start);
  }
  const std::int8_t* x = t.codes + b * kBlockInputs;
  for (int j = 0; j < 4; ++j) {
    for (int half = 0; half < 2; ++half) {
      __m512i codes[groups];
      for (int g = 0; g < groups; ++g) {
        if constexpr (kind == PackedKind::q8) {
          codes[g] = _mm512_loadu_si512(w[g] + 64 * (half * 4 + j));
        } else {
          const __m512i pair = _mm512_loadu_si512(w[g] + 64 * j);
          codes[g] = _mm512_and_si512(half ? _mm512_srli_epi16(pair, 4) : pair, mask);
        }
      }
      for (int r = 0; r < rows; ++r) {
        const __m512i q = four_codes(x + r * blocks * kBlockInputs + 16 * half + 4 * j);
        for (int g = 0; g < groups; ++g) sum[r][g] = _mm512_dpbusd_epi32(sum[r][g], codes[g], q);
      }
    }
  }
  for (int g = 0; g < groups; ++g) {
    const __m512 d = halves(w[g] + kCodesBytes<kind>);
    for (int r = 0; r < rows; ++r) {
      const __m512 integer = _mm512_sub_ps(_mm512_castsi512_ps(sum[r][g]), _mm512_set1_ps(kMagic));
      const __m512 p = _mm512_mul_ps(d, _mm512_set1_ps(t.scales[r * blocks + b]));
      acc[r][g] = _mm512_fmadd_ps(p, integer, acc[r][g]);
    }
    if constexpr (kind == PackedKind::q4_offset) {
      const __m512 m = halves(w[g] + 288);
      for (int r = 0; r < rows; ++r)
        acc[r][g] = _mm512_fmadd_ps(m, _mm512_set1_ps(t.scaled_sums[r * blocks + b]), acc[r][g]);
    }
  }
}

template <PackedKind kind, int rows, int groups, bool ahead>
void tile_product(const Tile& t) {
  __m512 acc[rows][groups];
  for (auto& row : acc)
    for (auto& a : row) a = _mm512_setzero_ps();
  const std::byte* w[groups];
  for (int g = 0; g < groups; ++g) w[g] = t.group + static_cast<std::size_t>(g) * t.group_bytes;
  for (std::size_t b = 0; b < static_cast<std::size_t>(t.blocks); ++b) {
    if constexpr (ahead)
      for (int g = 0; g < groups; ++g)
        for (std::size_t line = 0; line < kUnit<kind>; line += 64)
          _mm_prefetch(reinterpret_cast<const char*>(w[g] + kAhead + line), _MM_HINT_T1);
    block_product<kind, rows, groups>(t, w, b, acc);
    for (int g = 0; g < groups; ++g) w[g] += kUnit<kind>;
  }
  for (int r = 0; r < rows; ++r)
    for (int g = 0; g < groups; ++g)
      _mm512_storeu_ps(t.y + static_cast<std::size_t>(r) * t.y_stride + g * kGroupOutputs, acc[r][g]);
}

template <PackedKind kind, int rows, bool ahead>
void tile_groups(const Tile& t, int groups) {
  groups == 2 ? tile_product<kind, rows, 2, ahead>(t) : tile_product<kind, rows, 1, ahead>(t);
}

template <PackedKind kind, bool ahead>
void tile_rows(const Tile& t, int rows, int groups) {
  if (rows == 1) tile_groups<kind, 1, ahead>(t, groups);
  if (rows == 2) tile_groups<kind, 2, ahead>(t, groups);
  if (rows == 3) tile_groups<kind, 3, ahead>(t, groups);
  if (rows == 4) tile_groups<kind, 4, ahead>(t, groups);
  if (rows == 5) tile_groups<kind, 5, ahead>(t, groups);
  if (rows == 6) tile_groups<kind, 6, ahead>(t, groups);
}

template <PackedKind kind>
void product(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  for (int g = group_begin; g < group_end; g += 2) {
    const int groups = group_end - g >= 2 ? 2 : 1;
    Tile t = {w.data + static_cast<std::size_t>(g) * w.group_bytes,
              w.group_bytes,
              w.inputs / kBlockInputs,
              task.q.codes,
              task.q.scales,
              task.q.scaled_sums,
              task.q.sums,
              task.y + g * kGroupOutputs,
              task.y_stride};
    const int tiles = (task.rows + kTileRows - 1) / kTileRows;  // as even as can be
    for (int tile = 0, row = 0; tile < tiles; ++tile) {
      const int rows = (task.rows - row + tiles - tile - 1) / (tiles - tile);
      row == 0 ? tile_rows<kind, true>(t, rows, groups) : tile_rows<kind, false>(t, rows, groups);
      t.skip(static_cast<std::size_t>(rows));
      row += rows;
    }
  }
}

}  // namespace

void matmul_avx512vnni(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  if (w.kind == PackedKind::q4) product<PackedKind::q4>(task, w, group_begin, group_end);
  if (w.kind == PackedKind::q4_offset) product<PackedKind::q4_offset>(task, w, group_begin, group_end);
  if (w.kind == PackedKind::q8) product<PackedKind::q8>(task, w, group_begin, group_end);
}

}  // namespace coppice::core
#endif
