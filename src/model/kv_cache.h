// Keys and values of many sequences: committed positions in blocks of 16, shared between sequences in whole
// blocks (reference counted; a partial block is copied), and scratch slots for tree nodes that live until
// keep(). All memory is allocated by make(); nothing else allocates on the decode path.
#pragma once

#include <coppice/error.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/os.h"
#include "kernels/kv_layout.h"

namespace coppice::core {

struct KvOptions {
  CacheType type = CacheType::f16;
  int sequences = 1;
  int positions = 2048;  // committed positions of all sequences together, rounded up to blocks
  int slots = 64;        // scratch slots per sequence
};

class KvCache {
 public:
  static Result<KvCache> make(const KvLayout& layout, int layers, const KvOptions& options);

  Result<int> open();  // a free sequence, length 0
  void close(int sequence);
  int length(int sequence) const;  // committed positions
  // Makes room for `length` committed positions; fails when the blocks run out (nothing is changed then).
  // To be called again after rewind(): a last block that another sequence sees is copied here.
  Status reserve(int sequence, int length);

  // Moves the scratch slots of an accepted path, in order, behind the committed positions; every slot of the
  // sequence is free afterwards. Room must have been reserved. An empty path just frees the slots.
  void keep(int sequence, std::span<const int> slots);
  void rewind(int sequence, int length);  // forgets positions >= length, and all slots
  // `to` (empty) starts with the first `length` positions of `from`: whole blocks shared, the rest copied.
  Status share(int from, int to, int length);

  // The committed positions as bytes, with a header that names layout and length; load() checks both.
  Status save(int sequence, const Append& append) const;
  Status load(int sequence, std::span<const std::byte> bytes);

  // For the pass.
  const KvLayout& layout() const { return layout_; }
  std::byte* committed_block(int sequence, int layer, int position);  // the block that holds `position`
  std::byte* scratch_block(int sequence, int layer, int slot);
  const std::int32_t* table(int sequence) const;   // block numbers
  const std::byte* layer_blocks(int layer) const;  // block 0 of a layer
  const std::byte* layer_scratch(int sequence, int layer) const;
  std::size_t block_stride() const;
  std::size_t scratch_stride() const;
  bool has_room(int sequence, int length) const;  // reserved, and no block to be written is shared
  void commit(int sequence, int positions);       // length += positions, after a pass
  int slots() const { return options_.slots; }
  void set_parent(int sequence, int slot, int parent_slot);
  int parent(int sequence, int slot) const;  // a slot, or kCommitted
  std::size_t bytes() const;                 // memory held

 private:
  std::int32_t take_block();
  void drop_block(std::int32_t block);
  void truncate(int sequence, int blocks);
  bool last_block_is_shared(int sequence) const;
  void copy_last_block(int sequence);
  void forget_slots(int sequence);
  std::byte* block_at(int layer, std::int32_t block) const;

  KvLayout layout_;
  int layers_ = 0;
  KvOptions options_;
  Buffer blocks_, scratch_;
  std::vector<std::vector<std::int32_t>> tables_;  // [sequence][block], capacity reserved
  std::vector<int> lengths_;                       // [sequence], -1: closed
  std::vector<int> references_;                    // [block]
  std::vector<std::int32_t> free_;
  std::vector<std::int32_t> parents_;  // [sequence, slot]
};

}  // namespace coppice::core
