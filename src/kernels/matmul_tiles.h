// The quantised product with AMX (numerics 22). A tile of activations is up to 16 rows x 32 inputs, one
// block; a tile of weights is 32 inputs x 16 outputs, as the packed layout has it; their product is 16 x 16
// exact sums over the block, which vectors then add to the accumulators.
//
// Weights are unpacked into signed bytes less their zero point, four blocks at a time and once for all rows
// (up to 64), so that the sums need no correction. Four blocks' sums are stored before they are added up: the
// accumulators, which are parked in L1, are then loaded and stored once in four blocks.
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
constexpr int kChunk = 4;  // blocks

struct TileBuffers {
  alignas(64) std::int8_t weights[kChunk][2][8][64];        // [block][half][inputs / 4][output, input % 4]
  alignas(64) float d[kChunk][kGroupOutputs];               // scales
  alignas(64) float m[kChunk][kGroupOutputs];               // offsets
  alignas(64) std::int32_t sums[kChunk][2][kTileRows][16];  // [block][half][row][output]
  alignas(64) float acc[kRowsAtOnce][kGroupOutputs];
};

// Registers: sums of both halves, activations (each for the larger and the smaller of two sizes of tiles,
// which are one row apart), weights of both halves.
template <bool large>
struct Registers {
  static constexpr int kSums0 = large ? 0 : 2, kSums1 = large ? 1 : 3, kRows = large ? 4 : 5;
};
constexpr int kWeights0 = 6, kWeights1 = 7;

TileShapes shapes_of(int large_rows, int small_rows) {
  TileShapes shapes;
  for (const int i : {0, 1, 4}) shapes.rows[i] = static_cast<std::uint8_t>(large_rows);
  for (const int i : {2, 3, 5}) shapes.rows[i] = static_cast<std::uint8_t>(small_rows);
  for (int i = 0; i < 6; ++i) shapes.row_bytes[i] = shapes.rows[i] == 0 ? 0 : i < 4 ? 64 : 32;
  for (const int i : {kWeights0, kWeights1}) shapes.rows[i] = 8, shapes.row_bytes[i] = 64;
  return shapes;
}

template <class V, PackedKind kind>
COPPICE_INLINE void unpack_block(const std::byte* w, int at, TileBuffers& buffers) {
  for (int part = 0; part < 2; ++part)
    for (int j = 0; j < 4; ++j) {
      typename V::Ints codes[2];
      load_codes<V, kind>(w, part, j, codes);
      for (int g = 0; g < 2; ++g) {
        if constexpr (kind == PackedKind::q4) codes[g] = V::less_eight(codes[g]);
        if constexpr (kind == PackedKind::q8) codes[g] = V::less_128(codes[g]);
        V::store(buffers.weights[at][g][4 * part + j], codes[g]);
      }
    }
  for (int g = 0; g < 2; ++g) {
    V::store(buffers.d[at] + 16 * g, V::halves(w + kScales<kind> + 32 * g));
    if constexpr (kind == PackedKind::q4_offset)
      V::store(buffers.m[at] + 16 * g, V::halves(w + kScales<kind> + 64 + 32 * g));
  }
}

// The sums of blocks b .. b + n - 1 for the rows at t.
template <class T, bool large>
COPPICE_INLINE void tile_sums(T& tiles, const Tile& t, std::size_t b, int n, TileBuffers& buffers,
                              Fetch& fetch) {
  using R = Registers<large>;
  for (int at = 0; at < n; ++at) {
    fetch.step();
    tiles.template load<R::kRows>(t.codes + (b + static_cast<std::size_t>(at)) * kBlockInputs,
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
COPPICE_INLINE void add_sums(const Tile& t, int first, std::size_t b, int n, const TileBuffers& buffers,
                             float (*acc)[kGroupOutputs]) {
  typename V::Floats a[rows][2];
  for (int r = 0; r < rows; ++r)
    for (int g = 0; g < 2; ++g) a[r][g] = V::load(acc[first + r] + 16 * g);
  for (int at = 0; at < n; ++at) {
    for (int g = 0; g < 2; ++g) {
      const typename V::Floats d = V::load(buffers.d[at] + 16 * g), m = V::load(buffers.m[at] + 16 * g);
#pragma GCC unroll 4
      for (int r = 0; r < rows; ++r) {
        const std::size_t i =
            static_cast<std::size_t>(first + r) * t.blocks + b + static_cast<std::size_t>(at);
        const typename V::Floats integer = V::float_of(V::load(buffers.sums[at][g][first + r]));
        a[r][g] = V::fma(V::mul(d, V::splat(t.scales[i])), integer, a[r][g]);
        if constexpr (kind == PackedKind::q4_offset) a[r][g] = V::fma(m, V::splat(t.scaled_sums[i]), a[r][g]);
      }
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int g = 0; g < 2; ++g) V::store(acc[first + r] + 16 * g, a[r][g]);
}

template <class V, class T, PackedKind kind, bool large>
void tile_chunk(T& tiles, const Tile& t, int rows, std::size_t b, int n, TileBuffers& buffers,
                float (*acc)[kGroupOutputs], Fetch& ahead) {
  Fetch fetch = ahead;
  tile_sums<T, large>(tiles, t, b, n, buffers, fetch);
  ahead = fetch;
  int r = 0;
  for (; r + 4 <= rows; r += 4) add_sums<V, kind, 4>(t, r, b, n, buffers, acc);
  for (; r < rows; ++r) add_sums<V, kind, 1>(t, r, b, n, buffers, acc);
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
  const auto blocks = static_cast<int>(t.blocks);
  int rows = 0;
  for (int b = 0; b < blocks; b += kChunk) {
    const int n = blocks - b < kChunk ? blocks - b : kChunk;
    const auto block = static_cast<std::size_t>(b);
    for (int at = 0; at < n; ++at)
      unpack_block<V, kind>(t.group + kUnit<kind> * (block + static_cast<std::size_t>(at)), at, buffers);
    Tile tile = t;
    rows = 0;
    for (int i = first; i < last; ++i) {
      const int count = i < split.large ? split.rows : split.rows - 1;
      if (i < split.large) {
        tile_chunk<V, T, kind, true>(tiles, tile, count, block, n, buffers, buffers.acc + rows, fetch);
      } else {
        tile_chunk<V, T, kind, false>(tiles, tile, count, block, n, buffers, buffers.acc + rows, fetch);
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

template <class V, class T>
void tiles_matmul(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  if (task.rows < 1 || group_begin >= group_end) return;
  const Split split(task.rows);
  T tiles;
  tiles.configure(shapes_of(split.rows, split.large < split.tiles ? split.rows - 1 : 0));
  if (w.kind == PackedKind::q4)
    tiles_product_of<V, T, PackedKind::q4>(tiles, split, task, w, group_begin, group_end);
  if (w.kind == PackedKind::q4_offset)
    tiles_product_of<V, T, PackedKind::q4_offset>(tiles, split, task, w, group_begin, group_end);
  if (w.kind == PackedKind::q8)
    tiles_product_of<V, T, PackedKind::q8>(tiles, split, task, w, group_begin, group_end);
  tiles.release();
}

}  // namespace
}  // namespace coppice::core
