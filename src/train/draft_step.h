// One step of training a slimmable draft: gradients of several widths over the same texts.
//
// The sandwich rule (arXiv:1903.05134): the widest slice, the narrowest, and a random one between them or the
// exit. The widest sees all texts of the batch and the others a part of them, so that a step costs about 1.5
// times one of the widest alone.
//
// Widths learn to read each other's K and V: the passes of a step come in random order, and every text that
// an earlier pass of the step has seen gets a random switch point, before which the later pass reads the
// earlier one's K and V (those of the last pass over that text) in place of its own. They are constants to
// it: it learns to read them, and each width's own K and V are trained by its own passes.
#pragma once

#include <optional>
#include <vector>

#include "train/draft_loss.h"
#include "train/draft_model.h"

namespace coppice::core::train {

struct DraftBatch {
  torch::Tensor tokens;  // int64 [texts, length]
  torch::Tensor
      positions;         // int64 [n], rising: text * length + position whose next token the teacher speaks of
  DraftTeacher teacher;  // [n]
};

struct StepOptions {
  LossOptions loss;
  CandidateOptions candidates;
  bool full_head = false;       // all rows of the head rather than candidates
  double narrow_part = 0.5;     // of the texts, for each pass but the widest's
  double switch_chance = 0.75;  // that a text which another pass has seen is read with that one's K and V
  double imitate = 0;           // weight of imitating the widest slice, where it has run before
};

struct ModeLoss {
  DraftMode mode;
  double loss = 0, acceptance = 0;
};

class DraftStep {
 public:
  // `by_use`: int64 [head rows], rows of the head, the most used first.
  DraftStep(SlimDraft& draft, torch::Tensor by_use, StepOptions options)
      : draft_(draft), by_use_(std::move(by_use)), options_(options) {}

  // Adds the batch's gradients to the parameters' (which the caller has cleared).
  std::vector<ModeLoss> accumulate(const DraftBatch& batch, Random& random);

 private:
  struct Job;
  struct Shared;  // what the passes of a step share
  std::vector<Job> plan(std::int64_t texts, Random& random) const;
  std::optional<OtherKv> others(const std::vector<std::int64_t>& texts, const Shared& shared,
                                Random& random) const;
  static void remember(const std::vector<std::int64_t>& texts, const DraftPass& pass, Shared& shared);
  void run(const Job& job, Shared& shared, Random& random);
  void bring_back(const Shared& shared);

  SlimDraft& draft_;
  torch::Tensor by_use_;
  StepOptions options_;
};

}  // namespace coppice::core::train
