#include "engine/sequences.h"

#include <algorithm>

namespace coppice::core {
namespace {

int common_prefix(std::span<const Token> a, std::span<const Token> b) {
  std::size_t n = 0;
  while (n < a.size() && n < b.size() && a[n] == b[n]) ++n;
  return static_cast<int>(n);
}

}  // namespace

Result<Sequences::Lease> Sequences::take(std::span<const Token> tokens, int length) {
  const std::span<const Token> before_root = tokens.first(tokens.size() - 1);
  std::size_t best = idle_.size();
  int reused = 0;
  for (std::size_t i = 0; i < idle_.size(); ++i) {
    int n = common_prefix(before_root, idle_[i].tokens);
    if (n > reused) {
      reused = n;
      best = i;
    }
  }
  Lease lease;
  if (best < idle_.size()) {
    lease = {idle_[best].sequence, reused};
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(best));
    cache_.rewind(lease.sequence, reused);
  } else {
    auto opened = cache_.open();
    if (!opened && evict_oldest()) opened = cache_.open();
    if (!opened) return tl::unexpected(opened.error());
    lease = {*opened, 0};
  }
  Status room = cache_.reserve(lease.sequence, length);
  while (!room && evict_oldest()) room = cache_.reserve(lease.sequence, length);
  if (!room) {
    cache_.close(lease.sequence);
    return tl::unexpected(room.error());
  }
  return lease;
}

void Sequences::put(int sequence, std::span<const Token> tokens) {
  idle_.push_back({sequence, clock_++, {tokens.begin(), tokens.end()}});
}

bool Sequences::evict_oldest() {
  if (idle_.empty()) return false;
  auto oldest = std::min_element(idle_.begin(), idle_.end(),
                                 [](const Idle& a, const Idle& b) { return a.age < b.age; });
  cache_.close(oldest->sequence);
  idle_.erase(oldest);
  return true;
}

}  // namespace coppice::core
