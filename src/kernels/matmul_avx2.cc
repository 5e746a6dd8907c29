// The quantised product without VNNI: tiles of up to 4 rows x 8 outputs. VPMADDUBSW multiplies unsigned by
// signed bytes and adds pairs into int16, saturating: eight of 4-bit weights add up to at most
// 8 * 2 * 15 * 127 = 30,480, so a whole block stays in int16. One of 8-bit weights would not fit (2 * 255 *
// 127), so there the weight's sign moves to the activation: 2 * 128 * 127 = 32,512 fits, and each goes to
// int32 by itself (numerics 17).
#include "kernels/isa_begin.h"

#include "kernels/isa_tables.h"

#if defined(__AVX2__)
#include <immintrin.h>

#include "kernels/matmul_tile.h"

namespace coppice::core {
namespace {

constexpr int kTileRows = 4;
constexpr std::size_t kAhead = 16 * 1024;  // bytes

__m256i load_256(const std::byte* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }

__m256i four_codes(const std::int8_t* codes) {
  std::int32_t word;
  __builtin_memcpy(&word, codes, 4);
  return _mm256_set1_epi32(word);
}

// sum[r] = exact sums of w * q of a block for eight outputs; for 4-bit weights still without the zero point.
template <int rows>
void sums_q4(const std::byte* w, const std::int8_t* x, std::size_t x_stride, __m256i* sum) {
  const __m256i mask = _mm256_set1_epi8(15);
  for (int r = 0; r < rows; ++r) sum[r] = _mm256_setzero_si256();
  for (int j = 0; j < 4; ++j) {
    const __m256i pair = load_256(w + 64 * j);
    const __m256i low = _mm256_and_si256(pair, mask),
                  high = _mm256_and_si256(_mm256_srli_epi16(pair, 4), mask);
    for (int r = 0; r < rows; ++r) {
      const std::int8_t* q = x + static_cast<std::size_t>(r) * x_stride + 4 * j;
      const __m256i a = _mm256_maddubs_epi16(low, four_codes(q)),
                    b = _mm256_maddubs_epi16(high, four_codes(q + 16));
      sum[r] = _mm256_add_epi16(sum[r], _mm256_add_epi16(a, b));
    }
  }
  for (int r = 0; r < rows; ++r) sum[r] = _mm256_madd_epi16(sum[r], _mm256_set1_epi16(1));
}

template <int rows>
void sums_q8(const std::byte* w, const std::int8_t* x, std::size_t x_stride, __m256i* sum) {
  const __m256i zero = _mm256_set1_epi8(-128), ones = _mm256_set1_epi16(1);
  for (int r = 0; r < rows; ++r) sum[r] = _mm256_setzero_si256();
  for (int j = 0; j < 8; ++j) {
    const __m256i code = _mm256_xor_si256(load_256(w + 64 * j), zero);  // byte - 128
    const __m256i size = _mm256_abs_epi8(code);
    for (int r = 0; r < rows; ++r) {
      const __m256i q =
          _mm256_sign_epi8(four_codes(x + static_cast<std::size_t>(r) * x_stride + 4 * j), code);
      sum[r] = _mm256_add_epi32(sum[r], _mm256_madd_epi16(_mm256_maddubs_epi16(size, q), ones));
    }
  }
}

// Outputs 8 * part .. 8 * part + 7 of the group.
template <PackedKind kind, int rows>
void tile_product(const Tile& t, int part, Fetch& ahead) {
  const std::size_t blocks = t.blocks;
  __m256 acc[rows];
  for (auto& a : acc) a = _mm256_setzero_ps();
  const std::byte* w = t.group + static_cast<std::size_t>(part / 2) * kHalf<kind> + 32 * (part % 2);
  const std::byte* scales = t.group + kScales<kind> + 16 * part;
  Fetch fetch = ahead;
  for (std::size_t b = 0; b < blocks; ++b, w += kUnit<kind>, scales += kUnit<kind>) {
    fetch.step();
    __m256i sum[rows];
    const std::int8_t* x = t.codes + b * kBlockInputs;
    if constexpr (kind == PackedKind::q8) {
      sums_q8<rows>(w, x, blocks * kBlockInputs, sum);
    } else {
      sums_q4<rows>(w, x, blocks * kBlockInputs, sum);
    }
    const __m256 d = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scales)));
    for (int r = 0; r < rows; ++r) {
      const std::size_t at = static_cast<std::size_t>(r) * blocks + b;
      if constexpr (kind == PackedKind::q4)
        sum[r] = _mm256_sub_epi32(sum[r], _mm256_set1_epi32(8 * t.sums[at]));
      const __m256 p = _mm256_mul_ps(d, _mm256_set1_ps(t.scales[at]));
      acc[r] = _mm256_fmadd_ps(p, _mm256_cvtepi32_ps(sum[r]), acc[r]);
      if constexpr (kind == PackedKind::q4_offset) {
        const __m256 m = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scales + 64)));
        acc[r] = _mm256_fmadd_ps(m, _mm256_set1_ps(t.scaled_sums[at]), acc[r]);
      }
    }
  }
  ahead = fetch;
  for (int r = 0; r < rows; ++r)
    _mm256_storeu_ps(t.y + static_cast<std::size_t>(r) * t.y_stride + 8 * part, acc[r]);
}

template <PackedKind kind, int rows>
void tile_parts(const Tile& t, Fetch& fetch) {
  for (int part = 0; part < 4; ++part) tile_product<kind, rows>(t, part, fetch);
}

template <PackedKind kind>
void product(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  const int tiles = (task.rows + kTileRows - 1) / kTileRows;  // as even as can be
  Fetch fetch = fetch_of<kind>(task, w, group_begin, group_end, 4 * tiles, kAhead);
  for (int g = group_begin; g < group_end; ++g) {
    Tile t = first_tile(task, w, g);
    for (int tile = 0, row = 0; tile < tiles; ++tile) {
      const int rows = (task.rows - row + tiles - tile - 1) / (tiles - tile);
      if (rows == 1) tile_parts<kind, 1>(t, fetch);
      if (rows == 2) tile_parts<kind, 2>(t, fetch);
      if (rows == 3) tile_parts<kind, 3>(t, fetch);
      if (rows == 4) tile_parts<kind, 4>(t, fetch);
      t.skip(static_cast<std::size_t>(rows));
      row += rows;
    }
  }
}

}  // namespace

void matmul_avx2(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  if (w.kind == PackedKind::q4) product<PackedKind::q4>(task, w, group_begin, group_end);
  if (w.kind == PackedKind::q4_offset) product<PackedKind::q4_offset>(task, w, group_begin, group_end);
  if (w.kind == PackedKind::q8) product<PackedKind::q8>(task, w, group_begin, group_end);
}

}  // namespace coppice::core
#endif
