// Text as the answer: grows trees along a text that a target wrote and accepts what the text says, as the
// engine would, and shows drafters that read the target's states what the engine would show them. For fitting
// priors and for judging drafters.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "draft/grower.h"

namespace coppice::core {

struct ReplayText {
  std::span<const Token> tokens;
  std::size_t start = 0;  // of what the target wrote; at least one token is taken for the prompt
  // Of all tokens but the last (target_states.h); needed where a drafter names feature_layers().
  Features states = {};
};

enum class Pace {
  cycles,     // as the engine walks: what is accepted of a tree is committed at once
  each_token  // a tree at every token, of which one is committed: what would be said everywhere
};

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

// Cycle by cycle to the end of the text. budget.nodes = 0: nothing is grown, every token teaches the mixer.
Result<Replayed> replay(Grower& grower, const ReplayText& text, const Budget& budget, const Sampler& sampler,
                        const SeeCycle& see = {}, Pace pace = Pace::cycles);

}  // namespace coppice::core
