// Text as the answer: grows trees along a text that a target wrote and accepts what the text says, as the
// engine would, without the target. For fitting priors and for judging drafters.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "draft/grower.h"

namespace coppice::core {

struct Replayed {
  std::uint64_t tokens = 0;
  std::uint64_t passes = 0;  // of the target
  std::uint64_t nodes = 0;
  std::uint64_t top1 = 0;          // the best first guess was right
  std::uint64_t draft_passes = 0;  // the prompt's included
  std::uint64_t trees = 0;         // a hash of all trees
  void add(const Replayed& other);
};

// One cycle: the tree that was grown, and what the text says from its root on (at least one token).
using SeeCycle = std::function<void(const TokenTree& tree, std::span<const Token> truth)>;

// Cycle by cycle from token `start` (at least 1) to the end of the text. budget.nodes = 0: nothing is grown,
// every token teaches the mixer. `weights`, if given: what this sequence knows in the end.
Result<Replayed> replay(Grower& grower, std::span<const Token> text, std::size_t start, const Budget& budget,
                        const Sampler& sampler, std::vector<float>* weights = nullptr,
                        const SeeCycle& see = {});

}  // namespace coppice::core
