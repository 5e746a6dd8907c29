// The product for many rows, as prompts and wide trees have: a stretch of blocks of a tile's outputs is
// unpacked once into a panel, and all rows go over it, tile by tile, their accumulators parked between
// stretches; both stay in L1. With VPDPBUSD a tile of 6 rows over packed 4-bit weights with offsets does 174
// vector operations a block, 30 of which unpack; here it does the other 144. Each accumulator still takes its
// blocks one by one in ascending order (numerics 7).
//
// For vectors that name the rows of a panel's tile, V::kPanelTile; the others have tiles of packed weights
// alone (matmul_lanes.h).
#pragma once

#include "kernels/matmul_lanes.h"

namespace coppice::core {
namespace {

constexpr int kPanelBlocks = 8;       // a whole unit of every kind
constexpr int kPanelRows = 64;        // whose accumulators are parked: with the panel, 18 to 20 KB
constexpr int kFewestForPanels = 16;  // rows of a pass: with fewer, unpacking costs as much as it saves
static_assert(kPanelBlocks % kSuperBlocks == 0);

// A block of unpacked weights of two vectors of outputs: codes of every four inputs, and the scales of its
// one or two groups as floats.
template <class V, PackedKind kind>
struct PanelBlock {
  alignas(64) std::int8_t codes[8][2][4 * V::kLanes];
  alignas(64) float d[kGroups<kind>][2][V::kLanes];
  alignas(64) float m[kOffset<kind> ? kGroups<kind> : 1][2][V::kLanes];
};

template <class V, PackedKind kind>
struct PanelWeights {
  const PanelBlock<V, kind>* block;

  COPPICE_INLINE void codes(int part, int j, typename V::Ints* out) const {
    for (int g = 0; g < 2; ++g)
      out[g] = V::load(reinterpret_cast<const std::byte*>(block->codes[4 * part + j][g]));
  }
  COPPICE_INLINE void scales(int group, int g, typename V::Floats& d, typename V::Floats& m) const {
    d = V::load(block->d[group][g]);
    if constexpr (kOffset<kind>) m = V::load(block->m[group][g]);
  }
};

template <class V, PackedKind kind>
COPPICE_INLINE void unpack_block(const PackedWeights<V, kind>& from, PanelBlock<V, kind>& to) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    // In the order of addresses: the low and high bits of one vector are parts 0 and 1.
    const int part = i % 2, j = i / 2;
    typename V::Ints codes[2];
    from.codes(part, j, codes);
    for (int g = 0; g < 2; ++g) V::store(to.codes[4 * part + j][g], codes[g]);
  }
#pragma GCC unroll 2
  for (int group = 0; group < kGroups<kind>; ++group)
    for (int g = 0; g < 2; ++g) {
      typename V::Floats d, m;
      from.scales(group, g, d, m);
      V::store(to.d[group][g], d);
      if constexpr (kOffset<kind>) V::store(to.m[group][g], m);
    }
}

template <class V, PackedKind kind>
struct Panel {
  // Blocks [first, first + count) of the tile's outputs of part `part`.
  void unpack(const Tile& t, int part, std::size_t first_block, int blocks) {
    first = first_block;
    count = blocks;
    for (int i = 0; i < count; ++i) {
      const std::size_t b = first + static_cast<std::size_t>(i);
      const std::byte* unit = t.group + kUnit<kind> * (b / kUnitBlocks<kind>);
      const int within = static_cast<int>(b % kUnitBlocks<kind>);
      const std::byte* w = unit + kBlock<kind> * static_cast<std::size_t>(within) +
                           kHalf<kind> * static_cast<std::size_t>(part);
      unpack_block<V, kind>({w, scales_of<kind>(unit, within, 2 * V::kLanes * part)}, block[i]);
    }
    // The last stretch's sums are what the product gives.
    ends = first + static_cast<std::size_t>(count) == t.blocks;
    y_offset = static_cast<std::size_t>(2 * V::kLanes * part);
  }

  PanelBlock<V, kind> block[kPanelBlocks];
  alignas(64) float sums[kPanelRows][2 * V::kLanes];
  std::size_t first, y_offset;
  int count;
  bool ends;
};

// The panel's blocks for `rows` rows at t, the `row`-th and on of those whose sums are parked.
template <class V, PackedKind kind, int rows>
void panel_tile(const Tile& t, Panel<V, kind>& panel, int row, Fetch& ahead) {
  typename V::Floats acc[rows][2];
  float(*parked)[2 * V::kLanes] = panel.sums + row;
  for (int r = 0; r < rows; ++r)
    for (int g = 0; g < 2; ++g) acc[r][g] = panel.first == 0 ? V::zero() : V::load(parked[r] + V::kLanes * g);
  Fetch fetch = ahead;
  for (int i = 0; i < panel.count; ++i) {
    fetch.step();
    const PanelWeights<V, kind> weights{&panel.block[i]};
    const std::size_t b = panel.first + static_cast<std::size_t>(i);
    add_group<V, kind, rows, 0>(t, weights, b, acc);
    if constexpr (kGroups<kind> == 2) add_group<V, kind, rows, 1>(t, weights, b, acc);
  }
  ahead = fetch;
  for (int r = 0; r < rows; ++r)
    for (int g = 0; g < 2; ++g) {
      float* to = panel.ends ? t.y + static_cast<std::size_t>(r) * t.y_stride + panel.y_offset : parked[r];
      V::store(to + V::kLanes * g, acc[r][g]);
    }
}

// The most rows of a tile, and the fewest where they are twice as many or more.
template <class V, PackedKind kind>
constexpr int kMostPanelRows = kMostRows<V, kind> < V::kPanelTile ? kMostRows<V, kind> : V::kPanelTile;
template <class V, PackedKind kind>
constexpr int kFewestPanelRows = (2 * kMostPanelRows<V, kind> + 1) / 3;

template <class V, PackedKind kind, int rows = kMostPanelRows<V, kind>>
void panel_tile_of(const Tile& t, int count, Panel<V, kind>& panel, int row, Fetch& fetch) {
  if (count == rows) return panel_tile<V, kind, rows>(t, panel, row, fetch);
  if constexpr (rows > kFewestPanelRows<V, kind>)
    panel_tile_of<V, kind, rows - 1>(t, count, panel, row, fetch);
}

// The rows at t that become `tiles`, kPanelRows at most, over one part of the outputs of its group.
template <class V, PackedKind kind>
void panel_product(const Tile& t, int part, const RowParts& tiles, Fetch& fetch) {
  Panel<V, kind> panel;
  // Stretches as even as whole units allow.
  const int blocks = static_cast<int>(t.blocks), stretches = (blocks + kPanelBlocks - 1) / kPanelBlocks;
  const int length = kUnitBlocks<kind> == 1 ? (blocks + stretches - 1) / stretches : kPanelBlocks;
  for (int first = 0; first < blocks; first += length) {
    panel.unpack(t, part, static_cast<std::size_t>(first), blocks - first < length ? blocks - first : length);
    Tile tile = t;
    for (int i = 0, row = 0; i < tiles.parts; ++i) {
      const int rows = tiles.next(i, row);
      if (first == 0) tile.fetch_outputs(static_cast<std::size_t>(rows));
      panel_tile_of<V, kind>(tile, rows, panel, row, fetch);
      tile.skip(static_cast<std::size_t>(rows));
      row += rows;
    }
  }
}

template <class V, PackedKind kind>
void panels_of(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  static_assert(kFewestForPanels >= 2 * kMostPanelRows<V, kind>);
  const RowParts sections(task.rows, kPanelRows);
  int tiles = 0;
  for (int section = 0, row = 0; section < sections.parts; ++section) {
    const int rows = sections.next(section, row);
    tiles += RowParts(rows, kMostPanelRows<V, kind>).parts;
    row += rows;
  }
  Fetch fetch = fetch_of<kind>(task, w, group_begin, group_end, kParts<V> * tiles, V::kAhead);
  for (int g = group_begin; g < group_end; ++g) {
    Tile t = first_tile(task, w, g);
    for (int section = 0, row = 0; section < sections.parts; ++section) {
      const int rows = sections.next(section, row);
      for (int part = 0; part < kParts<V>; ++part)
        panel_product<V, kind>(t, part, RowParts(rows, kMostPanelRows<V, kind>), fetch);
      t.skip(static_cast<std::size_t>(rows));
      row += rows;
    }
  }
}

template <class V, PackedKind kind>
void product_of(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  // Codes of 8 bits need no unpacking: a copy of them was 2% slower.
  if constexpr (requires { V::kPanelTile; } && kLow<kind> < 8)
    if (task.rows >= kFewestForPanels) return panels_of<V, kind>(task, w, group_begin, group_end);
  tiles_of<V, kind>(task, w, group_begin, group_end);
}

template <class V, PackedKind... kinds>
void product_of_some(KindList<kinds...>, const MatmulTask& task, const WeightsView& w, int group_begin,
                     int group_end) {
  ((w.kind == kinds ? product_of<V, kinds>(task, w, group_begin, group_end) : void()), ...);
}

template <class V>
void lanes_matmul(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end) {
  product_of_some<V>(QuantisedKinds(), task, w, group_begin, group_end);
}

}  // namespace
}  // namespace coppice::core
