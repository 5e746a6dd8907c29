#include "text/merges.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <tuple>

namespace coppice::core {
namespace {

// Up to here scanning all pairs for the lowest rank beats a heap; the results are the same.
constexpr std::size_t kShortWord = 32;
constexpr std::uint32_t kNoRank = 0xFFFFFFFFu;
constexpr std::uint32_t kNowhere = 0xFFFFFFFFu;

}  // namespace

void Merges::add(Token left, Token right, Token merged) {
  table_.add(static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right), Merge{count_, merged});
  ++count_;
}

void Merges::apply(std::span<Token> word, std::vector<Token>& out) const {
  if (word.size() <= kShortWord) {
    apply_short(word, out);
  } else {
    apply_long(word, out);
  }
}

void Merges::apply_short(std::span<Token> word, std::vector<Token>& out) const {
  std::array<Merge, kShortWord> pairs{};  // pairs[i]: the merge of word[i] and word[i + 1]
  std::size_t size = word.size();
  const auto look_up = [&](std::size_t i) {
    const Merge* merge = find(word[i], word[i + 1]);
    pairs[i] = merge ? *merge : Merge{kNoRank, kNoToken};
  };
  for (std::size_t i = 0; i + 1 < size; ++i) look_up(i);
  while (size > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < size; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == kNoRank) break;
    word[best] = pairs[best].merged;
    --size;
    for (std::size_t i = best + 1; i < size; ++i) {
      word[i] = word[i + 1];
      pairs[i] = pairs[i + 1];
    }
    if (best > 0) look_up(best - 1);
    if (best + 1 < size) look_up(best);
  }
  out.insert(out.end(), word.begin(), word.begin() + static_cast<std::ptrdiff_t>(size));
}

// A linked list of symbols and a heap of candidate merges; a candidate whose symbols have changed since is
// skipped when it comes up.
void Merges::apply_long(std::span<Token> word, std::vector<Token>& out) const {
  struct Symbol {
    Token token;
    std::uint32_t previous, next;
  };
  struct Candidate {
    std::uint32_t rank, at;
    Token left, right, merged;
    bool operator>(const Candidate& other) const {
      return std::tie(rank, at) > std::tie(other.rank, other.at);
    }
  };
  const auto size = static_cast<std::uint32_t>(word.size());
  std::vector<Symbol> symbols(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    symbols[i] = {word[i], i > 0 ? i - 1 : kNowhere, i + 1 < size ? i + 1 : kNowhere};
  }
  std::vector<Candidate> storage;
  storage.reserve(size);
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> heap(std::greater<>(),
                                                                              std::move(storage));
  const auto consider = [&](std::uint32_t at) {
    if (at == kNowhere || symbols[at].next == kNowhere) return;
    const Token left = symbols[at].token, right = symbols[symbols[at].next].token;
    if (const Merge* merge = find(left, right)) heap.push({merge->rank, at, left, right, merge->merged});
  };
  for (std::uint32_t i = 0; i < size; ++i) consider(i);
  while (!heap.empty()) {
    const Candidate top = heap.top();
    heap.pop();
    Symbol& left = symbols[top.at];
    if (left.token != top.left || left.next == kNowhere || symbols[left.next].token != top.right) continue;
    Symbol& right = symbols[left.next];
    left.token = top.merged;
    left.next = right.next;
    right.token = kNoToken;
    if (left.next != kNowhere) symbols[left.next].previous = top.at;
    consider(left.previous);
    consider(top.at);
  }
  for (std::uint32_t i = 0; i != kNowhere; i = symbols[i].next) out.push_back(symbols[i].token);
}

}  // namespace coppice::core
