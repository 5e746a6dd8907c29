#include "policy/verification_batch.h"

#include <algorithm>

#include "base/check.h"

namespace coppice::core {

VerificationBatch::VerificationBatch(int requests) : entry_(static_cast<std::size_t>(requests)) {
  for (Entry& entry : entry_) entry.taken.reserve(kMaxTreeNodes);
}

void VerificationBatch::add(const TokenTree& tree, int most) {
  COPPICE_CHECK(entries_ < entry_.size());
  Entry& entry = entry_[entries_++];
  entry.tree = &tree;
  entry.most = most;
  entry.guesses = entry.runs = 0;
  entry.next = 1;
  entry.taken.assign(static_cast<std::size_t>(tree.size()), 0);
  entry.taken[0] = 1;
}

std::span<const std::uint8_t> VerificationBatch::taken(std::size_t i) const { return entry_[i].taken; }

// Whose best guess left is the best of all, of equals the first; null: none is left.
VerificationBatch::Entry* VerificationBatch::best() {
  Entry* best = nullptr;
  for (std::size_t i = 0; i < entries_; ++i) {
    Entry& entry = entry_[i];
    if (!open(entry)) continue;
    if (best == nullptr || entry.tree->value(entry.next) > best->tree->value(best->next)) best = &entry;
  }
  return best;
}

// A parent comes before its children, so the first one left always has a parent that is taken.
void VerificationBatch::take(Entry& entry, int node) {
  entry.taken[static_cast<std::size_t>(node)] = 1;
  ++entry.guesses;
  while (entry.next < entry.tree->size() && entry.taken[static_cast<std::size_t>(entry.next)] != 0)
    ++entry.next;
}

int VerificationBatch::best_child_left(const Entry& entry, int node) {
  int child = entry.tree->first_child(node);
  while (child != kNoNode && entry.taken[static_cast<std::size_t>(child)] != 0)
    child = entry.tree->next_sibling(child);
  return child;
}

void VerificationBatch::fill(int room, double patience) {
  while (room > 0) {
    Entry* entry = best();
    if (entry == nullptr) return;
    int node = entry->next;
    ++entry->runs;
    take(*entry, node);
    for (--room; room > 0 && open(*entry); --room) {
      const int child = best_child_left(*entry, node);
      if (child == kNoNode) break;
      const Entry* other = best();
      if (entry->tree->value(child) * patience < other->tree->value(other->next)) break;
      take(*entry, node = child);
    }
  }
}

}  // namespace coppice::core
