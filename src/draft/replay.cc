#include "draft/replay.h"

#include <algorithm>

#include "base/check.h"

namespace coppice::core {
namespace {

// What the target computed at the tokens from `first` to before `end`, as the engine shows it (cycle.cc).
void show(Grower& grower, const ReplayText& text, std::size_t first, std::size_t end) {
  if (grower.feature_layers().empty() || first == end) return;
  Features shown = text.states;
  shown.position = static_cast<int>(first);
  shown.rows = text.states.rows.subspan(first, end - first);
  grower.see(0, text.tokens.first(end + 1), shown);
}

}  // namespace

void Replayed::add(const Replayed& other) {
  tokens += other.tokens;
  passes += other.passes;
  nodes += other.nodes;
  top1 += other.top1;
  draft_passes += other.draft_passes;
  trees = trees * 31 + other.trees;
}

Result<Replayed> replay(Grower& grower, const ReplayText& text, const Budget& budget, const Sampler& sampler,
                        const SeeCycle& see, Pace pace) {
  Replayed sum;
  TokenTree tree;
  const std::span<const Token> tokens = text.tokens;
  std::size_t at = std::max<std::size_t>(text.start, 1);
  if (at >= tokens.size()) return sum;
  COPPICE_CHECK(grower.feature_layers().empty() || text.states.rows.size() + 1 == tokens.size());
  COPPICE_TRY_STATUS(grower.begin(0, tokens.first(at), sampler));
  show(grower, text, 0, at - 1);
  while (at < tokens.size()) {
    const auto committed = tokens.first(at);
    tree.reset(committed.back());
    GrowJob job;
    job.committed = committed;
    job.sampler = &sampler;
    job.budget = budget;
    job.tree = &tree;
    if (budget.nodes > 0) grower.grow({&job, 1});
    std::size_t accepted = 0;
    int node = 0;
    do {
      node = tree.child(node, tokens[at + accepted++]);
    } while (node != kNoNode && at + accepted < tokens.size() && pace == Pace::cycles);
    if (see) see(tree, tokens.subspan(at));
    for (int n = 1; n < tree.size(); ++n)
      sum.trees =
          sum.trees * 1099511628211u + static_cast<std::uint64_t>(tree.token(n)) * 257 + tree.parent(n);
    sum.top1 += tree.size() > 1 && tree.token(1) == tokens[at];
    sum.nodes += static_cast<std::uint64_t>(tree.size()) - 1;
    ++sum.passes;
    sum.tokens += accepted;
    show(grower, text, at - 1, at - 1 + accepted);
    grower.observe(0, committed, tokens.subspan(at, accepted));
    at += accepted;
  }
  sum.draft_passes = grower.take_cost().passes;
  grower.end(0);
  return sum;
}

}  // namespace coppice::core
