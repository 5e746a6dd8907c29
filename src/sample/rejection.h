// acceptance = rejection: the classic rule, exact in distribution and outside law 1. Chains:
// arXiv:2211.17192. Trees without replacement: siblings are tested in the order drawn; after each refusal the
// residual max(p - q, 0) is normalised and q is renormalised without the refused sibling (arXiv:2305.09781,
// 2402.12374).
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"

namespace coppice::core {

// One expanded node of a draft tree as the verifier sees it.
struct Siblings {
  std::span<const Token> tokens;  // children in the order drawn
  std::span<const float> q;       // [vocab] the draft's filtered, normalised distribution at the node; empty:
                                  // children are deterministic guesses (point masses)
};

struct Verdict {
  Token token = kNoToken;  // what is emitted at this node
  int child = -1;          // which sibling it is, or -1: drawn from the residual, the walk ends
};

class Rejection {
 public:
  Rejection(const NoiseKey& key, int vocab);
  // p: [vocab] the target's filtered, normalised distribution at the node; overwritten by residuals.
  // `number` is a running number of the request's decisions; it advances by what is used.
  Verdict decide(std::span<float> p, const Siblings& siblings, std::uint64_t& number);
  // The draft's side: draws `count` distinct tokens from q without replacement (q unchanged). Returns how
  // many (fewer when q has fewer tokens of positive chance).
  int draw_siblings(std::span<const float> q, int count, std::uint64_t& number, Token* out);

 private:
  NoiseKey key_;
  std::vector<float> scratch_;
};

}  // namespace coppice::core
