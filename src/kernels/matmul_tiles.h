// The quantised product with AMX (numerics 22). A tile of activations is up to 16 rows x 32 inputs, one
// group (of 16 inputs where a scale is for so many); a tile of weights is as many inputs x 16 outputs, as the
// packed layout has it; their product is 16 x 16 exact sums over the group, which vectors then add to the
// accumulators.
//
// Weights are unpacked into signed bytes less their zero point, four groups at a time and once for all rows
// (up to 64), so that the sums need no correction. Four groups' sums are stored before they are added up: the
// accumulators, which are parked in L1, are then loaded and stored once in four groups.
//
// V: 16 lanes (lanes_512.h); T: the tile registers (tiles_amx.h). A test emulates both.
#pragma once

#include "kernels/matmul_lanes.h"
#include "kernels/tile_shapes.h"

namespace coppice::core {
namespace {

constexpr int kTileRows = 16;
constexpr int kTilesAtOnce = 4;
constexpr int kRowsAtOnce = kTilesAtOnce * kTileRows;
constexpr int kChunk = 4;  // groups

struct TileBuffers {
  alignas(64) std::int8_t weights[kChunk][2][8][64];        // [group][half][inputs / 4][output, input % 4]
  alignas(64) float d[kChunk][kGroupOutputs];               // scales
  alignas(64) float m[kChunk][kGroupOutputs];               // offsets
  alignas(64) std::int32_t sums[kChunk][2][kTileRows][16];  // [group][half][row][output]
  alignas(64) float acc[kRowsAtOnce][kGroupOutputs];
};

// Registers: sums of both halves, activations (each for the larger and the smaller of two sizes of tiles,
// which are one row apart), weights of both halves.
template <bool large>
struct Registers {
  static constexpr int kSums0 = large ? 0 : 2, kSums1 = large ? 1 : 3, kRows = large ? 4 : 5;
};
constexpr int kWeights0 = 6, kWeights1 = 7;

// Tiles of 16 or 32 inputs.
TileShapes shapes_of(int large_rows, int small_rows, int inputs) {
  TileShapes shapes;
  for (const int i : {0, 1, 4}) shapes.rows[i] = static_cast<std::uint8_t>(large_rows);
  for (const int i : {2, 3, 5}) shapes.rows[i] = static_cast<std::uint8_t>(small_rows);
  for (int i = 0; i < 6; ++i)
    shapes.row_bytes[i] = static_cast<std::uint16_t>(shapes.rows[i] == 0 ? 0 : i < 4 ? 64 : inputs);
  for (const int i : {kWeights0, kWeights1})
    shapes.rows[i] = static_cast<std::uint8_t>(inputs / 4), shapes.row_bytes[i] = 64;
  return shapes;
}

// A group of the weights, as the `at`-th of the buffers. `block` is one of the unit's.
template <class V, PackedKind kind, int group>
COPPICE_INLINE void unpack_group(const std::byte* unit, int block, int at, TileBuffers& buffers) {
  const std::byte* w = unit + kBlock<kind> * static_cast<std::size_t>(block);
#pragma GCC unroll 2
  for (int part = 0; part < kGroupParts<kind>; ++part)
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      typename V::Ints codes[2];
      load_codes<V, kind>(w, group + part, j, codes);
      for (int g = 0; g < 2; ++g) {
        if constexpr (kZero<kind> != 0) codes[g] = V::template less<kZero<kind>>(codes[g]);
        V::store(buffers.weights[at][g][4 * part + j], codes[g]);
      }
    }
  for (int g = 0; g < 2; ++g) {
    typename V::Floats d, m;
    load_scales<V, kind>(scales_of<kind>(unit, block, 16 * g), group, d, m);
    V::store(buffers.d[at] + 16 * g, d);
    if constexpr (kOffset<kind>) V::store(buffers.m[at] + 16 * g, m);
  }
}

// Groups i .. i + n - 1 of all inputs.
template <class V, PackedKind kind>
COPPICE_INLINE void unpack_groups(const std::byte* weights, int i, int n, TileBuffers& buffers) {
  for (int at = 0; at < n; at += kGroups<kind>) {
    const int block = (i + at) / kGroups<kind>;
    const std::byte* unit = weights + kUnit<kind> * static_cast<std::size_t>(block / kUnitBlocks<kind>);
    unpack_group<V, kind, 0>(unit, block % kUnitBlocks<kind>, at, buffers);
    if constexpr (kGroups<kind> == 2)
      unpack_group<V, kind, 1>(unit, block % kUnitBlocks<kind>, at + 1, buffers);
  }
}

// The sums of groups first .. first + n - 1 for the rows at t.
template <class T, PackedKind kind, bool large>
COPPICE_INLINE void tile_sums(T& tiles, const Tile& t, std::size_t first, int n, TileBuffers& buffers,
                              Fetch& fetch) {
  using R = Registers<large>;
  for (int at = 0; at < n; ++at) {
    if (at % kGroups<kind> == 0) fetch.step();
    tiles.template load<R::kRows>(
        t.codes + (first + static_cast<std::size_t>(at)) * (kBlockInputs / kGroups<kind>),
        t.blocks * kBlockInputs);
    tiles.template load<kWeights0>(buffers.weights[at][0], 64);
    tiles.template zero<R::kSums0>();
    tiles.template dot<R::kSums0, R::kRows, kWeights0>();
    tiles.template load<kWeights1>(buffers.weights[at][1], 64);
    tiles.template zero<R::kSums1>();
    tiles.template dot<R::kSums1, R::kRows, kWeights1>();
    tiles.template store<R::kSums0>(buffers.sums[at][0], 64);
    tiles.template store<R::kSums1>(buffers.sums[at][1], 64);
  }
}

// Adds the sums of `rows` rows from `first` of the tile on to their accumulators.
template <class V, PackedKind kind, int rows>
COPPICE_INLINE void add_sums(const Tile& t, int first, std::size_t group, int n, const TileBuffers& buffers,
                             float (*acc)[kGroupOutputs]) {
  typename V::Floats a[rows][2];
  for (int r = 0; r < rows; ++r)
    for (int g = 0; g < 2; ++g) a[r][g] = V::load(acc[first + r] + 16 * g);
  for (int at = 0; at < n; ++at) {
    for (int g = 0; g < 2; ++g) {
      const typename V::Floats d = V::load(buffers.d[at] + 16 * g), m = V::load(buffers.m[at] + 16 * g);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const std::size_t i = static_cast<std::size_t>(first + r) * t.blocks +
                              (group + static_cast<std::size_t>(at)) / kGroups<kind>;
        const typename V::Floats integer = V::float_of(V::load(buffers.sums[at][g][first + r]));
        a[r][g] = V::fma(V::mul(d, V::splat(t.scales[i])), integer, a[r][g]);
        if constexpr (kOffset<kind>)
          a[r][g] = V::fma(m, V::splat(scaled_code_sum<kind>(t, i, at % kGroups<kind>)), a[r][g]);
      }
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int g = 0; g < 2; ++g) V::store(acc[first + r] + 16 * g, a[r][g]);
}

template <class V, class T, PackedKind kind, bool large>
void tile_chunk(T& tiles, const Tile& t, int rows, std::size_t group, int n, TileBuffers& buffers,
                float (*acc)[kGroupOutputs], Fetch& ahead) {
  Fetch fetch = ahead;
  tile_sums<T, kind, large>(tiles, t, group, n, buffers, fetch);
  ahead = fetch;
  int r = 0;
  for (; r + 4 <= rows; r += 4) add_sums<V, kind, 4>(t, r, group, n, buffers, acc);
  for (; r < rows; ++r) add_sums<V, kind, 1>(t, r, group, n, buffers, acc);
}

// How the rows of a pass become tiles, as even as can be: the first `large` of `tiles` have `rows` rows, the
// others one fewer.
struct Split {
  explicit Split(int count)
      : tiles((count + kTileRows - 1) / kTileRows),
        rows((count + tiles - 1) / tiles),
        large(count - tiles * (rows - 1)) {}
  int tiles, rows, large;
};

// Tiles first .. last - 1, whose first row is at t.
template <class V, class T, PackedKind kind>
void tiles_product(T& tiles, const Tile& t, const Split& split, int first, int last, Fetch& fetch) {
  TileBuffers buffers;
  for (auto& row : buffers.acc)
    for (int g = 0; g < 2; ++g) V::store(row + 16 * g, V::zero());
  const auto groups = static_cast<int>(t.blocks) * kGroups<kind>;
  int rows = 0;
  for (int i = 0; i < groups; i += kChunk) {
    const int n = groups - i < kChunk ? groups - i : kChunk;
    const auto group = static_cast<std::size_t>(i);
    unpack_groups<V, kind>(t.group, i, n, buffers);
    Tile tile = t;
    rows = 0;
    for (int j = first; j < last; ++j) {
      const int count = j < split.large ? split.rows : split.rows - 1;
      if (j < split.large) {
        tile_chunk<V, T, kind, true>(tiles, tile, count, group, n, buffers, buffers.acc + rows, fetch);
      } else {
        tile_chunk<V, T, kind, false>(tiles, tile, count, group, n, buffers, buffers.acc + rows, fetch);
      }
      tile.skip(static_cast<std::size_t>(count));
      rows += count;
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int g = 0; g < 2; ++g)
      V::store(t.y + static_cast<std::size_t>(r) * t.y_stride + 16 * g, V::load(buffers.acc[r] + 16 * g));
}

template <class V, class T, PackedKind kind>
void tiles_product_of(T& tiles, const Split& split, const MatmulTask& task, const WeightsView& w,
                      int group_begin, int group_end) {
  tiles.configure(shapes_of(split.rows, split.large < split.tiles ? split.rows - 1 : 0, kShape<kind>.group));
  Fetch fetch = fetch_of<kind>(task, w, group_begin, group_end, split.tiles, V::kAhead);
  for (int g = group_begin; g < group_end; ++g) {
    Tile t = first_tile(task, w, g);
    for (int first = 0; first < split.tiles; first += kTilesAtOnce) {
      const int last = first + kTilesAtOnce < split.tiles ? first + kTilesAtOnce : split.tiles;
      tiles_product<V, T, kind>(tiles, t, split, first, last, fetch);
      const int large = split.large < first ? 0 : split.large < last ? split.large - first : last - first;
      t.skip(static_cast<std::size_t>((last - first) * (split.rows - 1) + large));
    }
  }
}

template <class V, class T, PackedKind... kinds>
void tiles_product_of_some(KindList<kinds...>, T& tiles, const MatmulTask& task, const WeightsView& w,
                           int group_begin, int group_end) {
  const Split split(task.rows);
  ((w.kind == kinds ? tiles_product_of<V, T, kinds>(tiles, split, task, w, group_begin, group_end) : void()),
   ...);
}

template <class V, class T>
void tiles_matmul(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  if (task.rows < 1 || group_begin >= group_end) return;
  T tiles;
  tiles_product_of_some<V>(QuantisedKinds(), tiles, task, w, group_begin, group_end);
  tiles.release();
}

}  // namespace
}  // namespace coppice::core
