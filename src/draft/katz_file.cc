// Opening an n-gram file: everything is checked here, once, so that lookups need not.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "base/check.h"
#include "draft/katz_format.h"

namespace coppice::core::katz {
namespace {

static_assert(std::endian::native == std::endian::little, "the reader maps little-endian files");

struct Checker {
  std::span<const std::byte> bytes;
  const std::string& name;
  View view;
  std::array<LevelEntry, kMaxNgramContext + 1> entries;

  template <class... Args>
  tl::unexpected<Error> bad(fmt::format_string<Args...> text, Args&&... args) const {
    return fail(name + ": " + fmt::format(text, std::forward<Args>(args)...));
  }

  Status header();
  Status level_entry(int k);
  Status offsets(int k, Words words, std::uint64_t branches, std::uint64_t end, const char* what);
  Status level(int k);
  Status block(int k, std::uint64_t branch, std::uint64_t begin, std::uint64_t end);
  Status leaves(int k);
  Status sorted(int k);
};

Status Checker::header() {
  if (bytes.size() < sizeof(Header) || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0)
    return bad("not an n-gram file (it does not start with COPNGRAM); make one with `coppice ngram build`");
  view.header = load<Header>(bytes.data());
  const Header& h = view.header;
  if (h.byte_order != kByteOrder) return bad("written for another byte order; little-endian is expected");
  if (h.version != kVersion)
    return bad("format version {}, this program reads version {}; build the file again", h.version, kVersion);
  if (h.file_bytes != bytes.size())
    return bad("{} bytes long, its header says {}: it is cut off or damaged", bytes.size(), h.file_bytes);
  if (h.vocab < 1 || h.vocab > kMostVocab)
    return bad("vocabulary of {} tokens at offset 40; 1 to {} would be right", h.vocab, kMostVocab);
  if (h.order > kMaxNgramContext || h.leaf_order > h.order)
    return bad(
        "context length {} and leaf context length {} at offset 44; at most {}, and not longer than that",
        h.order, h.leaf_order, kMaxNgramContext);
  if (h.token_bytes != 4 && !(h.token_bytes == 2 && h.vocab < 0xffff))
    return bad("tokens of {} bytes at offset 48 for a vocabulary of {}", h.token_bytes, h.vocab);
  if (h.provenance_bytes > kMostProvenance)
    return bad("a provenance text of {} bytes; at most {}", h.provenance_bytes, kMostProvenance);
  const std::uint64_t table_end = sizeof(Header) + sizeof(LevelEntry) * (h.order + 1) + h.provenance_bytes;
  if (table_end > bytes.size()) return bad("cut off inside its table of levels");
  const std::byte* at = bytes.data() + sizeof(Header);
  for (std::uint32_t k = 0; k <= h.order; ++k, at += sizeof(LevelEntry)) entries[k] = load<LevelEntry>(at);
  view.provenance.assign(reinterpret_cast<const char*>(at), h.provenance_bytes);
  return {};
}

// The sizes of a level's sections follow from its counts; only where they lie is free.
Status Checker::level_entry(int k) {
  const LevelEntry& e = entries[k];
  const Header& h = view.header;
  const std::uint64_t most = bytes.size();
  if (e.branches > most || e.leaves > most)
    return bad("level {} counts {} branches and {} leaves, more than the file has bytes", k, e.branches,
               e.leaves);
  if (k == 0 && (e.branches != 1 || e.leaves != 0))
    return bad("level 0 must have one branch and no leaves, it has {} and {}", e.branches, e.leaves);
  if (static_cast<std::uint32_t>(k) > h.leaf_order && e.leaves != 0)
    return bad("level {} has leaves, though contexts seen once end at level {}", k, h.leaf_order);
  const bool last = static_cast<std::uint32_t>(k) == h.order;
  Level& level = view.levels[k];
  level.tail = static_cast<std::uint32_t>(k) <= h.leaf_order ? static_cast<int>(h.leaf_order) - k : 0;
  const std::uint64_t right[kSections] = {e.branches * h.token_bytes,
                                          last ? 0 : (e.branches + 1) * 4,
                                          last ? 0 : (e.branches + 1) * 4,
                                          (e.branches + 1) * 4,
                                          e.branches * 4,
                                          e.bytes[kBlocks],
                                          e.leaves * h.token_bytes,
                                          e.leaves * h.token_bytes,
                                          e.leaves * h.token_bytes * static_cast<std::uint64_t>(level.tail)};
  const std::byte* at[kSections];
  for (int s = 0; s < kSections; ++s) {
    if (e.bytes[s] != right[s])
      return bad("section {} of level {} has {} bytes; {} would be right", s, k, e.bytes[s], right[s]);
    if (e.offset[s] % 8 != 0 || e.offset[s] > most || e.bytes[s] > most - e.offset[s])
      return bad("section {} of level {} (offset {}, {} bytes) does not lie in the file", s, k, e.offset[s],
                 e.bytes[s]);
    at[s] = bytes.data() + e.offset[s];
  }
  level.branches = e.branches;
  level.leaves = e.leaves;
  for (int c = 0; c <= kDiscounted; ++c) {
    level.discount[c] = e.discount[c];
    const bool fine = c == 0 ? e.discount[c] == 0 : e.discount[c] > 0 && e.discount[c] <= 1;
    if (!fine)
      return bad("discount of count {} at level {} is {}; it must be above 0 and at most 1", c, k,
                 e.discount[c]);
  }
  level.tokens = {at[kBranchTokens], h.token_bytes};
  level.children = {at[kBranchChildren]};
  level.first_leaf = {at[kBranchLeaves]};
  level.blocks_at = {at[kBranchBlocks]};
  level.backoff = at[kBranchBackoff];
  level.blocks = at[kBlocks];
  level.leaf_tokens = {at[kLeafTokens], h.token_bytes};
  level.leaf_next = {at[kLeafNext], h.token_bytes};
  level.leaf_tails = {at[kLeafTails], h.token_bytes};
  return {};
}

// Offsets must start at 0, never fall and end where the array they point into ends.
Status Checker::offsets(int k, Words words, std::uint64_t branches, std::uint64_t end, const char* what) {
  std::uint32_t before = 0;
  for (std::uint64_t i = 0; i <= branches; ++i) {
    const std::uint32_t offset = words[i];
    const bool fine = i == 0 ? offset == 0 : offset >= before;
    if (!fine || offset > end)
      return bad("{} of branch {} at level {} start at {}, out of order", what, i, k, offset);
    before = offset;
  }
  if (before != end) return bad("{} of level {} end at {}; {} would be right", what, k, before, end);
  return {};
}

// A varint of at most five bytes that fits 32 bits; false when it leaves [at, end).
bool checked_varint(const std::byte*& at, const std::byte* end, std::uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift <= 28 && at < end; shift += 7) {
    const auto byte = static_cast<std::uint64_t>(*at++);
    *value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return *value <= 0xffffffffu;
  }
  return false;
}

Status Checker::block(int k, std::uint64_t branch, std::uint64_t begin, std::uint64_t end) {
  const std::byte* at = view.levels[k].blocks + begin;
  const std::byte* stop = view.levels[k].blocks + end;
  std::uint64_t count = 0, shape = 0, distinct = 0;
  bool fits = checked_varint(at, stop, &count) && checked_varint(at, stop, &shape);
  const std::uint64_t stored = shape >> 3;
  distinct = stored;
  if (fits && (shape & 1) != 0) fits = checked_varint(at, stop, &distinct);
  const std::uint64_t each = view.header.token_bytes + width_of(shape >> 1 & 3);
  if (!fits || static_cast<std::uint64_t>(stop - at) != stored * each)
    return bad("the continuations of branch {} at level {} do not fill their {} bytes", branch, k,
               end - begin);
  if (distinct < stored || distinct > count || stored > view.header.vocab)
    return bad("branch {} at level {} stores {} of {} continuations of a context seen {} times", branch, k,
               stored, distinct, count);
  const Block block = read_block(view.levels[k].blocks + begin, view.header.token_bytes);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < stored; ++i) {
    const std::uint32_t token = block.tokens[i], n = block.count_of(i);
    sum += n;
    if (token >= view.header.vocab || n == 0)
      return bad("continuation {} of branch {} at level {} is token {} seen {} times", i, branch, k, token,
                 n);
    if (i == 0) continue;
    const std::uint32_t token_before = block.tokens[i - 1], n_before = block.count_of(i - 1);
    const bool by_count = n < n_before || (n == n_before && token > token_before);
    if (i < kHead ? !by_count : i > kHead && token <= token_before)
      return bad("continuation {} of branch {} at level {} is out of order", i, branch, k);
  }
  if (sum > count)
    return bad("the continuations of branch {} at level {} add up to {}, the context was seen {} times",
               branch, k, sum, count);
  const float backoff = view.backoff(k, branch);
  if (!std::isfinite(backoff))
    return bad("the back-off weight of branch {} at level {} is {}", branch, k, backoff);
  return {};
}

Status Checker::leaves(int k) {
  const Level& level = view.levels[k];
  const std::uint32_t vocab = view.header.vocab;
  for (std::uint64_t i = 0; i < level.leaves; ++i)
    if (level.leaf_tokens[i] >= vocab || level.leaf_next[i] >= vocab)
      return bad("leaf {} at level {} has a token outside the vocabulary of {}", i, k, vocab);
  for (std::uint64_t i = 0; i < level.leaves * static_cast<std::uint64_t>(level.tail); ++i)
    if (level.leaf_tails[i] > vocab)
      return bad("tail token {} at level {} is outside the vocabulary of {}", i, k, vocab);
  return {};
}

// Children of one parent have rising tokens: they are searched by halving.
Status Checker::sorted(int k) {
  const Level& parents = view.levels[k - 1];
  const Level& level = view.levels[k];
  for (std::uint64_t p = 0; p < parents.branches; ++p) {
    for (std::uint64_t i = parents.children[p]; i < parents.children[p + 1]; ++i)
      if (level.tokens[i] >= view.header.vocab ||
          (i > parents.children[p] && level.tokens[i] <= level.tokens[i - 1]))
        return bad("branch {} at level {} is out of order or outside the vocabulary", i, k);
    for (std::uint64_t i = parents.first_leaf[p] + std::uint64_t{1}; i < parents.first_leaf[p + 1]; ++i)
      if (level.leaf_tokens[i] <= level.leaf_tokens[i - 1])
        return bad("leaf {} at level {} is out of order", i, k);
  }
  return {};
}

Status Checker::level(int k) {
  const Level& level = view.levels[k];
  COPPICE_TRY_STATUS(offsets(k, level.blocks_at, level.branches, entries[k].bytes[kBlocks], "continuations"));
  if (static_cast<std::uint32_t>(k) < view.header.order) {
    COPPICE_TRY_STATUS(offsets(k, level.children, level.branches, entries[k + 1].branches, "branches"));
    COPPICE_TRY_STATUS(offsets(k, level.first_leaf, level.branches, entries[k + 1].leaves, "leaves"));
  }
  for (std::uint64_t b = 0; b < level.branches; ++b)
    COPPICE_TRY_STATUS(block(k, b, level.blocks_at[b], level.blocks_at[b + 1]));
  COPPICE_TRY_STATUS(leaves(k));
  return k == 0 ? Status{} : sorted(k);
}

}  // namespace

Result<View> check_file(std::span<const std::byte> bytes, const std::string& name) {
  Checker checker{bytes, name, {}, {}};
  COPPICE_TRY_STATUS(checker.header());
  const int order = static_cast<int>(checker.view.header.order);
  for (int k = 0; k <= order; ++k) COPPICE_TRY_STATUS(checker.level_entry(k));
  for (int k = 0; k <= order; ++k) COPPICE_TRY_STATUS(checker.level(k));
  return std::move(checker.view);
}

}  // namespace coppice::core::katz
