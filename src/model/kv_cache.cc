// Memory: committed blocks lie [block][layer], so that even with huge pages a cache costs the memory of what
// is in it: one page holds every layer of the first positions, where [layer][block] would touch a page a
// layer. Scratch blocks lie [sequence][layer][slot / 16]. A block that two sequences share is whole in both,
// and nobody writes it: rewinding into one makes it partial, and reserve() (or rewind(), when a block is
// free) copies it before the next position goes there.
#include "model/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "model/row.h"

namespace coppice::core {
namespace {

constexpr int blocks_of(int positions) { return (positions + kBlockPositions - 1) / kBlockPositions; }

// What save() writes in front of the blocks: [layer][block][block_bytes] follow.
struct SavedHeader {
  char magic[8];  // "coppkv1"
  std::uint32_t type, kv_heads, head_dim, layers, length, reserved;
};
constexpr char kMagic[8] = "coppkv1";

Status check_options(const KvLayout& layout, int layers, const KvOptions& options) {
  COPPICE_CHECK(layers > 0 && layout.kv_heads > 0 && layout.heads % layout.kv_heads == 0);
  if (options.type == CacheType::q8_0 && layout.head_dim % 32 != 0)
    return fail(
        fmt::format("a q8_0 cache needs heads whose size is a multiple of 32, but this model's have {}; "
                    "use f16 or f32",
                    layout.head_dim));
  if (options.sequences < 1 || options.sequences > 65536)
    return fail(fmt::format("the cache's sequences are {}, but must be from 1 to 65536", options.sequences));
  if (options.positions < 1 || options.positions > (1 << 28))
    return fail(
        fmt::format("the cache's positions are {}, but must be from 1 to {}", options.positions, 1 << 28));
  if (options.slots < 0 || options.slots > 65536)
    return fail(fmt::format("the cache's scratch slots are {}, but must be from 0 to 65536", options.slots));
  return {};
}

}  // namespace

Result<KvCache> KvCache::make(const KvLayout& layout, int layers, const KvOptions& options) {
  COPPICE_TRY_STATUS(check_options(layout, layers, options));
  KvCache cache;
  cache.layout_ = layout;
  cache.layout_.type = options.type;
  cache.layers_ = layers;
  cache.options_ = options;
  cache.options_.slots = blocks_of(options.slots) * kBlockPositions;
  // Every sequence may leave its last block partly empty.
  const std::int64_t count = (std::int64_t{options.positions} + std::int64_t{15} * options.sequences) / 16;
  const std::size_t one = cache.layout_.block_bytes() * static_cast<std::size_t>(layers);
  const std::size_t committed = one * static_cast<std::size_t>(count);
  const std::size_t scratch = one * static_cast<std::size_t>(cache.options_.slots / kBlockPositions) *
                              static_cast<std::size_t>(options.sequences);
  if (committed + scratch > memory_available())
    return fail(fmt::format(
        "a cache of {} positions and {} scratch slots for {} sequences needs {} bytes of "
        "memory, but {} are available; ask for fewer positions or a smaller cache type",
        options.positions, options.slots, options.sequences, committed + scratch, memory_available()));
  COPPICE_TRY(cache.blocks_, Buffer::make(committed));
  COPPICE_TRY(cache.scratch_, Buffer::make(scratch));
  const auto blocks = static_cast<std::size_t>(count);
  const auto sequences = static_cast<std::size_t>(options.sequences);
  cache.tables_.resize(sequences);
  for (auto& table : cache.tables_) table.reserve(blocks);
  cache.lengths_.assign(sequences, -1);
  cache.references_.assign(blocks, 0);
  cache.free_.reserve(blocks);
  for (std::int64_t block = count; block-- > 0;) cache.free_.push_back(static_cast<std::int32_t>(block));
  cache.parents_.assign(sequences * static_cast<std::size_t>(cache.options_.slots), kCommitted);
  return cache;
}

Result<int> KvCache::open() {
  const auto closed = std::find(lengths_.begin(), lengths_.end(), -1);
  if (closed == lengths_.end())
    return fail(fmt::format("all {} sequences of the cache are in use", options_.sequences));
  *closed = 0;
  return static_cast<int>(closed - lengths_.begin());
}

void KvCache::close(int sequence) {
  truncate(sequence, 0);
  forget_slots(sequence);
  lengths_[sequence] = -1;
}

int KvCache::length(int sequence) const {
  COPPICE_CHECK(lengths_[sequence] >= 0);
  return lengths_[sequence];
}

std::int32_t KvCache::take_block() {
  COPPICE_CHECK(!free_.empty());
  const std::int32_t block = free_.back();
  free_.pop_back();
  references_[block] = 1;
  return block;
}

void KvCache::drop_block(std::int32_t block) {
  if (--references_[block] == 0) free_.push_back(block);
}

// Keeps the first `blocks` entries of the table.
void KvCache::truncate(int sequence, int blocks) {
  auto& table = tables_[sequence];
  while (static_cast<int>(table.size()) > blocks) {
    drop_block(table.back());
    table.pop_back();
  }
}

// The next position would go into a block that another sequence sees.
bool KvCache::last_block_is_shared(int sequence) const {
  const int length = lengths_[sequence];
  return length % kBlockPositions != 0 && references_[tables_[sequence][length / kBlockPositions]] > 1;
}

void KvCache::copy_last_block(int sequence) {
  std::int32_t& entry = tables_[sequence][lengths_[sequence] / kBlockPositions];
  const std::int32_t copy = take_block();
  for (int layer = 0; layer < layers_; ++layer)
    std::memcpy(block_at(layer, copy), block_at(layer, entry), layout_.block_bytes());
  drop_block(entry);
  entry = copy;
}

Status KvCache::reserve(int sequence, int length) {
  COPPICE_CHECK(lengths_[sequence] >= 0);
  auto& table = tables_[sequence];
  const int more = std::max(0, blocks_of(length) - static_cast<int>(table.size()));
  const bool copy = length > lengths_[sequence] && last_block_is_shared(sequence);
  if (more + (copy ? 1 : 0) > static_cast<int>(free_.size()))
    return fail(
        fmt::format("the cache is full: {} positions need {} more blocks of {}, but {} of {} are free",
                    length, more + (copy ? 1 : 0), kBlockPositions, free_.size(), references_.size()));
  if (copy) copy_last_block(sequence);
  for (int i = 0; i < more; ++i) table.push_back(take_block());
  return {};
}

void KvCache::keep(int sequence, std::span<const int> slots) {
  const int length = lengths_[sequence], count = static_cast<int>(slots.size());
  if (count > 0) {
    COPPICE_CHECK(blocks_of(length + count) <= static_cast<int>(tables_[sequence].size()));
    for (int i = 0; i < count; ++i)
      for (int layer = 0; layer < layers_; ++layer)
        copy_position(layout_, scratch_block(sequence, layer, slots[i]), slots[i] % kBlockPositions,
                      committed_block(sequence, layer, length + i), (length + i) % kBlockPositions);
    lengths_[sequence] = length + count;
  }
  forget_slots(sequence);
}

// Room that was reserved stays, as far as nobody else sees those blocks.
void KvCache::rewind(int sequence, int length) {
  COPPICE_CHECK(length >= 0 && length <= lengths_[sequence]);
  auto& table = tables_[sequence];
  std::size_t kept = static_cast<std::size_t>(blocks_of(length));
  for (std::size_t i = kept; i < table.size(); ++i) {
    if (references_[table[i]] > 1)
      drop_block(table[i]);
    else
      table[kept++] = table[i];
  }
  table.resize(kept);
  lengths_[sequence] = length;
  if (last_block_is_shared(sequence) && !free_.empty()) copy_last_block(sequence);
  forget_slots(sequence);
}

Status KvCache::share(int from, int to, int length) {
  COPPICE_CHECK(from != to && lengths_[to] == 0 && length >= 0 && length <= lengths_[from]);
  truncate(to, 0);
  const int whole = length / kBlockPositions;
  const bool partial = length % kBlockPositions != 0;
  if (partial && free_.empty())
    return fail(fmt::format("the cache is full: sharing {} positions needs one block, and all {} are in use",
                            length, references_.size()));
  for (int i = 0; i < whole; ++i) {
    tables_[to].push_back(tables_[from][i]);
    ++references_[tables_[from][i]];
  }
  if (partial) {
    tables_[to].push_back(take_block());
    for (int layer = 0; layer < layers_; ++layer)
      std::memcpy(block_at(layer, tables_[to][whole]), block_at(layer, tables_[from][whole]),
                  layout_.block_bytes());
  }
  lengths_[to] = length;
  return {};
}

Status KvCache::save(int sequence, const Append& append) const {
  const int length = this->length(sequence);
  SavedHeader header{{},
                     static_cast<std::uint32_t>(layout_.type),
                     static_cast<std::uint32_t>(layout_.kv_heads),
                     static_cast<std::uint32_t>(layout_.head_dim),
                     static_cast<std::uint32_t>(layers_),
                     static_cast<std::uint32_t>(length),
                     0};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  COPPICE_TRY_STATUS(append(std::as_bytes(std::span(&header, 1))));
  // The lanes behind the end hold whatever was there before: written as zeros, so that equal states give
  // equal bytes.
  COPPICE_TRY(Buffer last, Buffer::make(layout_.block_bytes()));
  for (int layer = 0; layer < layers_; ++layer)
    for (int i = 0; i < blocks_of(length); ++i) {
      const std::byte* block = block_at(layer, tables_[sequence][i]);
      const int lanes = length - i * kBlockPositions;
      if (lanes < kBlockPositions) {
        for (int lane = 0; lane < lanes; ++lane) copy_position(layout_, block, lane, last.data(), lane);
        block = last.data();
      }
      COPPICE_TRY_STATUS(append({block, layout_.block_bytes()}));
    }
  return {};
}

Status KvCache::load(int sequence, std::span<const std::byte> bytes) {
  COPPICE_CHECK(lengths_[sequence] >= 0);
  SavedHeader header;
  if (bytes.size() < sizeof(header)) return fail("a saved cache is too short to hold its header");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0)
    return fail("a saved cache does not start with its mark \"coppkv1\"");
  const auto differ = [&](const char* what, std::uint32_t saved, int here) {
    return fail(fmt::format("the saved cache has {} {}, but this one has {}", what, saved, here));
  };
  if (header.type != static_cast<std::uint32_t>(layout_.type))
    return differ("the type", header.type, static_cast<int>(layout_.type));
  if (header.kv_heads != static_cast<std::uint32_t>(layout_.kv_heads))
    return differ("KV heads", header.kv_heads, layout_.kv_heads);
  if (header.head_dim != static_cast<std::uint32_t>(layout_.head_dim))
    return differ("a head size of", header.head_dim, layout_.head_dim);
  if (header.layers != static_cast<std::uint32_t>(layers_)) return differ("layers", header.layers, layers_);
  const std::uint64_t blocks = (std::uint64_t{header.length} + 15) / 16;
  const std::uint64_t body = blocks * static_cast<std::uint64_t>(layers_) * layout_.block_bytes();
  if (header.length > (1u << 28) || bytes.size() != sizeof(header) + body)
    return fail(fmt::format("the saved cache has {} bytes, but {} positions need {}", bytes.size(),
                            header.length, sizeof(header) + body));
  rewind(sequence, 0);
  COPPICE_TRY_STATUS(reserve(sequence, static_cast<int>(header.length)));
  const std::byte* from = bytes.data() + sizeof(header);
  for (int layer = 0; layer < layers_; ++layer)
    for (std::uint64_t i = 0; i < blocks; ++i, from += layout_.block_bytes())
      std::memcpy(block_at(layer, tables_[sequence][i]), from, layout_.block_bytes());
  lengths_[sequence] = static_cast<int>(header.length);
  return {};
}

std::byte* KvCache::block_at(int layer, std::int32_t block) const {
  const std::size_t index =
      static_cast<std::size_t>(block) * static_cast<std::size_t>(layers_) + static_cast<std::size_t>(layer);
  return const_cast<std::byte*>(blocks_.data()) + index * layout_.block_bytes();
}

std::byte* KvCache::committed_block(int sequence, int layer, int position) {
  const std::int32_t block = tables_[sequence][position / kBlockPositions];
  COPPICE_CHECK(references_[block] == 1 || position < lengths_[sequence]);
  return block_at(layer, block);
}

std::byte* KvCache::scratch_block(int sequence, int layer, int slot) {
  return const_cast<std::byte*>(layer_scratch(sequence, layer)) +
         static_cast<std::size_t>(slot / kBlockPositions) * scratch_stride();
}

const std::int32_t* KvCache::table(int sequence) const { return tables_[sequence].data(); }
const std::byte* KvCache::layer_blocks(int layer) const { return block_at(layer, 0); }

const std::byte* KvCache::layer_scratch(int sequence, int layer) const {
  const std::size_t index = static_cast<std::size_t>(sequence) * static_cast<std::size_t>(layers_) +
                            static_cast<std::size_t>(layer);
  return scratch_.data() +
         index * static_cast<std::size_t>(options_.slots / kBlockPositions) * scratch_stride();
}

std::size_t KvCache::block_stride() const {
  return layout_.block_bytes() * static_cast<std::size_t>(layers_);
}
std::size_t KvCache::scratch_stride() const { return layout_.block_bytes(); }

bool KvCache::has_room(int sequence, int length) const {
  return lengths_[sequence] >= 0 && blocks_of(length) <= static_cast<int>(tables_[sequence].size()) &&
         !(length > lengths_[sequence] && last_block_is_shared(sequence));
}

void KvCache::commit(int sequence, int positions) {
  COPPICE_CHECK(has_room(sequence, lengths_[sequence] + positions));
  lengths_[sequence] += positions;
}

void KvCache::set_parent(int sequence, int slot, int parent_slot) {
  parents_[static_cast<std::size_t>(sequence) * static_cast<std::size_t>(options_.slots) +
           static_cast<std::size_t>(slot)] = parent_slot;
}

int KvCache::parent(int sequence, int slot) const {
  return parents_[static_cast<std::size_t>(sequence) * static_cast<std::size_t>(options_.slots) +
                  static_cast<std::size_t>(slot)];
}

void KvCache::forget_slots(int sequence) {
  const auto first = parents_.begin() + static_cast<std::ptrdiff_t>(sequence) * options_.slots;
  std::fill(first, first + options_.slots, kCommitted);
}

std::size_t KvCache::bytes() const { return blocks_.size() + scratch_.size(); }

}  // namespace coppice::core
