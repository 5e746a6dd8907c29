// How keys and values lie in memory. A block holds 16 positions of one layer: per kv head first K,
// dimension-major
// ([head_dim][16]: one load serves 16 positions), then V, position-major ([16][head_dim]). q8_0 has one f16
// scale per position, head and 32 dimensions (never one that spans positions); head_dim is then a multiple
// of 32. Values are rounded to this format before any use, the row's own included (numerics 8).
#pragma once

#include <cstddef>
#include <cstdint>

namespace coppice::core {

enum class CacheType : std::uint8_t { f32, f16, q8_0 };

inline constexpr int kBlockPositions = 16;

struct KvLayout {
  CacheType type = CacheType::f16;
  int kv_heads = 0;
  int heads = 0;     // query heads, a multiple of kv_heads
  int head_dim = 0;  // a multiple of 2; of 32 for q8_0

  std::size_t key_bytes() const;    // of one head in one block, scales included
  std::size_t value_bytes() const;  // the same
  std::size_t block_bytes() const;  // of all kv heads of one layer, a multiple of 64
  std::size_t head_offset(int kv_head) const {
    return static_cast<std::size_t>(kv_head) * (key_bytes() + value_bytes());
  }
};

// One query row: it sees positions first .. position, each once, in that order, wherever they lie (numerics
// 9, 10). Position p < committed lies in block table[p / 16], lane p % 16; position committed + i lies in the
// scratch slot slots[i]: scratch block slots[i] / 16, lane slots[i] % 16.
struct AttentionRow {
  const float* q = nullptr;  // [heads, head_dim], after RoPE, multiplied by log2(e) / sqrt(head_dim)
  float* out = nullptr;      // [heads, head_dim]
  int position = 0;
  int committed = 0;
  int first = 0;                        // a sliding window masks those below
  const std::int32_t* table = nullptr;  // block numbers of the sequence
  const std::byte* blocks = nullptr;    // block n of this layer at blocks + n * block_stride
  std::size_t block_stride = 0;
  const std::int32_t* slots = nullptr;  // [position + 1 - committed]
  const std::byte* scratch = nullptr;   // scratch block n at scratch + n * scratch_stride
  std::size_t scratch_stride = 0;
};

// Queries [query_begin, query_end) of the rows. A query is one head of one row; they are numbered by kv head,
// then row, then head of the kv head's group: (kv_head * row_count + row) * group + head.
struct AttentionTask {
  const AttentionRow* rows = nullptr;
  int row_count = 0;
  int query_begin = 0, query_end = 0;
  float cap = 0;               // soft cap of the scores (kv_block.h), in units of log2; 0: none
  float* workspace = nullptr;  // attention_workspace() floats of the calling thread
};

// Floats of workspace a thread needs for attention.
std::size_t attention_workspace(const KvLayout& layout);

// Copies one position (all heads of one layer) from a lane to another lane, bits unchanged.
void copy_position(const KvLayout& layout, const std::byte* from_block, int from_lane, std::byte* to_block,
                   int to_lane);

}  // namespace coppice::core
