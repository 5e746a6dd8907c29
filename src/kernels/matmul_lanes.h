// The quantised product with outputs in the lanes of a vector: a tile of up to V::kRows rows by two vectors
// of outputs. Two weight vectors are loaded for all rows of the tile, and each broadcast activation is used
// twice. V says what a vector is (lanes_*.h) and which product it has:
//
//   dot4    VPDPBUSD: four unsigned by four signed bytes, added to int32.
//   pairs   VPMADDUBSW: two by two, added into int16, saturating. Eight products of 4-bit weights add up to
//           at most 8 * 2 * 15 * 127 = 30,480, so a whole block stays in int16; so do four of 5-bit ones (or
//           of up to 31) and two of 6-bit ones. One of 8-bit weights would not fit (2 * 255 * 127), so there
//           the weight's sign moves to the activation: 2 * 128 * 127 = 32,512 fits, and each goes to int32
//           by itself (numerics 17).
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

// Of a plane of `bits` bits, the codes of inputs 16 * part + 4 * j .. + 3, moved to bit `to` of their bytes.
// Unrolled, so that the place is known: packed.h numbers the fields.
template <class V, int bits, int to>
COPPICE_INLINE typename V::Ints plane_codes(const std::byte* plane, int part, int j) {
  constexpr int fields = 8 / bits;
  const int number = 2 * j + part, field = number % fields;
  const typename V::Ints x = V::load(plane + 64 * (number / fields));
  if (field == 0) return V::template field<bits, to, 0>(x);
  if (fields == 2 || field == 1) return V::template field<bits, to, bits>(x);
  if constexpr (fields >= 4) {
    if (field == 2) return V::template field<bits, to, 2 * bits>(x);
    if (fields == 4 || field == 3) return V::template field<bits, to, 3 * bits>(x);
  }
  if constexpr (fields == 8) {
    if (field == 4) return V::template field<bits, to, 4>(x);
    if (field == 5) return V::template field<bits, to, 5>(x);
    if (field == 6) return V::template field<bits, to, 6>(x);
    return V::template field<bits, to, 7>(x);
  }
  return x;
}

// Codes of inputs 16 * part + 4 * j .. + 3 of both vectors, unsigned: level + zero point.
template <class V, PackedKind kind>
COPPICE_INLINE void load_codes(const std::byte* w, int part, int j, typename V::Ints* codes) {
  for (int g = 0; g < 2; ++g) {
    const std::byte* at = w + kVector<V, kind> * static_cast<std::size_t>(g);
    if constexpr (kLow<kind> == 8) {
      codes[g] = V::load(at + 64 * (part * 4 + j));
    } else {
      codes[g] = plane_codes<V, kLow<kind>, 0>(at, part, j);
    }
    if constexpr (kHigh<kind> != 0)
      codes[g] = V::bit_or(codes[g], plane_codes<V, kHigh<kind>, kLow<kind>>(at + 64 * kLow<kind>, part, j));
    if constexpr (kShape<kind>.levels == Levels::nonlinear4) codes[g] = V::lookup(kNonlinear4, codes[g]);
    if constexpr (kShape<kind>.levels == Levels::float4) codes[g] = V::lookup(kFloat4, codes[g]);
  }
}

// d and m of a group of one vector of outputs.
template <class V, PackedKind kind>
COPPICE_INLINE void load_scales(const ScalePlace& at, int group, typename V::Floats& d,
                                typename V::Floats& m) {
  d = kShape<kind>.scale == ScaleType::power ? V::powers(at.halves) : V::halves(at.halves);
  if constexpr (kOffset<kind>) m = V::halves(at.halves + 64);
  if constexpr (kSuper<kind>) {
    const std::byte* bytes = at.bytes + kGroupOutputs * group;
    if constexpr (kOffset<kind> && kGroups<kind> == 2) {
      const typename V::Ints both = V::widen_unsigned(bytes);
      d = V::mul(d, V::float_of(V::low_nibbles(both)));
      m = V::mul(m, V::float_of(V::high_nibbles(both)));
    } else {
      d = V::mul(d, V::float_of(V::widen(bytes)));
      if constexpr (kOffset<kind>) m = V::mul(m, V::float_of(V::widen_unsigned(bytes + kGroupOutputs)));
    }
  }
}

// A block of packed weights as a tile reads it. PanelWeights (matmul_panels.h) is one that was unpacked
// before.
template <class V, PackedKind kind>
struct PackedWeights {
  const std::byte* w;  // the codes of the tile's first output
  ScalePlace places;   // its scales

  COPPICE_INLINE void codes(int part, int j, typename V::Ints* out) const {
    load_codes<V, kind>(w, part, j, out);
  }
  // Of vector g of outputs.
  COPPICE_INLINE void scales(int group, int g, typename V::Floats& d, typename V::Floats& m) const {
    load_scales<V, kind>({places.halves + 2 * V::kLanes * g, places.bytes + V::kLanes * g}, group, d, m);
  }
};

// sum[r][g] = the bits of 1.5 * 2^23 + sum of (w - z) q over a group of block b.
template <class V, PackedKind kind, int rows, int group, class Weights>
COPPICE_INLINE void dot4_sums(const Tile& t, Weights w, std::size_t b, typename V::Ints (*sum)[2]) {
  for (int r = 0; r < rows; ++r) {
    typename V::Ints start = V::splat(kMagicBits);
    if constexpr (kZero<kind> != 0) {
      constexpr int shift = __builtin_ctz(static_cast<unsigned>(kZero<kind>));
      start =
          V::sub(start, V::template shift_left<shift>(V::splat(code_sum<kind>(t, r * t.blocks + b, group))));
    }
    sum[r][0] = sum[r][1] = start;
  }
  const std::int8_t* x = t.codes + b * kBlockInputs;
#pragma GCC unroll 8
  for (int j = 0; j < 4; ++j) {
#pragma GCC unroll 2
    for (int part = group; part < group + kGroupParts<kind>; ++part) {
      typename V::Ints codes[2];
      w.codes(part, j, codes);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const typename V::Ints q = V::four_codes(x + r * t.blocks * kBlockInputs + 16 * part + 4 * j);
        for (int g = 0; g < 2; ++g) sum[r][g] = V::dot4(sum[r][g], codes[g], q);
      }
    }
  }
}

// How many VPMADDUBSW of a kind add up in int16.
template <PackedKind kind>
constexpr int kChain = kShape<kind>.bits == 6                                            ? 2
                       : kShape<kind>.bits == 5 || kShape<kind>.levels == Levels::float4 ? 4
                                                                                         : 8;

// sum[r][g] = sum of w q over a group of block b, still with the zero point.
template <class V, PackedKind kind, int rows, int group, class Weights>
COPPICE_INLINE void pair_sums(const Tile& t, Weights w, std::size_t b, typename V::Ints (*sum)[2]) {
  constexpr int steps = 4 * kGroupParts<kind>, chain = kChain<kind> < steps ? kChain<kind> : steps;
  const std::int8_t* x = t.codes + b * kBlockInputs;
  typename V::Ints words[rows][2];
#pragma GCC unroll 8
  for (int step = 0; step < steps; ++step) {
    const int j = step / kGroupParts<kind>, part = group + step % kGroupParts<kind>;
    typename V::Ints codes[2];
    w.codes(part, j, codes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const typename V::Ints q = V::four_codes(x + r * t.blocks * kBlockInputs + 16 * part + 4 * j);
      for (int g = 0; g < 2; ++g) {
        const typename V::Ints a = V::pairs(codes[g], q);
        words[r][g] = step % chain == 0 ? a : V::add_pairs(words[r][g], a);
        if (step % chain != chain - 1) continue;
        const typename V::Ints wide = V::widen_pairs(words[r][g]);
        sum[r][g] = step < chain ? wide : V::add(sum[r][g], wide);
      }
    }
  }
}

// sum[r][g] = sum of (w - z) q over block b, for 8-bit levels.
template <class V, PackedKind kind, int rows, class Weights>
COPPICE_INLINE void signed_sums(const Tile& t, Weights w, std::size_t b, typename V::Ints (*sum)[2]) {
  const std::int8_t* x = t.codes + b * kBlockInputs;
  for (int r = 0; r < rows; ++r) sum[r][0] = sum[r][1] = V::splat(0);
  for (int pair = 0; pair < 4; ++pair) {
#pragma GCC unroll 2
    for (int side = 0; side < 2; ++side) {
      // Vectors of 8-bit codes are in the order of the inputs: all are taken for part 0's.
      const int part = kLow<kind> == 8 ? 0 : side, j = kLow<kind> == 8 ? 2 * pair + side : pair;
      typename V::Ints codes[2];
      w.codes(part, j, codes);
      const typename V::Signed weights[2] = {V::signed_codes(codes[0]), V::signed_codes(codes[1])};
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const typename V::Ints q = V::four_codes(x + r * t.blocks * kBlockInputs + 16 * part + 4 * j);
        for (int g = 0; g < 2; ++g) {
          const typename V::Ints a = V::pairs(V::size_of(weights[g]), V::with_sign_of(weights[g], q));
          sum[r][g] = V::add(sum[r][g], V::widen_pairs(a));
        }
      }
    }
  }
}

// integer[r][g] = float(I) of a group of block b (numerics 20).
template <class V, PackedKind kind, int rows, int group, class Weights>
COPPICE_INLINE void group_integers(const Tile& t, Weights w, std::size_t b,
                                   typename V::Floats (*integer)[2]) {
  typename V::Ints sum[rows][2];
  if constexpr (V::kProduct == Product::dot4) {
    dot4_sums<V, kind, rows, group>(t, w, b, sum);
  } else if constexpr (kWide<kind>) {
    signed_sums<V, kind, rows>(t, w, b, sum);
  } else {
    pair_sums<V, kind, rows, group>(t, w, b, sum);
  }
  for (int r = 0; r < rows; ++r) {
    for (int g = 0; g < 2; ++g) {
      if constexpr (V::kProduct == Product::dot4) {
        integer[r][g] = V::sub(V::bits_of(sum[r][g]), V::splat(kMagic));
      } else if constexpr (kZero<kind> != 0 && !kWide<kind>) {
        const std::int32_t zeros = kZero<kind> * code_sum<kind>(t, r * t.blocks + b, group);
        integer[r][g] = V::float_of(V::sub(sum[r][g], V::splat(zeros)));
      } else {
        integer[r][g] = V::float_of(sum[r][g]);
      }
    }
  }
}

// Adds a group of block b to the accumulators.
template <class V, PackedKind kind, int rows, int group, class Weights>
COPPICE_INLINE void add_group(const Tile& t, Weights w, std::size_t b, typename V::Floats (*acc)[2]) {
  typename V::Floats integer[rows][2];
  group_integers<V, kind, rows, group>(t, w, b, integer);
  for (int g = 0; g < 2; ++g) {
    typename V::Floats d, m;
    w.scales(group, g, d, m);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const std::size_t at = r * t.blocks + b;
      acc[r][g] = V::fma(V::mul(d, V::splat(t.scales[at])), integer[r][g], acc[r][g]);
      if constexpr (kOffset<kind>)
        acc[r][g] = V::fma(m, V::splat(scaled_code_sum<kind>(t, at, group)), acc[r][g]);
    }
  }
}

// Outputs 2 * kLanes * part and on of the group.
template <class V, PackedKind kind, int rows>
void tile_product(const Tile& t, int part, Fetch& ahead) {
  typename V::Floats acc[rows][2];
  for (auto& row : acc) row[0] = row[1] = V::zero();
  const std::byte* unit = t.group;
  Fetch fetch = ahead;
  for (std::size_t b = 0; b < t.blocks; unit += kUnit<kind>) {
    const std::byte* w = unit + kHalf<kind> * static_cast<std::size_t>(part);
    for (int i = 0; i < kUnitBlocks<kind>; ++i, ++b, w += kBlock<kind>) {
      fetch.step();
      const PackedWeights<V, kind> weights{w, scales_of<kind>(unit, i, 2 * V::kLanes * part)};
      add_group<V, kind, rows, 0>(t, weights, b, acc);
      if constexpr (kGroups<kind> == 2) add_group<V, kind, rows, 1>(t, weights, b, acc);
    }
  }
  ahead = fetch;
  for (int r = 0; r < rows; ++r)
    for (int g = 0; g < 2; ++g)
      V::store(t.y + static_cast<std::size_t>(r) * t.y_stride + V::kLanes * (2 * part + g), acc[r][g]);
}

template <class V>
constexpr int kParts = kGroupOutputs / (2 * V::kLanes);

// The most rows of a tile. Kinds met less often have fewer, as every number of rows is a copy of the kernel.
template <class V, PackedKind kind>
constexpr int kMostRows =
    kind <= PackedKind::q8 || kind == PackedKind::q4_super || kind == PackedKind::q6_super || V::kRows < 4
        ? V::kRows
        : 4;

template <class V, PackedKind kind, int rows = kMostRows<V, kind>>
void tile_rows(const Tile& t, int count, Fetch& fetch) {
  if (count == rows) {
    for (int part = 0; part < kParts<V>; ++part) tile_product<V, kind, rows>(t, part, fetch);
    return;
  }
  if constexpr (rows > 1) tile_rows<V, kind, rows - 1>(t, count, fetch);
}

// Rows of a pass, divided as evenly as can be into as few parts of at most `most` as possible.
struct RowParts {
  RowParts(int rows_, int most) : rows(rows_), parts((rows_ + most - 1) / most) {}
  // How many the next part has, where `part` parts and `row` rows are done.
  COPPICE_INLINE int next(int part, int row) const {
    return (rows - row + parts - part - 1) / (parts - part);
  }
  int rows, parts;
};

template <class V, PackedKind kind>
void tiles_of(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  int most = kMostRows<V, kind>;
  if constexpr (requires { V::kManyRows; })
    if (task.rows > V::kRows && most > V::kManyRows) most = V::kManyRows;
  const RowParts tiles(task.rows, most);
  Fetch fetch = fetch_of<kind>(task, w, group_begin, group_end, kParts<V> * tiles.parts, V::kAhead);
  for (int g = group_begin; g < group_end; ++g) {
    Tile t = first_tile(task, w, g);
    for (int tile = 0, row = 0; tile < tiles.parts; ++tile) {
      const int rows = tiles.next(tile, row);
      t.fetch_outputs(static_cast<std::size_t>(rows));
      tile_rows<V, kind>(t, rows, fetch);
      t.skip(static_cast<std::size_t>(rows));
      row += rows;
    }
  }
}

}  // namespace
}  // namespace coppice::core
