#include "draft/katz.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "draft/katz_format.h"

namespace coppice::core {

using katz::Block;
using katz::Handle;
using katz::Level;
using katz::View;

namespace katz {
namespace {

// The index of `token` in the rising tokens[begin, end), or -1.
std::int64_t find(Tokens tokens, std::uint64_t begin, std::uint64_t end, std::uint32_t token) {
  while (begin < end) {
    const std::uint64_t middle = begin + (end - begin) / 2;
    const std::uint32_t there = tokens[middle];
    if (there == token) return static_cast<std::int64_t>(middle);
    if (there < token)
      begin = middle + 1;
    else
      end = middle;
  }
  return -1;
}

NgramContext branch_context(const View& view, int level, std::uint64_t index) {
  const Block block = view.block(level, index);
  return {block.count, block.distinct, Handle{level, false, index}.packed()};
}

constexpr double kLeast = 1e-9;  // of mass left over: below it, back-off has nothing to share out

}  // namespace

Shares shares_of(const Block& block, float weight) {
  const double count = block.count;
  if (weight > 0) return {count, weight, true};
  if (weight < 0) return {count + 1, -weight, false};
  if (block.stored == block.distinct) return {count, 0, false};
  double sum = 0;
  for (std::uint32_t i = 0; i < block.stored; ++i) sum += block.count_of(i);
  return {sum, 0, false};
}

std::int64_t find_in_block(const Block& block, Token token) {
  const auto wanted = static_cast<std::uint32_t>(token);
  const std::uint32_t head = std::min<std::uint32_t>(block.stored, kHead);
  for (std::uint32_t i = 0; i < head; ++i)
    if (block.tokens[i] == wanted) return i;
  return find(block.tokens, head, block.stored, wanted);
}

void walk(const View& view, std::span<const Token> tokens, NgramContext* out) {
  const int order = static_cast<int>(view.header.order);
  std::fill_n(out, order + 1, NgramContext{});
  Handle at{};
  out[0] = branch_context(view, 0, 0);
  for (int k = 1; k <= order && static_cast<std::size_t>(k) <= tokens.size(); ++k) {
    const auto token = static_cast<std::uint32_t>(tokens[tokens.size() - k]);
    if (at.leaf) {
      const Level& level = view.levels[at.level];
      const int i = k - at.level - 1;
      if (i >= level.tail || level.leaf_tails[at.index * level.tail + i] != token) return;
      if (token >= view.header.vocab) return;
      out[k] = {1, 1, at.packed()};
      continue;
    }
    const Level& parents = view.levels[k - 1];
    const Level& level = view.levels[k];
    if (const auto branch =
            find(level.tokens, parents.children[at.index], parents.children[at.index + 1], token);
        branch >= 0) {
      at = {k, false, static_cast<std::uint64_t>(branch)};
      out[k] = branch_context(view, k, at.index);
      continue;
    }
    const auto leaf =
        find(level.leaf_tokens, parents.first_leaf[at.index], parents.first_leaf[at.index + 1], token);
    if (leaf < 0) return;
    at = {k, true, static_cast<std::uint64_t>(leaf)};
    out[k] = {1, 1, at.packed()};
  }
}

// P(w | context) = d(c) c / n where the continuation is stored, else backoff * P(w | one token less). Leaves
// store no back-off weight: it follows from their one continuation.
double katz_probability(const View& view, const NgramContext* contexts, int order, Token token) {
  const auto step = [&](int k, const Handle& at, Token w, double lower) {
    const Block block = view.block(k, at.index);
    const Shares shares = shares_of(block, view.backoff(k, at.index));
    const std::int64_t found = find_in_block(block, w);
    if (found < 0) return shares.backoff * lower;
    const std::uint32_t c = block.count_of(static_cast<std::size_t>(found));
    return shares.share(c, view.levels[k].discount_of(c));
  };
  const double uniform = 1.0 / view.header.vocab;
  double p = step(0, Handle{}, token, uniform);
  int k = 1;
  Handle at{};
  for (; k <= order && contexts[k].count != 0; ++k) {
    at = Handle::unpack(contexts[k].handle);
    if (at.leaf) break;
    p = step(k, at, token, p);
  }
  if (k > order || contexts[k].count == 0) return p;
  const auto next = static_cast<Token>(view.levels[at.level].leaf_next[at.index]);
  double q = step(0, Handle{}, next, uniform);  // of the leaf's continuation
  for (int j = 1; j < k; ++j) q = step(j, Handle::unpack(contexts[j].handle), next, q);
  for (; k <= order && contexts[k].count != 0; ++k) {
    const bool only = 1 - q < kLeast;
    const double d = only ? 1.0 : view.levels[k].discount[1];
    p = token == next ? d : only ? 0.0 : (1 - d) / (1 - q) * p;
    q = d;
  }
  return p;
}

}  // namespace katz

struct KatzModel::State {
  MappedFile file;
  View view;
  // How often each token was seen at all: the one block that holds nearly every token, where each search
  // would miss the cache many times. Empty where that would take far more memory than the file.
  std::vector<std::uint32_t> alone;

  void count_alone() {
    const Block block = view.block(0, 0);
    if (view.header.vocab / kSparse > block.stored) return;
    alone.resize(view.header.vocab);
    for (std::uint32_t i = block.stored; i-- > 0;)
      alone[block.tokens[i]] = block.count_of(i);  // the first one counts
  }
  // 0: not stored.
  std::uint32_t count_in(const Block& block, int level, Token token) const {
    if (level == 0 && !alone.empty())
      return static_cast<std::uint32_t>(token) < alone.size() ? alone[static_cast<std::size_t>(token)] : 0;
    const std::int64_t found = katz::find_in_block(block, token);
    return found < 0 ? 0 : block.count_of(static_cast<std::size_t>(found));
  }

 private:
  static constexpr std::uint32_t kSparse = 64;
};

KatzModel::KatzModel() : state_(std::make_unique<State>()) {}
KatzModel::~KatzModel() = default;

Result<std::shared_ptr<const KatzModel>> KatzModel::open(const std::string& path) {
  COPPICE_TRY(MappedFile file, MappedFile::open(path));
  COPPICE_TRY(View view, katz::check_file(file.bytes(), path));
  std::shared_ptr<KatzModel> model(new KatzModel());
  model->state_->file = std::move(file);
  model->state_->view = std::move(view);
  model->state_->count_alone();
  return std::shared_ptr<const KatzModel>(std::move(model));
}

Result<std::shared_ptr<const KatzModel>> KatzModel::parse(std::span<const std::byte> bytes,
                                                          std::string name) {
  COPPICE_TRY(View view, katz::check_file(bytes, name));
  std::shared_ptr<KatzModel> model(new KatzModel());
  model->state_->view = std::move(view);
  model->state_->count_alone();
  return std::shared_ptr<const KatzModel>(std::move(model));
}

int KatzModel::order() const { return static_cast<int>(state_->view.header.order); }
int KatzModel::vocab() const { return static_cast<int>(state_->view.header.vocab); }
std::uint64_t KatzModel::tokens() const { return state_->view.header.tokens; }
std::uint64_t KatzModel::vocabulary_hash() const { return state_->view.header.vocabulary_hash; }
std::size_t KatzModel::bytes() const { return state_->view.header.file_bytes; }
const std::string& KatzModel::provenance() const { return state_->view.provenance; }

void KatzModel::contexts(std::span<const Token> tokens, NgramContext* out) const {
  katz::walk(state_->view, tokens, out);
}

std::uint32_t KatzModel::count(const NgramContext& context, Token token) const {
  if (context.count == 0) return 0;
  const View& view = state_->view;
  const Handle at = Handle::unpack(context.handle);
  if (at.leaf) return view.levels[at.level].leaf_next[at.index] == static_cast<std::uint32_t>(token) ? 1 : 0;
  const Block block = view.block(at.level, at.index);
  const std::int64_t found = katz::find_in_block(block, token);
  return found < 0 ? 0 : block.count_of(static_cast<std::size_t>(found));
}

int KatzModel::top(const NgramContext& context, std::span<Token> out, std::uint32_t* counts) const {
  if (context.count == 0 || out.empty()) return 0;
  const View& view = state_->view;
  const Handle at = Handle::unpack(context.handle);
  if (at.leaf) {
    out[0] = static_cast<Token>(view.levels[at.level].leaf_next[at.index]);
    counts[0] = 1;
    return 1;
  }
  const Block block = view.block(at.level, at.index);
  int n = 0;
  for (std::uint32_t i = 0; i < block.stored; ++i) {
    const std::uint32_t c = block.count_of(i);
    const auto token = static_cast<Token>(block.tokens[i]);
    const int room = static_cast<int>(out.size());
    if (i >= katz::kHead && room <= katz::kHead) break;
    int to = n;
    // Behind the head tokens rise, so an equal count never passes one that came before it... but a head
    // entry of equal count may have a higher token.
    while (to > 0 && (counts[to - 1] < c || (counts[to - 1] == c && out[to - 1] > token))) --to;
    if (to == room) continue;
    n = std::min(n + 1, room);
    for (int j = n - 1; j > to; --j) {
      out[j] = out[j - 1];
      counts[j] = counts[j - 1];
    }
    out[to] = token;
    counts[to] = c;
  }
  return n;
}

float KatzModel::probability(const NgramContext* contexts, Token token) const {
  return static_cast<float>(katz::katz_probability(state_->view, contexts, order(), token));
}

namespace {

// The best so far by (probability descending, token ascending), and which tokens longer contexts have spoken
// for.
struct Best {
  std::span<Token> tokens;
  float* probabilities;
  int count = 0;
  std::array<Token, (kMaxNgramContext + 1) * katz::kHead> spoken;
  int spoken_for = 0;

  float least() const {
    return count < static_cast<int>(tokens.size()) ? 0.0f : probabilities[tokens.size() - 1];
  }
  bool knows(Token token) const {
    return std::find(spoken.begin(), spoken.begin() + spoken_for, token) != spoken.begin() + spoken_for;
  }
  void offer(Token token, float p) {
    spoken[spoken_for++] = token;
    int to = count;
    while (to > 0 && (probabilities[to - 1] < p || (probabilities[to - 1] == p && tokens[to - 1] > token)))
      --to;
    if (to == static_cast<int>(tokens.size())) return;
    count = std::min(count + 1, static_cast<int>(tokens.size()));
    for (int j = count - 1; j > to; --j) {
      tokens[j] = tokens[j - 1];
      probabilities[j] = probabilities[j - 1];
    }
    tokens[to] = token;
    probabilities[to] = p;
  }
};

// Blocks of longer contexts that hold more than their head.
struct LongBlocks {
  std::array<Block, kMaxNgramContext + 1> blocks;
  int count = 0;
  bool hold(Token token) const {
    for (int i = 0; i < count; ++i)
      if (katz::find_in_block(blocks[i], token) >= 0) return true;
    return false;
  }
};

// What a leaf says at each of its context lengths: its continuation's probability and the back-off weight.
struct LeafChain {
  Token next = kNoToken;
  std::array<double, kMaxNgramContext + 1> own, backoff;

  LeafChain(const View& view, const NgramContext* contexts, int longest) {
    const Handle at = Handle::unpack(contexts[longest].handle);
    if (longest == 0 || !at.leaf) return;
    next = static_cast<Token>(view.levels[at.level].leaf_next[at.index]);
    double q = katz::katz_probability(view, contexts, at.level - 1, next);
    for (int k = at.level; k <= longest; ++k) {
      const bool only = 1 - q < katz::kLeast;
      own[k] = only ? 1.0 : view.levels[k].discount[1];
      backoff[k] = only ? 0.0 : (1 - own[k]) / (1 - q);
      q = own[k];
    }
  }
};

}  // namespace

void KatzModel::judge(const NgramContext* contexts, std::span<const Token> tokens, std::uint32_t* counts,
                      float* probabilities) const {
  const View& view = state_->view;
  const std::size_t n = tokens.size();
  int longest = 0;
  while (longest < order() && contexts[longest + 1].count != 0) ++longest;
  std::fill_n(counts, n * static_cast<std::size_t>(order() + 1), 0u);
  const LeafChain chain(view, contexts, longest);
  std::array<double, kMostJudged> p;
  COPPICE_CHECK(n <= p.size());
  p.fill(1.0 / view.header.vocab);
  for (int k = 0; k <= longest; ++k, counts += n) {
    const Handle at = Handle::unpack(contexts[k].handle);
    if (k > 0 && at.leaf) {
      for (std::size_t t = 0; t < n; ++t) {
        counts[t] = tokens[t] == chain.next ? 1 : 0;
        p[t] = tokens[t] == chain.next ? chain.own[k] : chain.backoff[k] * p[t];
      }
      continue;
    }
    const Block block = view.block(k, at.index);
    const katz::Shares shares = katz::shares_of(block, view.backoff(k, at.index));
    for (std::size_t t = 0; t < n; ++t) {
      const std::uint32_t c = counts[t] = state_->count_in(block, k, tokens[t]);
      p[t] = c > 0 ? shares.share(c, view.levels[k].discount_of(c)) : shares.backoff * p[t];
    }
  }
  for (std::size_t t = 0; t < n; ++t) probabilities[t] = static_cast<float>(p[t]);
}

// From the longest context down: what it stores, then what is left over times the next shorter one's. Of
// each context the kHead most frequent continuations are looked at.
int KatzModel::predict(const NgramContext* contexts, std::span<Token> out, float* probabilities) const {
  if (out.empty()) return 0;
  const View& view = state_->view;
  Best best{out, probabilities, 0, {}, 0};
  int longest = 0;
  while (longest < order() && contexts[longest + 1].count != 0) ++longest;
  LongBlocks longer;
  const LeafChain chain(view, contexts, longest);
  double left = 1;  // product of the back-off weights so far
  for (int k = longest; k >= 0 && left > best.least(); --k) {
    const Handle at = Handle::unpack(contexts[k].handle);
    if (k > 0 && at.leaf) {
      if (k == longest) best.offer(chain.next, static_cast<float>(chain.own[k]));
      left *= chain.backoff[k];
      continue;
    }
    const Block block = view.block(k, at.index);
    const katz::Shares shares = katz::shares_of(block, view.backoff(k, at.index));
    const std::uint32_t head = std::min<std::uint32_t>(block.stored, katz::kHead);
    for (std::uint32_t i = 0; i < head; ++i) {
      const auto token = static_cast<Token>(block.tokens[i]);
      const std::uint32_t c = block.count_of(i);
      const double p = left * shares.share(c, view.levels[k].discount_of(c));
      if (p <= best.least()) {  // so are the others
        for (; i < head && k > 0; ++i) best.spoken[best.spoken_for++] = static_cast<Token>(block.tokens[i]);
        break;
      }
      if (!best.knows(token) && !longer.hold(token)) best.offer(token, static_cast<float>(p));
    }
    if (block.stored > katz::kHead) longer.blocks[longer.count++] = block;
    left *= shares.backoff;
  }
  return best.count;
}

}  // namespace coppice::core
