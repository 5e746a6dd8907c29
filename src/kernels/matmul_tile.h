// What the integer products of all instruction sets share: a tile of rows over one group of 32 outputs, and
// the fetching of weights ahead of their use. Included by ISA files only: everything is in an anonymous
// namespace.
#pragma once

#include "kernels/isa_begin.h"
#include "kernels/isa_tables.h"

namespace coppice::core {
namespace {

template <PackedKind kind>
constexpr PackedShape kShape = shape_of(kind);
template <PackedKind kind>
constexpr std::size_t kHalf = half_bytes(kShape<kind>);  // codes of 16 outputs, of a block
template <PackedKind kind>
constexpr std::size_t kBlock = codes_bytes(kShape<kind>);
template <PackedKind kind>
constexpr std::size_t kScales = scales_at(kShape<kind>);
template <PackedKind kind>
constexpr std::size_t kSubs = subs_at(kShape<kind>);
template <PackedKind kind>
constexpr std::size_t kSubsBytes = subs_bytes(kShape<kind>);  // of a block
template <PackedKind kind>
constexpr std::size_t kUnit = unit_bytes(kShape<kind>);
template <PackedKind kind>
constexpr int kUnitBlocks = unit_blocks(kShape<kind>);
template <PackedKind kind>
constexpr int kZero = kShape<kind>.zero;
template <PackedKind kind>
constexpr int kLow = low_bits(kShape<kind>);
template <PackedKind kind>
constexpr int kHigh = high_bits(kShape<kind>);
template <PackedKind kind>
constexpr bool kSuper = kShape<kind>.scale == ScaleType::super_bytes;
template <PackedKind kind>
constexpr bool kOffset = kShape<kind>.offset;
// A block's groups of inputs that have a scale of their own. With two, group 0 is part 0 of the block's codes
// (packed_shape.h) and group 1 is part 1.
template <PackedKind kind>
constexpr int kGroups = kBlockInputs / kShape<kind>.group;
template <PackedKind kind>
constexpr int kGroupParts = 2 / kGroups<kind>;
// Whether levels reach beyond 6 bits, so that the sums of two products alone fit int16.
template <PackedKind kind>
constexpr bool kWide = kZero<kind> == 128;

template <PackedKind... kinds>
struct KindList {};
using QuantisedKinds =
    KindList<PackedKind::q4, PackedKind::q4_offset, PackedKind::q8, PackedKind::q5, PackedKind::q5_offset,
             PackedKind::q4_table, PackedKind::q4_power, PackedKind::q2_super, PackedKind::q3_super,
             PackedKind::q4_super, PackedKind::q5_super, PackedKind::q6_super, PackedKind::q4_table_super>;

// Where a block's scales and mins lie, of one output of the group: d and m of its unit, its bytes.
struct ScalePlace {
  const std::byte* halves;
  const std::byte* bytes;
};

// Of block b of a group of weights and output `output`.
template <PackedKind kind>
COPPICE_INLINE ScalePlace scales_of(const std::byte* unit, int block, int output) {
  return {unit + kScales<kind> + 2 * output,
          unit + kSubs<kind> + kSubsBytes<kind> * static_cast<std::size_t>(block) + output};
}

// Fetches weights into L2 some way ahead of their use (numerics 21): first what is left of the thread's own
// share, then the beginning of what it will read next. A group is read once for each tile of rows, so every
// step of every tile fetches its part of the group that is to come: memory is then busy all the time, not
// only during the first tile.
struct Fetch {
  const char* at;
  const char* end;     // of the run
  std::size_t lines;   // a step
  WeightStretch rest;  // the runs behind this one
  WeightStretch next;  // then these

  COPPICE_INLINE void step() {
    for (std::size_t i = 0; i < lines; ++i) __builtin_prefetch(at + 64 * i, 0, 2);
    at += 64 * lines;
    if (at >= end) next_run();
  }
  void next_run() {
    if (rest.runs == 0) {
      rest = next;
      next.runs = 0;
    }
    if (rest.runs == 0) {
      lines = 0;
      end = reinterpret_cast<const char*>(~std::uintptr_t{0});
      return;
    }
    at = reinterpret_cast<const char*>(rest.begin);
    end = at + rest.bytes;
    rest.begin += rest.stride;
    --rest.runs;
  }
};

struct Tile {
  const std::byte* group;  // of 32 outputs
  std::size_t blocks;
  const std::int8_t* codes;       // [rows, blocks * 32]
  const float* scales;            // [rows, blocks]
  const float* scaled_sums;       // [rows, blocks]
  const std::int32_t* sums;       // [rows, blocks]
  const std::int32_t* half_sums;  // [rows, blocks]
  float* y;
  std::size_t y_stride;

  // Asks for the lines the tile will write, which may be in memory or in another core's cache: stores retire
  // one behind the other, and with many rows they would wait for each other's lines longer than the tile
  // computes.
  void fetch_outputs(std::size_t rows) const {
    for (std::size_t r = 0; r < rows; ++r) {
      __builtin_prefetch(y + r * y_stride, 1, 3);
      __builtin_prefetch(y + r * y_stride + kHalfOutputs, 1, 3);
    }
  }

  void skip(std::size_t rows) {
    const std::size_t n = rows * blocks;
    codes += n * kBlockInputs;
    scales += n;
    scaled_sums += n;
    sums += n;
    half_sums += n;
    y += rows * y_stride;
  }
};

Tile first_tile(const MatmulTask& task, const WeightsView& w, int group) {
  return {w.data + static_cast<std::size_t>(group) * w.group_stride,
          static_cast<std::size_t>(w.inputs / kBlockInputs),
          task.q.codes,
          task.q.scales,
          task.q.scaled_sums,
          task.q.sums,
          task.q.half_sums,
          task.y + group * kGroupOutputs,
          task.y_stride};
}

// Of group `group` of a block: the sum of its codes, and times its scale. `at`: row * blocks + block.
template <PackedKind kind>
COPPICE_INLINE std::int32_t code_sum(const Tile& t, std::size_t at, int group) {
  if constexpr (kGroups<kind> == 1) return t.sums[at];
  return group == 0 ? t.half_sums[at] : t.sums[at] - t.half_sums[at];
}
template <PackedKind kind>
COPPICE_INLINE float scaled_code_sum(const Tile& t, std::size_t at, int group) {
  if constexpr (kGroups<kind> == 1) return t.scaled_sums[at];
  return t.scales[at] * static_cast<float>(code_sum<kind>(t, at, group));
}

// `tiles`: how often each group will be read.
template <PackedKind kind>
Fetch fetch_of(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end, int tiles,
               std::size_t ahead) {
  const auto groups = static_cast<std::size_t>(group_end - group_begin);
  const auto n = static_cast<std::size_t>(tiles);
  Fetch fetch = {};
  const std::size_t steps = n * static_cast<std::size_t>(kUnitBlocks<kind>);
  fetch.lines = (kUnit<kind> / 64 + steps - 1) / steps;
  fetch.next = task.next;
  fetch.rest.begin = w.data + static_cast<std::size_t>(group_begin) * w.group_stride;
  fetch.rest.stride = w.group_stride;
  const bool one_run = w.group_bytes == w.group_stride;
  fetch.rest.runs = one_run ? 1 : groups;
  fetch.rest.bytes = one_run ? groups * w.group_bytes : w.group_bytes;
  const std::size_t skipped = one_run ? 0 : ahead / w.group_bytes;  // runs
  if (skipped >= fetch.rest.runs) {
    fetch.rest.runs = 0;
  } else {
    fetch.rest.begin += skipped * w.group_stride;
    fetch.rest.runs -= skipped;
    ahead -= skipped * w.group_bytes;
  }
  const bool own = fetch.rest.runs > 0;
  fetch.next_run();
  if (own) fetch.at += ahead < fetch.rest.bytes ? ahead : fetch.rest.bytes;
  return fetch;
}

}  // namespace
}  // namespace coppice::core
