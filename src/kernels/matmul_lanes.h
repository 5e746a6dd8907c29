// The quantised product with outputs in the lanes of a vector: a tile of up to V::kRows rows by two vectors
// of outputs. Two weight vectors are loaded for all rows of the tile, and each broadcast activation is used
// twice. V says what a vector is (lanes_*.h) and which product it has:
//
//   dot4    VPDPBUSD: four unsigned by four signed bytes, added to int32.
//   pairs   VPMADDUBSW: two by two, added into int16, saturating. Eight products of 4-bit weights add up to
//           at most 8 * 2 * 15 * 127 = 30,480, so a whole block stays in int16. One of 8-bit weights would
//           not fit (2 * 255 * 127), so there the weight's sign moves to the activation: 2 * 128 * 127 =
//           32,512 fits, and each goes to int32 by itself (numerics 17).
//
// Included by ISA files, and by a test that emulates the instructions in plain C++ (lanes_emulated.h).
#pragma once

#include "kernels/matmul_tile.h"

namespace coppice::core {
namespace {

// The bits of 1.5 * 2^23: an integer sum started there is, read as a float, 1.5 * 2^23 + sum exactly.
constexpr std::int32_t kMagicBits = 0x4B400000;
constexpr float kMagic = 12582912.0f;

enum class Product { dot4, pairs };

// Where vector g of a tile lies behind the tile's first, in bytes of codes.
template <class V, PackedKind kind>
constexpr std::size_t kVector = V::kLanes == kHalfOutputs ? kHalf<kind> : 32;

// Codes of inputs 4 * j .. + 3 (part 0) or 16 + 4 * j .. + 3 (part 1) of both vectors, unsigned.
template <class V, PackedKind kind>
COPPICE_INLINE void load_codes(const std::byte* w, int part, int j, typename V::Ints* codes) {
  for (int g = 0; g < 2; ++g) {
    const std::byte* at = w + kVector<V, kind> * static_cast<std::size_t>(g);
    if constexpr (kind == PackedKind::q8) {
      codes[g] = V::load(at + 64 * (part * 4 + j));
    } else {
      const typename V::Ints pair = V::load(at + 64 * j);
      codes[g] = part ? V::high_nibbles(pair) : V::low_nibbles(pair);
    }
  }
}

// sum[r][g] = the bits of 1.5 * 2^23 + sum of (w - z) q over block b.
template <class V, PackedKind kind, int rows>
COPPICE_INLINE void dot4_sums(const Tile& t, const std::byte* w, std::size_t b, typename V::Ints (*sum)[2]) {
  for (int r = 0; r < rows; ++r) {
    typename V::Ints start = V::splat(kMagicBits);
    if constexpr (kZero<kind> != 0) {
      constexpr int shift = kZero<kind> == 8 ? 3 : 7;
      start = V::sub(start, V::template shift_left<shift>(V::splat(t.sums[r * t.blocks + b])));
    }
    sum[r][0] = sum[r][1] = start;
  }
  const std::int8_t* x = t.codes + b * kBlockInputs;
#pragma GCC unroll 8
  for (int j = 0; j < 4; ++j) {
#pragma GCC unroll 2
    for (int part = 0; part < 2; ++part) {
      typename V::Ints codes[2];
      load_codes<V, kind>(w, part, j, codes);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const typename V::Ints q = V::four_codes(x + r * t.blocks * kBlockInputs + 16 * part + 4 * j);
        for (int g = 0; g < 2; ++g) sum[r][g] = V::dot4(sum[r][g], codes[g], q);
      }
    }
  }
}

// sum[r][g] = sum of w q over block b, still with the zero point.
template <class V, PackedKind kind, int rows>
COPPICE_INLINE void pair_sums_q4(const Tile& t, const std::byte* w, std::size_t b,
                                 typename V::Ints (*sum)[2]) {
  const std::int8_t* x = t.codes + b * kBlockInputs;
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    typename V::Ints low[2], high[2];
    load_codes<V, kind>(w, 0, j, low);
    load_codes<V, kind>(w, 1, j, high);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const std::int8_t* q = x + r * t.blocks * kBlockInputs + 4 * j;
      const typename V::Ints first = V::four_codes(q), second = V::four_codes(q + 16);
      for (int g = 0; g < 2; ++g) {
        const typename V::Ints a = V::pairs(low[g], first);
        sum[r][g] = j == 0 ? a : V::add_pairs(sum[r][g], a);
        sum[r][g] = V::add_pairs(sum[r][g], V::pairs(high[g], second));
      }
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int g = 0; g < 2; ++g) sum[r][g] = V::widen_pairs(sum[r][g]);
}

// sum[r][g] = sum of (w - z) q over block b.
template <class V, int rows>
COPPICE_INLINE void pair_sums_q8(const Tile& t, const std::byte* w, std::size_t b,
                                 typename V::Ints (*sum)[2]) {
  const std::int8_t* x = t.codes + b * kBlockInputs;
  for (int r = 0; r < rows; ++r) sum[r][0] = sum[r][1] = V::splat(0);
#pragma GCC unroll 2
  for (int j = 0; j < 8; ++j) {
    typename V::Ints codes[2];
    load_codes<V, PackedKind::q8>(w, j / 4, j % 4, codes);
    const typename V::Signed weights[2] = {V::signed_codes(codes[0]), V::signed_codes(codes[1])};
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const typename V::Ints q = V::four_codes(x + r * t.blocks * kBlockInputs + 4 * j);
      for (int g = 0; g < 2; ++g) {
        const typename V::Ints a = V::pairs(V::size_of(weights[g]), V::with_sign_of(weights[g], q));
        sum[r][g] = V::add(sum[r][g], V::widen_pairs(a));
      }
    }
  }
}

// sum[r][g] = float(I) of block b (numerics 20).
template <class V, PackedKind kind, int rows>
COPPICE_INLINE void block_integers(const Tile& t, const std::byte* w, std::size_t b,
                                   typename V::Floats (*integer)[2]) {
  typename V::Ints sum[rows][2];
  if constexpr (V::kProduct == Product::dot4) {
    dot4_sums<V, kind, rows>(t, w, b, sum);
  } else if constexpr (kind == PackedKind::q8) {
    pair_sums_q8<V, rows>(t, w, b, sum);
  } else {
    pair_sums_q4<V, kind, rows>(t, w, b, sum);
  }
  for (int r = 0; r < rows; ++r) {
    for (int g = 0; g < 2; ++g) {
      if constexpr (V::kProduct == Product::dot4) {
        integer[r][g] = V::sub(V::bits_of(sum[r][g]), V::splat(kMagic));
      } else if constexpr (kind == PackedKind::q4) {
        integer[r][g] = V::float_of(V::sub(sum[r][g], V::splat(8 * t.sums[r * t.blocks + b])));
      } else {
        integer[r][g] = V::float_of(sum[r][g]);
      }
    }
  }
}

// Outputs 2 * kLanes * part and on of the group.
template <class V, PackedKind kind, int rows>
void tile_product(const Tile& t, int part, Fetch& ahead) {
  using Floats = typename V::Floats;
  Floats acc[rows][2];
  for (auto& row : acc) row[0] = row[1] = V::zero();
  const std::byte* w = t.group + kHalf<kind> * static_cast<std::size_t>(part);
  const std::byte* scales = t.group + kScales<kind> + 4 * V::kLanes * static_cast<std::size_t>(part);
  Fetch fetch = ahead;
  for (std::size_t b = 0; b < t.blocks; ++b, w += kUnit<kind>, scales += kUnit<kind>) {
    fetch.step();
    Floats integer[rows][2];
    block_integers<V, kind, rows>(t, w, b, integer);
    for (int g = 0; g < 2; ++g) {
      const Floats d = V::halves(scales + 2 * V::kLanes * g);
      const Floats m = kind == PackedKind::q4_offset ? V::halves(scales + 64 + 2 * V::kLanes * g) : d;
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const std::size_t at = r * t.blocks + b;
        acc[r][g] = V::fma(V::mul(d, V::splat(t.scales[at])), integer[r][g], acc[r][g]);
        if constexpr (kind == PackedKind::q4_offset)
          acc[r][g] = V::fma(m, V::splat(t.scaled_sums[at]), acc[r][g]);
      }
    }
  }
  ahead = fetch;
  for (int r = 0; r < rows; ++r)
    for (int g = 0; g < 2; ++g)
      V::store(t.y + static_cast<std::size_t>(r) * t.y_stride + V::kLanes * (2 * part + g), acc[r][g]);
}

template <class V>
constexpr int kParts = kGroupOutputs / (2 * V::kLanes);

template <class V, PackedKind kind, int rows = V::kRows>
void tile_rows(const Tile& t, int count, Fetch& fetch) {
  if (count == rows) {
    for (int part = 0; part < kParts<V>; ++part) tile_product<V, kind, rows>(t, part, fetch);
    return;
  }
  if constexpr (rows > 1) tile_rows<V, kind, rows - 1>(t, count, fetch);
}

template <class V, PackedKind kind>
void product_of(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  int most = V::kRows;
  if constexpr (requires { V::kManyRows; })
    if (task.rows > V::kRows) most = V::kManyRows;
  const int tiles = (task.rows + most - 1) / most;  // as even as can be
  Fetch fetch = fetch_of<kind>(task, w, group_begin, group_end, kParts<V> * tiles, V::kAhead);
  for (int g = group_begin; g < group_end; ++g) {
    Tile t = first_tile(task, w, g);
    for (int tile = 0, row = 0; tile < tiles; ++tile) {
      const int rows = (task.rows - row + tiles - tile - 1) / (tiles - tile);
      t.fetch_outputs(static_cast<std::size_t>(rows));
      tile_rows<V, kind>(t, rows, fetch);
      t.skip(static_cast<std::size_t>(rows));
      row += rows;
    }
  }
}

template <class V>
void lanes_matmul(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  if (w.kind == PackedKind::q4) product_of<V, PackedKind::q4>(task, w, group_begin, group_end);
  if (w.kind == PackedKind::q4_offset) product_of<V, PackedKind::q4_offset>(task, w, group_begin, group_end);
  if (w.kind == PackedKind::q8) product_of<V, PackedKind::q8>(task, w, group_begin, group_end);
}

}  // namespace
}  // namespace coppice::core
