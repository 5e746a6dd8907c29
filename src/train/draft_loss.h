// What a draft is taught: the target's distribution of the next token, of which the corpus keeps the K most
// likely tokens. The others are one more outcome, "the rest".
//
// Both sides are sharpened by a temperature (0.5 weighs what greedy text needs), and the losses are over K +
// 1 outcomes:
//   kl    forward KL, target to draft (arXiv:1503.02531)
//   tv    total variation: one minus the chance that a drafted token is accepted (arXiv:2211.17192, 3.3;
//   DistillSpec,
//         arXiv:2310.08461)
//   lk    minus the logarithm of that chance, the likelihood of acceptance
//   mix   lambda kl + (1 - lambda) tv with lambda = exp(-3 acceptance), per token: KL while the draft is far
//   off, whose
//         gradient does not vanish there, and the acceptance itself once it is near
//
// The head is the greater part of a small draft, so most steps look at some of its rows only: the most used
// ones, those that the target named in this batch, and a random sample that stands for all others.
#pragma once

#include <coppice/error.h>
#include <cstdint>
#include <string_view>

#include "train/random.h"
#include "train/torch.h"

namespace coppice::core::train {

enum class DraftLoss { kl, tv, lk, mix };
Result<DraftLoss> parse_draft_loss(std::string_view name);

// The target's word on `n` tokens.
struct DraftTeacher {
  torch::Tensor rows;           // int64 [n, K] rows of the draft's head, -1 where it has none
  torch::Tensor probabilities;  // f32 [n, K], at temperature 1

  std::int64_t size() const { return rows.size(0); }
};

// Probabilities at `temperature`: [n, K] of the named tokens, 0 where the head has no such row, and [n] of
// all else. What p^(1/T) sums to over tokens that are not named is estimated: they lie between 0 and the last
// one named.
struct Sharpened {
  torch::Tensor named;  // f32 [n, K]
  torch::Tensor rest;   // f32 [n]
};
Sharpened sharpen(const DraftTeacher& teacher, double temperature);

// Rows of the head that a step looks at.
struct Candidates {
  torch::Tensor rows;       // int64 [c] distinct, ascending; undefined: all rows
  torch::Tensor log_share;  // f32 [c]: log of how many rows each stands for
  torch::Tensor column;     // int64 [head rows]: where a row stands, -1: nowhere
};
struct CandidateOptions {
  std::int64_t always = 1024;   // of the most used rows
  std::int64_t sampled = 1024;  // of those that nobody named
  float least = 1e-3f;          // probability that makes a row named
};
Candidates all_candidates(std::int64_t head_rows);
// `by_use`: int64 [head rows], the most used first.
Candidates choose_candidates(const DraftTeacher& teacher, const Sharpened& sharpened,
                             const torch::Tensor& by_use, const CandidateOptions& options, Random& random);

struct LossOptions {
  DraftLoss loss = DraftLoss::mix;
  double temperature = 0.5;
};

// A loss and its gradient in closed form: what autograd would keep is several times the logits.
struct LossResult {
  double loss = 0;         // mean over tokens
  double acceptance = 0;   // mean of 1 - TV at the temperature
  torch::Tensor gradient;  // of the mean by the logits [n, c], in their type
  torch::Tensor softmax;   // f32 [n, c]: the draft's distribution over candidates at the temperature
};
// logits [n, c]. `guide` (with its `weight`): another distribution [n, c] that is imitated as well, the one
// of a wider slice.
LossResult draft_loss(const torch::Tensor& logits, const DraftTeacher& teacher, const Sharpened& sharpened,
                      const Candidates& candidates, const LossOptions& options,
                      const torch::Tensor& guide = {}, double weight = 0);

}  // namespace coppice::core::train
