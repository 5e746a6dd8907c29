// A slimmable draft as the training loop sees it.
#pragma once

#include <memory>
#include <vector>

#include "gguf/file.h"
#include "train/dataset.h"
#include "train/draft_file.h"
#include "train/draft_step.h"
#include "train/trainable.h"

namespace coppice::core::train {

struct DraftRecipe {
  StepOptions step;
  double rollout_share = 0.5;  // of the steps, where there are rollouts
  DraftFileOptions file;
};

class DraftTrainable : public Trainable {
 public:
  // `by_use`: int64 [head rows], the most used rows first. `rollouts`: texts of the draft's own, scored by
  // the target (arXiv:2310.08461), or null; it must outlive this.
  DraftTrainable(std::shared_ptr<SlimDraft> draft, torch::Tensor by_use, DraftRecipe recipe,
                 std::shared_ptr<const gguf::File> target, const Dataset* rollouts = nullptr);

  std::vector<Parameter>& parameters() override { return draft_->parameters(); }
  // The widest slice's loss.
  double learn(const Batch& batch, Random& random) override;
  // Every width and the exit; first the width that is nearest to a factor of one.
  void judge(const Batch& batch, std::vector<Agreement>& sums) override;
  Status export_to(gguf::Writer& writer) const override;

 private:
  DraftBatch to_draft_batch(const Batch& batch) const;

  std::shared_ptr<SlimDraft> draft_;
  DraftRecipe recipe_;
  std::shared_ptr<const gguf::File> target_;
  const Dataset* rollouts_;
  DraftStep step_;
  std::vector<DraftMode> modes_;
};

}  // namespace coppice::core::train
