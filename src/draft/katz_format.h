// The bytes of an n-gram file, shared by its reader and its builder. docs/file-formats.md has the same in
// words.
//
// Contexts are a trie read backwards: level k holds the contexts of k tokens, and a child puts one older
// token before its parent's. A context seen twice or more is a branch. A context seen once is a leaf below
// the branch it extends: its one continuation and the older tokens before it are all there is to know of the
// longer contexts too, so they are no nodes of their own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "base/os.h"
#include "draft/katz.h"

namespace coppice::core::katz {

inline constexpr char kMagic[8] = {'C', 'O', 'P', 'N', 'G', 'R', 'A', 'M'};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::uint32_t kByteOrder = 0x01020304;
inline constexpr int kDiscounted = 5;  // Katz's k: counts above it are not discounted
inline constexpr int kHead = 16;       // the first continuations of a block are the most frequent, in order
inline constexpr std::uint32_t kMostVocab = 1u << 24;
inline constexpr std::uint32_t kMostProvenance = 1u << 16;

// All numbers little-endian, as in memory on the machines there are.
struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t byte_order;
  std::uint64_t file_bytes;
  std::uint64_t vocabulary_hash;
  std::uint64_t tokens;
  std::uint32_t vocab;
  std::uint32_t order;        // longest context
  std::uint32_t token_bytes;  // 2 or 4
  std::uint32_t leaf_order;   // leaves know contexts up to this length
  std::uint32_t provenance_bytes;
  std::uint32_t zero;
};
static_assert(sizeof(Header) == 64);

enum Section : int {
  kBranchTokens,    // [branches] the oldest token of the context
  kBranchChildren,  // [branches + 1] u32: first child among the next level's branches (absent at the last
                    // level)
  kBranchLeaves,   // [branches + 1] u32: first child among the next level's leaves (absent at the last level)
  kBranchBlocks,   // [branches + 1] u32: where its block starts in kBlocks
  kBranchBackoff,  // [branches] f32: back-off weight, see Shares
  kBlocks,         // continuations, see Block
  kLeafTokens,     // [leaves] the oldest token of the context, of length k
  kLeafNext,       // [leaves] what followed
  kLeafTails,      // [leaves, leaf_order - k] the tokens before, newest first; `vocab` where the text began
  kSections
};

struct LevelEntry {
  std::uint64_t branches;
  std::uint64_t leaves;
  float discount[kDiscounted + 1];  // [0] is zero; of counts 1 .. 5
  std::uint64_t offset[kSections];  // from the start of the file, a multiple of 8
  std::uint64_t bytes[kSections];
};
static_assert(sizeof(LevelEntry) == 16 + 24 + 16 * kSections);

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// An array of tokens of 2 or 4 bytes.
struct Tokens {
  const std::byte* at = nullptr;
  std::uint32_t width = 4;
  std::uint32_t operator[](std::size_t i) const {
    return width == 2 ? load<std::uint16_t>(at + 2 * i) : load<std::uint32_t>(at + 4 * i);
  }
  Tokens from(std::size_t i) const { return {at + i * width, width}; }
};

struct Words {
  const std::byte* at = nullptr;
  std::uint32_t operator[](std::size_t i) const { return load<std::uint32_t>(at + 4 * i); }
};

// The continuations of a branch: varint count, varint (stored << 3 | count width code << 1 | pruned), varint
// distinct if pruned, tokens [stored], counts [stored] of 0 (all are 1), 1, 2 or 4 bytes. The first kHead by
// (count descending, token ascending), the others by token ascending.
struct Block {
  std::uint32_t count = 0, distinct = 0, stored = 0;
  Tokens tokens;
  const std::byte* counts = nullptr;
  std::uint32_t width_code = 0;

  std::uint32_t count_of(std::size_t i) const {
    switch (width_code) {
      case 0:
        return 1;
      case 1:
        return load<std::uint8_t>(counts + i);
      case 2:
        return load<std::uint16_t>(counts + 2 * i);
      default:
        return load<std::uint32_t>(counts + 4 * i);
    }
  }
};
constexpr std::size_t width_of(std::uint32_t code) { return code == 3 ? 4 : code; }

// Trusts the bytes; check_file() has looked at them.
inline std::uint32_t varint(const std::byte*& at) {
  std::uint32_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<std::uint32_t>(*at++);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

inline Block read_block(const std::byte* at, std::uint32_t token_bytes) {
  Block block;
  block.count = varint(at);
  const std::uint32_t shape = varint(at);
  block.stored = shape >> 3;
  block.width_code = shape >> 1 & 3;
  block.distinct = (shape & 1) != 0 ? varint(at) : block.stored;
  block.tokens = {at, token_bytes};
  block.counts = at + static_cast<std::size_t>(block.stored) * token_bytes;
  return block;
}

struct Level {
  std::uint64_t branches = 0, leaves = 0;
  std::array<float, kDiscounted + 1> discount{};
  Tokens tokens, leaf_tokens, leaf_next, leaf_tails;
  Words children, first_leaf, blocks_at;
  const std::byte* backoff = nullptr;
  const std::byte* blocks = nullptr;
  int tail = 0;  // tokens in each leaf's tail

  float discount_of(std::uint32_t count) const { return count > kDiscounted ? 1.0f : discount[count]; }
};

struct View {
  Header header{};
  std::string provenance;
  std::array<Level, kMaxNgramContext + 1> levels;

  Block block(int level, std::uint64_t branch) const {
    const Level& at = levels[level];
    return read_block(at.blocks + at.blocks_at[branch], header.token_bytes);
  }
  float backoff(int level, std::uint64_t branch) const {
    return load<float>(levels[level].backoff + 4 * branch);
  }
};

// Checks every field, so that nothing read through the view can leave the bytes. `name` is for messages.
Result<View> check_file(std::span<const std::byte> bytes, const std::string& name);

// A context's handle: its level, whether it is a leaf (and that leaf's own level), and the index there.
struct Handle {
  int level = 0;
  bool leaf = false;
  std::uint64_t index = 0;

  std::uint64_t packed() const {
    return static_cast<std::uint64_t>(leaf) << 63 | static_cast<std::uint64_t>(level) << 56 | index;
  }
  static Handle unpack(std::uint64_t bits) {
    return {static_cast<int>(bits >> 56 & 0x7f), bits >> 63 != 0, bits & ((std::uint64_t{1} << 56) - 1)};
  }
};

// How a block's counts become probabilities: discount(c) c / of, and `backoff` for what is not stored. The
// file's weight is positive for that; negative where no count is small enough to be discounted: the counts
// are divided by one more than the context's own instead, and its amount is the back-off weight; 0 where
// nothing else can follow: the counts are divided by their sum.
struct Shares {
  double of = 1;
  double backoff = 0;
  bool discounted = true;

  double share(std::uint32_t count, double discount) const {
    return (discounted ? discount : 1.0) * count / of;
  }
};
Shares shares_of(const Block& block, float weight);

// Where `token` stands in a block, or -1.
std::int64_t find_in_block(const Block& block, Token token);
void walk(const View& view, std::span<const Token> tokens, NgramContext* out);
double katz_probability(const View& view, const NgramContext* contexts, int order, Token token);

}  // namespace coppice::core::katz
