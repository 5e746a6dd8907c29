// What the integer products of all instruction sets share: a tile of rows over one group of 32 outputs, and
// the fetching of weights ahead of their use. Included by ISA files only: everything is in an anonymous
// namespace.
#pragma once

#include "kernels/isa_begin.h"
#include "kernels/isa_tables.h"

namespace coppice::core {
namespace {

template <PackedKind kind>
constexpr std::size_t kHalf = kind == PackedKind::q8 ? kQ8Half : kQ4Half;  // bytes of codes of 16 outputs
template <PackedKind kind>
constexpr std::size_t kScales = 2 * kHalf<kind>;
template <PackedKind kind>
constexpr std::size_t kUnit = kScales<kind> + (kind == PackedKind::q4_offset ? 128 : 64);  // a block
template <PackedKind kind>
constexpr int kZero = kind == PackedKind::q4   ? 8
                      : kind == PackedKind::q8 ? 128
                                               : 0;  // the code of 0

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
  const std::int8_t* codes;  // [rows, blocks * 32]
  const float* scales;       // [rows, blocks]
  const float* scaled_sums;  // [rows, blocks]
  const std::int32_t* sums;  // [rows, blocks]
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
          task.y + group * kGroupOutputs,
          task.y_stride};
}

// `tiles`: how often each group will be read.
template <PackedKind kind>
Fetch fetch_of(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end, int tiles,
               std::size_t ahead) {
  const auto groups = static_cast<std::size_t>(group_end - group_begin);
  const auto n = static_cast<std::size_t>(tiles);
  Fetch fetch = {};
  fetch.lines = (kUnit<kind> / 64 + n - 1) / n;
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
