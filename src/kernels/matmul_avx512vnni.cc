// The quantised product with VPDPBUSD: tiles of up to 8 rows x 32 outputs. Two weight vectors are loaded for
// all rows of the tile, each broadcast activation is used twice. With more than 6 rows the compiler keeps
// some results in L1 until the block's end; the multiplier ports, which bound this kernel, do not notice
// (measured on Zen 4: 73% of the VPDPBUSD peak with offsets, 80% without, from 2 rows on; 8 of 11 and of 10
// multiplications are VPDPBUSD).
#include "kernels/isa_begin.h"

#include "kernels/isa_tables.h"

#if defined(__AVX512VNNI__)
#include <immintrin.h>

#include "kernels/matmul_tile.h"

namespace coppice::core {
namespace {

constexpr int kTileRows = 8;
constexpr std::size_t kAhead = 24 * 1024;  // bytes, measured: docs/numerics.md 21
// The bits of 1.5 * 2^23: an integer sum started there is, read as a float, 1.5 * 2^23 + sum exactly.
constexpr std::int32_t kMagicBits = 0x4B400000;
constexpr float kMagic = 12582912.0f;

COPPICE_INLINE __m512i four_codes(const std::int8_t* codes) {
  std::int32_t word;
  __builtin_memcpy(&word, codes, 4);
  return _mm512_set1_epi32(word);
}

COPPICE_INLINE __m512 halves(const std::byte* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

// sum[r][g] = the bits of 1.5 * 2^23 + sum of (w - z) q, of block b and half g.
template <PackedKind kind, int rows>
COPPICE_INLINE void block_sums(const Tile& t, const std::byte* w, std::size_t b, __m512i (*sum)[2]) {
  const __m512i mask = _mm512_set1_epi8(15);
  const __m512i magic = _mm512_set1_epi32(kMagicBits);
  for (int r = 0; r < rows; ++r) {
    __m512i start = magic;
    if constexpr (kZero<kind> != 0) {
      constexpr int shift = kZero<kind> == 8 ? 3 : 7;
      start = _mm512_sub_epi32(magic, _mm512_slli_epi32(_mm512_set1_epi32(t.sums[r * t.blocks + b]), shift));
    }
    sum[r][0] = sum[r][1] = start;
  }
  const std::int8_t* x = t.codes + b * kBlockInputs;
#pragma GCC unroll 8
  for (int j = 0; j < 4; ++j) {
#pragma GCC unroll 2
    for (int part = 0; part < 2; ++part) {
      __m512i codes[2];
      for (int g = 0; g < 2; ++g) {
        if constexpr (kind == PackedKind::q8) {
          codes[g] = _mm512_loadu_si512(w + kHalf<kind> * g + 64 * (part * 4 + j));
        } else {
          const __m512i pair = _mm512_loadu_si512(w + kHalf<kind> * g + 64 * j);
          codes[g] = _mm512_and_si512(part ? _mm512_srli_epi16(pair, 4) : pair, mask);
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const __m512i q = four_codes(x + r * t.blocks * kBlockInputs + 16 * part + 4 * j);
        for (int g = 0; g < 2; ++g) sum[r][g] = _mm512_dpbusd_epi32(sum[r][g], codes[g], q);
      }
    }
  }
}

// acc + the block's part of the product.
template <PackedKind kind>
COPPICE_INLINE __m512 add_block(__m512 acc, __m512i sum, __m512 d, __m512 m, float scale, float scaled_sum) {
  const __m512 integer = _mm512_sub_ps(_mm512_castsi512_ps(sum), _mm512_set1_ps(kMagic));
  acc = _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(scale)), integer, acc);
  if constexpr (kind == PackedKind::q4_offset) acc = _mm512_fmadd_ps(m, _mm512_set1_ps(scaled_sum), acc);
  return acc;
}

template <PackedKind kind, int rows>
void tile_product(const Tile& t, Fetch& ahead) {
  __m512 acc[rows][2];
  for (auto& row : acc) row[0] = row[1] = _mm512_setzero_ps();
  const std::byte* w = t.group;
  Fetch fetch = ahead;
  for (std::size_t b = 0; b < t.blocks; ++b, w += kUnit<kind>) {
    fetch.step();
    __m512i sum[rows][2];
    block_sums<kind, rows>(t, w, b, sum);
    for (int g = 0; g < 2; ++g) {
      const __m512 d = halves(w + kScales<kind> + 32 * g);
      const __m512 m = kind == PackedKind::q4_offset ? halves(w + kQ4Offsets + 32 * g) : d;
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const std::size_t at = r * t.blocks + b;
        acc[r][g] = add_block<kind>(acc[r][g], sum[r][g], d, m, t.scales[at], t.scaled_sums[at]);
      }
    }
  }
  ahead = fetch;
  for (int r = 0; r < rows; ++r)
    for (int g = 0; g < 2; ++g)
      _mm512_storeu_ps(t.y + static_cast<std::size_t>(r) * t.y_stride + g * kHalfOutputs, acc[r][g]);
}

template <PackedKind kind, int rows = kTileRows>
void tile_rows(const Tile& t, int count, Fetch& fetch) {
  if (count == rows) return tile_product<kind, rows>(t, fetch);
  if constexpr (rows > 1) tile_rows<kind, rows - 1>(t, count, fetch);
}

template <PackedKind kind>
void product(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  const int tiles = (task.rows + kTileRows - 1) / kTileRows;  // as even as can be
  Fetch fetch = fetch_of<kind>(task, w, group_begin, group_end, tiles, kAhead);
  for (int g = group_begin; g < group_end; ++g) {
    Tile t = first_tile(task, w, g);
    for (int tile = 0, row = 0; tile < tiles; ++tile) {
      const int rows = (task.rows - row + tiles - tile - 1) / (tiles - tile);
      tile_rows<kind>(t, rows, fetch);
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
