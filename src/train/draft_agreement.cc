#include "train/draft_agreement.h"

#include <algorithm>

namespace coppice::core::train {
namespace {

constexpr std::int64_t kRows = 512;  // logits of so many tokens at a time

void compare(const torch::Tensor& logits, const DraftTeacher& teacher, const Candidates& all,
             Agreement& sum) {
  const torch::Tensor said = std::get<1>(logits.topk(std::min<std::int64_t>(8, logits.size(1)), 1));
  const torch::Tensor hit = said == teacher.rows.slice(1, 0, 1);  // [n, 8]; a token without a row is no hit
  const auto count = [&](std::int64_t k) { return hit.slice(1, 0, k).any(1).sum().item<double>(); };
  sum.top1 += count(1);
  sum.top4 += count(4);
  sum.top8 += count(8);
  const LossResult result = draft_loss(logits, teacher, sharpen(teacher, 1.0), all, {DraftLoss::tv, 1.0});
  sum.overlap += result.acceptance * static_cast<double>(teacher.size());
  sum.tokens += static_cast<double>(teacher.size());
}

}  // namespace

void add_agreement(SlimDraft& draft, std::span<const DraftMode> modes, const DraftBatch& batch,
                   std::vector<Agreement>& sums) {
  torch::NoGradGuard no_grad;
  if (sums.empty()) {
    for (const DraftMode& mode : modes) sums.emplace_back().name = mode_name(draft.shape(), mode);
  }
  const Candidates all = all_candidates(draft.shape().head_rows);
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const torch::Tensor hidden =
        draft.forward(batch.tokens, modes[i]).hidden.flatten(0, 1).index_select(0, batch.positions);
    for (std::int64_t first = 0; first < batch.teacher.size(); first += kRows) {
      const DraftTeacher part = {batch.teacher.rows.slice(0, first, first + kRows),
                                 batch.teacher.probabilities.slice(0, first, first + kRows)};
      compare(draft.logits(hidden.slice(0, first, first + kRows)).to(torch::kFloat32), part, all, sums[i]);
    }
  }
}

}  // namespace coppice::core::train
