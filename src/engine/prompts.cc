// How prompts are read: chunks of all of them beside everybody's trees, a fair share each, and what another
// request has read already, or reads just now, is not read twice.
#include <algorithm>

#include "base/check.h"
#include "engine/engine.h"

namespace coppice::core {
namespace {

// Positions of `b` that a request which begins with `a` can use; the last token of `a` is the root.
int usable_prefix(const std::vector<Token>& a, const std::vector<Token>& b) {
  const auto end = a.end() - 1;
  const auto most = std::min(a.size() - 1, b.size());
  const auto differ = std::mismatch(a.begin(), end, b.begin(), b.begin() + static_cast<std::ptrdiff_t>(most));
  return static_cast<int>(differ.first - a.begin());
}

}  // namespace

// Takes over what another request in work has in its cache, where that is more than its own by a block.
// False: an earlier one is about to read what this one needs next, and it waits for that.
bool Engine::share_prompt(Active& request) {
  KvCache& cache = context_->cache();
  int own = cache.length(request.sequence);
  bool waits = false, earlier = true;
  for (const auto& entry : active_) {
    Active& other = *entry;
    if (&other == &request) {
      earlier = false;
      continue;
    }
    const int usable = usable_prefix(request.tokens, other.tokens);
    if (usable < own + kBlockPositions) continue;
    const int there = cache.length(other.sequence);
    const int more = std::min(usable, there);
    if (more >= own + kBlockPositions) {
      cache.rewind(request.sequence, 0);
      // What it needs less of now covers the copy of a block in part.
      COPPICE_CHECK(cache.share(other.sequence, request.sequence, more).has_value() &&
                    cache.reserve(request.sequence, request.limit).has_value());
      request.generation.stats.reused_tokens += static_cast<std::uint64_t>(more - own);
      own = more;
    }
    waits = waits || (earlier && !other.decoding(there) && usable >= own + kBlockPositions);
  }
  return !waits;
}

// The room is shared out evenly, the shortest first: who needs less than a share leaves the rest to the
// others.
void Engine::add_prompts(int room) {
  prompts_.clear();
  for (auto& entry : active_)
    if (entry->row_count == 0 && !entry->decoding(context_->cache().length(entry->sequence)) &&
        share_prompt(*entry) && !entry->decoding(context_->cache().length(entry->sequence)))
      prompts_.push_back(entry.get());
  const auto left = [&](const Active* request) {
    return static_cast<int>(request->tokens.size()) - context_->cache().length(request->sequence);
  };
  std::sort(prompts_.begin(), prompts_.end(), [&](const Active* a, const Active* b) {
    return left(a) != left(b) ? left(a) < left(b) : a->id < b->id;
  });
  for (std::size_t i = 0; i < prompts_.size(); ++i) {
    const int sharing = static_cast<int>(prompts_.size() - i);
    add_prompt_rows(*prompts_[i], (room + sharing - 1) / sharing);
    room -= prompts_[i]->row_count;
  }
}

void Engine::add_prompt_rows(Active& request, int room) {
  const int cached = context_->cache().length(request.sequence);
  const int left = static_cast<int>(request.tokens.size()) - 1 - cached;
  request.first_row = static_cast<int>(rows_.size());
  request.row_count = std::min(room, left);
  for (int i = 0; i < request.row_count; ++i) {
    Row row;
    row.sequence = request.sequence;
    row.token = request.tokens[static_cast<std::size_t>(cached + i)];
    row.position = cached + i;
    row.wants = reads_features(request) ? kFeatures : kNothing;
    rows_.push_back(row);
  }
}

}  // namespace coppice::core
