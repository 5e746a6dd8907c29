// What a draft makes of a prompt: it has to read it anyway, and here says on the way how little it expected
// it.
#include <cmath>

#include "base/check.h"
#include "draft/model_drafter.h"

namespace coppice::core {

// Row p says what it makes of token p + 1. The root is left to predict(), which wants its logits later.
std::optional<float> ModelDrafter::surprise(int sequence, std::span<const Token> committed, int last) {
  Sequence& s = sequences_[sequence];
  COPPICE_CHECK(s.open && static_cast<int>(committed.size()) == s.length);
  const int root = s.length - 1;
  const int first = std::max(0, root - last);
  KvCache& cache = context_->cache();
  if (s.stopped || first == root || s.length > limit_) return std::nullopt;
  if (cache.length(s.cache) > first) cache.rewind(s.cache, first);
  if (!cache.reserve(s.cache, s.length)) return std::nullopt;
  context_->set_variant(options_.variant != kByCapacity ? options_.variant
                                                        : variant_for(context_->model(), Budget{}));
  double sum = 0;
  const double of_nothing = std::log(static_cast<double>(vocab()));
  for (int at = cache.length(s.cache); at < root;) {
    rows_.clear();
    for (int p = at; p < root && rows_.size() < static_cast<std::size_t>(kPassRows); ++p) {
      const unsigned wants = p >= first ? kLogits : kNothing;
      rows_.push_back({s.cache, committed[static_cast<std::size_t>(p)], p, kCommitted, kCommitted, wants});
    }
    if (!context_->forward(rows_)) {
      s.stopped = true;
      return std::nullopt;
    }
    for (int r = 0; r < static_cast<int>(rows_.size()); ++r, ++at) {
      if (at < first) continue;
      const auto next = static_cast<std::size_t>(at) + 1;
      const LogitRow row{context_->logits(r), context_->maxima(r)};
      const float logprob = plain_.logprob(committed[next], row, {committed.first(next), {}}, scratch_);
      sum += std::isfinite(logprob) ? -static_cast<double>(logprob) : of_nothing;
    }
  }
  return static_cast<float>(sum / (root - first));
}

}  // namespace coppice::core
