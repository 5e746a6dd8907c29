// Counting. All texts are kept as tokens, and the counted positions are sorted by the tokens before them,
// newest first: every context of every length is then one run of positions, found by walking the runs from
// short to long. Memory is 4 bytes a token and 4 bytes a counted position, whatever the number of contexts,
// beside the file's own bytes, and as much again while they are sorted. 20 million tokens with contexts of 5
// took 7 seconds of one core and 0.5 GB.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "draft/katz_format.h"

namespace coppice::core {

using katz::kDiscounted;
using katz::kHead;
using katz::kSections;

namespace {

using Bytes = std::vector<std::byte>;

template <class T>
void put(Bytes& out, T value) {
  const auto* at = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), at, at + sizeof value);
}

void put_varint(Bytes& out, std::uint32_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::byte>(value | 0x80));
  out.push_back(static_cast<std::byte>(value));
}

struct Continuation {
  Token token;
  std::uint32_t count;
};

// The arrays of one level while it grows.
struct LevelBytes {
  std::array<Bytes, kSections> sections;
  std::uint64_t branches = 0, leaves = 0;
  std::array<std::uint64_t, kDiscounted + 2> count_of_counts{};
};

}  // namespace

struct KatzBuilder::State {
  KatzBuildOptions options;
  std::vector<Token> text;               // all texts, each after one kNoToken
  std::vector<std::uint32_t> positions;  // of counted tokens in `text`
};

namespace {

// One use of a builder's texts: from sorted positions to the file's bytes.
class Writer {
 public:
  Writer(const KatzBuildOptions& options, std::span<const Token> text, std::vector<std::uint32_t> positions)
      : options_(options), text_(text), positions_(std::move(positions)) {
    token_bytes_ = options.vocab < 0xffff ? 2 : 4;
    for (int k = 0; k <= options.order; ++k) {
      const int wish = static_cast<std::size_t>(k) < options.min_count.size() ? options.min_count[k] : 1;
      least_[k] =
          static_cast<std::uint32_t>(std::max({wish, k > 0 ? static_cast<int>(least_[k - 1]) : 1, 1}));
      if (least_[k] == 1) leaf_order_ = k;
    }
  }

  Bytes run();

 private:
  void sort();
  void branch(int k, std::size_t begin, std::size_t end);
  void children(int k, std::size_t begin, std::size_t end);
  void leaf(int k, std::uint32_t position);
  void continuations(std::size_t begin, std::size_t end);
  void block(int k, std::uint32_t count);
  void token(int k, katz::Section section, Token t) {
    Bytes& out = levels_[k].sections[section];
    if (token_bytes_ == 2)
      put(out, static_cast<std::uint16_t>(t));
    else
      put(out, static_cast<std::uint32_t>(t));
  }
  // The i-th token before a position, or kNoToken once the text's beginning is passed.
  Token before(std::uint32_t position, int i) const {
    return text_[position - static_cast<std::uint32_t>(i)];
  }
  std::array<float, kDiscounted + 1> discounts(int k) const;
  Bytes assemble();
  void fill_backoff(Bytes& file) const;

  const KatzBuildOptions& options_;
  std::span<const Token> text_;
  std::vector<std::uint32_t> positions_;
  std::uint32_t token_bytes_ = 4;
  int leaf_order_ = 0;
  std::array<std::uint32_t, kMaxNgramContext + 1> least_{};
  std::array<LevelBytes, kMaxNgramContext + 1> levels_;
  std::vector<Continuation> found_;  // of the context at hand
  std::vector<Token> scratch_;
};

// By the tokens before, newest first; a text's beginning sorts first.
void Writer::sort() {
  // One counting pass by the newest token leaves short runs to compare.
  std::vector<std::size_t> start(static_cast<std::size_t>(options_.vocab) + 2);
  if (options_.order == 0) return;
  for (const std::uint32_t p : positions_) ++start[before(p, 1) + 2];
  std::partial_sum(start.begin(), start.end(), start.begin());
  std::vector<std::uint32_t> sorted(positions_.size());
  for (const std::uint32_t p : positions_) sorted[start[before(p, 1) + 1]++] = p;
  positions_ = std::move(sorted);
  std::size_t begin = 0;
  for (std::size_t t = 0; t + 1 < start.size(); ++t) {
    const std::size_t end = start[t];
    std::sort(positions_.begin() + begin, positions_.begin() + end, [&](std::uint32_t a, std::uint32_t b) {
      for (int i = 1; i <= options_.order; ++i) {
        const Token x = before(a, i), y = before(b, i);
        if (x != y) return x < y;
        if (x == kNoToken) break;
      }
      return a < b;
    });
    begin = end;
  }
}

// What follows the positions [begin, end): found_, by token.
void Writer::continuations(std::size_t begin, std::size_t end) {
  found_.clear();
  scratch_.clear();
  for (std::size_t i = begin; i < end; ++i) scratch_.push_back(text_[positions_[i]]);
  std::sort(scratch_.begin(), scratch_.end());
  for (const Token t : scratch_) {
    if (found_.empty() || found_.back().token != t) found_.push_back({t, 0});
    ++found_.back().count;
  }
}

// The block of a context from found_, pruned as asked.
void Writer::block(int k, std::uint32_t count) {
  LevelBytes& level = levels_[k];
  const auto distinct = static_cast<std::uint32_t>(found_.size());
  for (const Continuation& c : found_)
    if (c.count <= kDiscounted + 1) ++level.count_of_counts[c.count];
  std::erase_if(found_, [&](const Continuation& c) { return c.count < least_[k]; });
  const auto by_count = [](const Continuation& a, const Continuation& b) {
    return a.count != b.count ? a.count > b.count : a.token < b.token;
  };
  std::sort(found_.begin(), found_.end(), by_count);
  if (options_.max_continuations > 0 && found_.size() > static_cast<std::size_t>(options_.max_continuations))
    found_.resize(static_cast<std::size_t>(options_.max_continuations));
  const std::uint32_t most = found_.empty() ? 1 : found_[0].count;
  if (found_.size() > kHead)
    std::sort(found_.begin() + kHead, found_.end(),
              [](const Continuation& a, const Continuation& b) { return a.token < b.token; });
  const auto stored = static_cast<std::uint32_t>(found_.size());
  const std::uint32_t code = most == 1 ? 0 : most < 256 ? 1 : most < 65536 ? 2 : 3;
  Bytes& out = level.sections[katz::kBlocks];
  COPPICE_CHECK(out.size() < 0xffffffffu);  // billions of tokens: they do not fit the file's offsets
  put(level.sections[katz::kBranchBlocks], static_cast<std::uint32_t>(out.size()));
  put_varint(out, count);
  put_varint(out, stored << 3 | code << 1 | (stored != distinct ? 1u : 0u));
  if (stored != distinct) put_varint(out, distinct);
  for (const Continuation& c : found_) token(k, katz::kBlocks, c.token);
  for (const Continuation& c : found_) {
    if (code == 1) put(out, static_cast<std::uint8_t>(c.count));
    if (code == 2) put(out, static_cast<std::uint16_t>(c.count));
    if (code == 3) put(out, c.count);
  }
  put(level.sections[katz::kBranchBackoff], 1.0f);  // fill_backoff() has the right one
}

// positions_[begin, end) share their last k tokens and are two or more (or k = 0).
void Writer::branch(int k, std::size_t begin, std::size_t end) {
  continuations(begin, end);
  const bool worth = std::any_of(found_.begin(), found_.end(), [&](auto& c) { return c.count >= least_[k]; });
  if (k > 0 && !worth) {
    // Dropped, and all longer ones with it: their limits are no lower. Their counts still shape the
    // discounts.
    for (const Continuation& c : found_)
      if (c.count <= kDiscounted + 1) ++levels_[k].count_of_counts[c.count];
    return;
  }
  LevelBytes& level = levels_[k];
  token(k, katz::kBranchTokens, k == 0 ? 0 : before(positions_[begin], k));
  ++level.branches;
  block(k, static_cast<std::uint32_t>(end - begin));
  if (k == options_.order) return;
  put(level.sections[katz::kBranchChildren], static_cast<std::uint32_t>(levels_[k + 1].branches));
  put(level.sections[katz::kBranchLeaves], static_cast<std::uint32_t>(levels_[k + 1].leaves));
  children(k + 1, begin, end);
}

void Writer::children(int k, std::size_t begin, std::size_t end) {
  while (begin < end && before(positions_[begin], k) == kNoToken) ++begin;
  while (begin < end) {
    const Token t = before(positions_[begin], k);
    std::size_t stop = begin + 1;
    while (stop < end && before(positions_[stop], k) == t) ++stop;
    if (stop - begin > 1)
      branch(k, begin, stop);
    else
      leaf(k, positions_[begin]);
    begin = stop;
  }
}

void Writer::leaf(int k, std::uint32_t position) {
  int known = k;  // the longest context there is
  while (known < options_.order && before(position, known + 1) != kNoToken) ++known;
  for (int j = k; j <= known; ++j) ++levels_[j].count_of_counts[1];
  if (k > leaf_order_) return;
  LevelBytes& level = levels_[k];
  token(k, katz::kLeafTokens, before(position, k));
  token(k, katz::kLeafNext, text_[position]);
  for (int j = k + 1; j <= leaf_order_; ++j)
    token(k, katz::kLeafTails, j <= known ? before(position, j) : options_.vocab);
  ++level.leaves;
}

// Good-Turing discounts of counts 1 .. 5 as Katz has them; where so little was counted that they make no
// sense, absolute discounting. A larger count never ends below a smaller one, and counts of one always leave
// something over.
std::array<float, kDiscounted + 1> Writer::discounts(int k) const {
  const auto& n = levels_[k].count_of_counts;
  std::array<float, kDiscounted + 1> d{};
  const double n1 = static_cast<double>(n[1]), n2 = static_cast<double>(n[2]);
  const double absolute = n1 + 2 * n2 > 0 ? n1 / (n1 + 2 * n2) : 0.5;
  const double tail = n1 > 0 ? (kDiscounted + 1) * static_cast<double>(n[kDiscounted + 1]) / n1 : 1;
  double before_mass = 0;
  for (int r = 1; r <= kDiscounted; ++r) {
    const double nr = static_cast<double>(n[r]);
    const double turing = nr > 0 ? (r + 1) * static_cast<double>(n[r + 1]) / (r * nr) : 0;
    double dr = tail < 1 ? (turing - tail) / (1 - tail) : 0;
    if (!(dr > 0.05 && dr <= 0.99)) dr = 1 - std::clamp(absolute, 0.05, 0.9) / r;
    dr = std::min(1.0, std::max(dr * r, before_mass) / r);
    before_mass = dr * r;
    d[r] = static_cast<float>(dr);
  }
  return d;
}

Bytes Writer::assemble() {
  const auto levels = static_cast<std::size_t>(options_.order) + 1;
  for (std::size_t k = 0; k < levels; ++k) {
    LevelBytes& level = levels_[k];
    if (k + 1 < levels) {
      put(level.sections[katz::kBranchChildren], static_cast<std::uint32_t>(levels_[k + 1].branches));
      put(level.sections[katz::kBranchLeaves], static_cast<std::uint32_t>(levels_[k + 1].leaves));
    }
    put(level.sections[katz::kBranchBlocks],
        static_cast<std::uint32_t>(level.sections[katz::kBlocks].size()));
  }
  const std::size_t text_bytes = std::min<std::size_t>(options_.provenance.size(), katz::kMostProvenance);
  katz::Header header{};
  std::memcpy(header.magic, katz::kMagic, sizeof header.magic);
  header.version = katz::kVersion;
  header.byte_order = katz::kByteOrder;
  header.vocabulary_hash = options_.vocabulary_hash;
  header.tokens = positions_.size();
  header.vocab = static_cast<std::uint32_t>(options_.vocab);
  header.order = static_cast<std::uint32_t>(options_.order);
  header.token_bytes = token_bytes_;
  header.leaf_order = static_cast<std::uint32_t>(leaf_order_);
  header.provenance_bytes = static_cast<std::uint32_t>(text_bytes);

  const auto aligned = [](std::size_t n) { return (n + 7) / 8 * 8; };
  std::size_t at = aligned(sizeof header + levels * sizeof(katz::LevelEntry) + text_bytes);
  std::vector<katz::LevelEntry> entries(levels);
  for (std::size_t k = 0; k < levels; ++k) {
    entries[k].branches = levels_[k].branches;
    entries[k].leaves = levels_[k].leaves;
    std::ranges::copy(discounts(static_cast<int>(k)), entries[k].discount);
    for (int s = 0; s < kSections; ++s) {
      entries[k].offset[s] = at;
      entries[k].bytes[s] = levels_[k].sections[s].size();
      at = aligned(at + levels_[k].sections[s].size());
    }
  }
  header.file_bytes = at;
  Bytes file;
  file.reserve(at);
  put(file, header);
  for (const auto& entry : entries) put(file, entry);
  for (std::size_t i = 0; i < text_bytes; ++i) file.push_back(static_cast<std::byte>(options_.provenance[i]));
  for (std::size_t k = 0; k < levels; ++k)
    for (Bytes& section : levels_[k].sections) {
      file.resize(aligned(file.size()));
      file.insert(file.end(), section.begin(), section.end());
      Bytes().swap(section);
    }
  file.resize(at);
  return file;
}

// Walks the trie with the contexts of all lengths at hand; a branch's weight needs only shorter contexts'
// probabilities, which are final by then.
struct BackoffPass {
  const katz::View& view;
  std::byte* weights_of[kMaxNgramContext + 1];  // level -> its kBranchBackoff in the file
  std::array<NgramContext, kMaxNgramContext + 1> contexts{};

  void branch(int k, std::uint64_t index) {
    const katz::Block block = view.block(k, index);
    contexts[k] = {block.count, block.distinct, katz::Handle{k, false, index}.packed()};
    double kept = 0, lower = 0;
    for (std::uint32_t i = 0; i < block.stored; ++i) {
      const std::uint32_t c = block.count_of(i);
      kept += static_cast<double>(view.levels[k].discount_of(c)) * c;
      lower +=
          k == 0 ? 1.0 / view.header.vocab
                 : katz::katz_probability(view, contexts.data(), k - 1, static_cast<Token>(block.tokens[i]));
    }
    double left = block.count == 0 ? 1.0 : 1 - kept / block.count;
    double sign = 1;
    if (left < 1e-9) {
      left = 1.0 / (block.count + 1.0);
      sign = -1;
    }
    const auto weight = static_cast<float>(1 - lower > 1e-6 ? sign * left / (1 - lower) : 0.0);
    std::memcpy(weights_of[k] + 4 * index, &weight, sizeof weight);
    if (static_cast<std::uint32_t>(k) == view.header.order) return;
    const katz::Level& level = view.levels[k];
    for (std::uint64_t c = level.children[index]; c < level.children[index + 1]; ++c) branch(k + 1, c);
  }
};

void Writer::fill_backoff(Bytes& file) const {
  auto view = katz::check_file(file, "the n-gram file being built");
  if (!view) check_failed(view.error().message.c_str(), __FILE__, __LINE__);
  BackoffPass pass{*view, {}, {}};
  for (int k = 0; k <= options_.order; ++k)
    pass.weights_of[k] = file.data() + (view->levels[k].backoff - file.data());
  pass.branch(0, 0);
}

Bytes Writer::run() {
  sort();
  branch(0, 0, positions_.size());
  Bytes file = assemble();
  fill_backoff(file);
  return file;
}

}  // namespace

KatzBuilder::KatzBuilder(const KatzBuildOptions& options) : state_(std::make_unique<State>()) {
  COPPICE_CHECK(options.order >= 0 && options.order <= kMaxNgramContext);
  COPPICE_CHECK(options.vocab > 0 && static_cast<std::uint32_t>(options.vocab) <= katz::kMostVocab);
  state_->options = options;
}
KatzBuilder::~KatzBuilder() = default;

void KatzBuilder::add(std::span<const Token> text, std::size_t start) {
  if (start >= text.size()) return;
  // Context further back than the longest is of no use.
  const auto order = static_cast<std::size_t>(state_->options.order);
  const std::size_t from = start > order ? start - order : 0;
  COPPICE_CHECK(state_->text.size() + text.size() - from < 0xffffffffu);
  state_->text.push_back(kNoToken);
  for (std::size_t i = from; i < text.size(); ++i) {
    COPPICE_CHECK(text[i] >= 0 && text[i] < state_->options.vocab);
    if (i >= start) state_->positions.push_back(static_cast<std::uint32_t>(state_->text.size()));
    state_->text.push_back(text[i]);
  }
}

std::uint64_t KatzBuilder::tokens() const { return state_->positions.size(); }

std::vector<std::byte> KatzBuilder::to_bytes() const {
  return Writer(state_->options, state_->text, state_->positions).run();
}

Status KatzBuilder::write(const std::string& path) const {
  const std::vector<std::byte> bytes = to_bytes();
  return write_file(path, [&](const Append& append) { return append(bytes); });
}

}  // namespace coppice::core
