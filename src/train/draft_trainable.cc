#include "train/draft_trainable.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "train/draft_agreement.h"
#include "train/trainer.h"

namespace coppice::core::train {
namespace {

constexpr std::uint64_t kRolloutEpochs = 1024;  // orders of the rollouts that are drawn from

std::vector<DraftMode> modes_to_judge(const DraftShape& shape) {
  std::vector<DraftMode> modes = draft_modes(shape);
  const auto distance = [&](const DraftMode& mode) {
    return mode.exit ? 1e9 : std::abs(shape.factors[static_cast<std::size_t>(mode.width)] - 1.0);
  };
  const auto first =
      std::min_element(modes.begin(), modes.end(),
                       [&](const DraftMode& a, const DraftMode& b) { return distance(a) < distance(b); });
  std::rotate(modes.begin(), first, first + 1);
  return modes;
}

}  // namespace

DraftTrainable::DraftTrainable(std::shared_ptr<SlimDraft> draft, torch::Tensor by_use, DraftRecipe recipe,
                               std::shared_ptr<const gguf::File> target, const Dataset* rollouts)
    : draft_(std::move(draft)),
      recipe_(std::move(recipe)),
      target_(std::move(target)),
      rollouts_(rollouts),
      step_(*draft_, std::move(by_use), recipe_.step),
      modes_(modes_to_judge(draft_->shape())) {}

// What the target says about the token at t is what the draft must say at t - 1.
DraftBatch DraftTrainable::to_draft_batch(const Batch& batch) const {
  torch::NoGradGuard no_grad;
  DraftBatch out;
  out.tokens = batch.ids;
  const torch::Tensor scored = batch.scored.flatten().nonzero().flatten();
  out.positions = scored - 1;
  const torch::Tensor top = batch.top.flatten(0, 1).index_select(0, scored);
  out.teacher.rows = draft_->row_of_token().index_select(0, top.flatten()).view_as(top);
  out.teacher.probabilities = batch.top_logp.flatten(0, 1).index_select(0, scored).exp();
  return out;
}

double DraftTrainable::learn(const Batch& batch, Random& random) {
  std::vector<ModeLoss> losses;
  if (rollouts_ != nullptr && random.uniform() < recipe_.rollout_share) {
    HostBatch host;
    const auto batches = static_cast<std::uint64_t>(rollouts_->batches_per_epoch());
    rollouts_->batch(static_cast<std::int64_t>(random.below(batches * kRolloutEpochs)), false, host);
    losses = step_.accumulate(to_draft_batch(to_batch(host)), random);
  } else {
    losses = step_.accumulate(to_draft_batch(batch), random);
  }
  const DraftMode widest{draft_->shape().widest(), false};
  const auto found =
      std::find_if(losses.begin(), losses.end(), [&](const ModeLoss& loss) { return loss.mode == widest; });
  return found == losses.end() ? 0 : found->loss;
}

void DraftTrainable::judge(const Batch& batch, std::vector<Agreement>& sums) {
  add_agreement(*draft_, modes_, to_draft_batch(batch), sums);
}

Status DraftTrainable::export_to(gguf::Writer& writer) const {
  return add_draft(*draft_, *target_, recipe_.file, writer);
}

}  // namespace coppice::core::train
