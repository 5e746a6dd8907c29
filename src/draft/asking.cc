#include "draft/asking.h"

#include <algorithm>

#include "base/check.h"

namespace coppice::core {

Panel::Panel(std::vector<std::unique_ptr<Drafter>> drafters_) : drafters(std::move(drafters_)) {
  COPPICE_CHECK(drafters.size() <= 32);  // bits of a SourceMask
  for (std::size_t d = 0; d < drafters.size(); ++d) {
    const DrafterShape shape = drafters[d]->shape();
    shapes.push_back(shape);
    offsets.push_back(features);
    features += shape.features;
    costly = costly || shape.costly;
    for (const int layer : drafters[d]->feature_layers()) feature_layers.push_back(layer);
    if (shape.buckets > 1 && bucket_drafter < 0) {
      bucket_drafter = static_cast<int>(d);
      buckets = shape.buckets;
    }
  }
  std::sort(feature_layers.begin(), feature_layers.end());
  feature_layers.erase(std::unique(feature_layers.begin(), feature_layers.end()), feature_layers.end());
  COPPICE_CHECK(features <= kMaxFeatures);  // make_grower() refuses such a mix with a sentence
}

Asking::Asking(const Panel& panel, int capacity) : panel_(&panel), capacity_(capacity) {
  const auto nodes = static_cast<std::size_t>(capacity);
  queries_.resize(nodes);
  some_.reserve(nodes);
  paths_.resize(nodes * kMaxTreeDepth);
  candidates_.resize(panel.drafters.size() * nodes * kMaxCandidates);
  counts_.resize(panel.drafters.size() * nodes);
  x_.resize(static_cast<std::size_t>(kMaxUnion) * panel.features);
  gumbel_.resize(kMaxUnion);
  noise_.resize(kMaxUnion * kNoiseFeatures);
}

void Asking::set(int i, const Query& node) {
  Token* path = &paths_[static_cast<std::size_t>(i) * kMaxTreeDepth];
  std::copy(node.state.path.begin(), node.state.path.end(), path);
  Query& q = queries_[i];
  q = node;
  q.state.path = {path, node.state.path.size()};
  q.wanted = kMaxCandidates;
}

void Asking::ask(int n, bool with_costly) {
  for (std::size_t d = 0; d < panel_->drafters.size(); ++d) {
    int* count = &counts_[d * capacity_];
    if (panel_->shapes[d].costly && !with_costly) {
      std::fill_n(count, n, -1);
      continue;
    }
    ask_one(d, n);
  }
}

void Asking::ask_one(std::size_t d, int n) {
  int* count = &counts_[d * capacity_];
  some_.clear();
  for (int i = 0; i < n; ++i) {
    count[i] = -1;
    if (!panel_->may_ask(d, queries_[i])) continue;
    queries_[i].candidates = &candidates_[(d * capacity_ + i) * kMaxCandidates];
    queries_[i].count = 0;
    some_.push_back(queries_[i]);
  }
  if (some_.empty()) return;
  panel_->drafters[d]->predict(some_);
  auto answered = some_.begin();
  for (int i = 0; i < n; ++i)
    if (panel_->may_ask(d, queries_[i])) count[i] = std::clamp((answered++)->count, 0, kMaxCandidates);
}

// The union of candidates of query i into tokens_/sources_: best of each drafter first, then their second...
// What the request's grammar forbids would be a row for nothing.
int Asking::unite(int i) {
  const Query& query = queries_[i];
  const Allowed allowed = query.sampler != nullptr ? query.sampler->allowed(query.state) : Allowed();
  int n = 0;
  for (int rank = 0; rank < kMaxCandidates; ++rank) {
    for (std::size_t d = 0; d < panel_->drafters.size(); ++d) {
      if (rank >= counts_[d * capacity_ + i]) continue;
      const Token token = candidates_[(d * capacity_ + i) * kMaxCandidates + rank].token;
      const auto there = std::find(tokens_.begin(), tokens_.begin() + n, token);
      const int at = static_cast<int>(there - tokens_.begin());
      if (at == n) {
        if (n == kMaxUnion || !allowed(token)) continue;
        tokens_[n] = token;
        sources_[n++] = 0;
      }
      sources_[at] |= SourceMask{1} << d;
    }
  }
  return n;
}

Opinions Asking::gather(int i, OpinionStore& store) {
  const Query& query = queries_[i];
  const int n = unite(i), features = panel_->features;
  int bucket = 0;
  if (panel_->bucket_drafter >= 0 && counts_[panel_->bucket_drafter * capacity_ + i] >= 0)
    bucket = std::clamp(panel_->drafters[panel_->bucket_drafter]->bucket(query), 0, panel_->buckets - 1);
  Opinions o = store.add(query.state.path, query.value, n, bucket);
  if (o.tokens == nullptr) {
    o = {n, bucket, tokens_.data(), sources_.data(), x_.data(), gumbel_.data(), noise_.data()};
  } else {
    std::copy_n(tokens_.begin(), n, o.tokens);
    std::copy_n(sources_.begin(), n, o.sources);
  }
  std::fill_n(o.x, static_cast<std::size_t>(n) * features, 0.0f);
  const float depth = static_cast<float>(std::min<std::size_t>(query.state.path.size(), 8)) / 8.0f;
  for (int c = 0; c < n; ++c) {
    o.x[c * features] = 1.0f;
    o.x[c * features + 1] = depth;
  }
  if (n == 0) return o;
  for (std::size_t d = 0; d < panel_->drafters.size(); ++d) {
    if (counts_[d * capacity_ + i] < 0) continue;
    panel_->drafters[d]->describe(query, {o.tokens, static_cast<std::size_t>(n)}, o.x + panel_->offsets[d],
                                  features);
  }
  return o;
}

}  // namespace coppice::core
