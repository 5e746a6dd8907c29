#include "draft/replay.h"

#include <algorithm>

#include "base/check.h"

namespace coppice::core {

void Replayed::add(const Replayed& other) {
  tokens += other.tokens;
  passes += other.passes;
  nodes += other.nodes;
  top1 += other.top1;
  draft_passes += other.draft_passes;
  trees = trees * 31 + other.trees;
}

Result<Replayed> replay(Grower& grower, std::span<const Token> text, std::size_t start, const Budget& budget,
                        const Sampler& sampler, std::vector<float>* weights, const SeeCycle& see) {
  Replayed sum;
  TokenTree tree;
  std::size_t at = std::max<std::size_t>(start, 1);
  if (at >= text.size()) return sum;
  COPPICE_TRY_STATUS(grower.begin(0, text.first(at), sampler));
  while (at < text.size()) {
    const auto committed = text.first(at);
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
      node = tree.child(node, text[at + accepted++]);
    } while (node != kNoNode && at + accepted < text.size());
    if (see) see(tree, text.subspan(at));
    for (int n = 1; n < tree.size(); ++n)
      sum.trees =
          sum.trees * 1099511628211u + static_cast<std::uint64_t>(tree.token(n)) * 257 + tree.parent(n);
    sum.top1 += tree.size() > 1 && tree.token(1) == text[at];
    sum.nodes += static_cast<std::uint64_t>(tree.size()) - 1;
    ++sum.passes;
    sum.tokens += accepted;
    grower.observe(0, committed, text.subspan(at, accepted));
    at += accepted;
  }
  sum.draft_passes = grower.take_cost().passes;
  if (weights != nullptr) weights->assign(grower.weights(0).begin(), grower.weights(0).end());
  grower.end(0);
  return sum;
}

}  // namespace coppice::core
