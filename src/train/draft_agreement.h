// How often a draft says what the target says, on text it was not taught: measured for every width and the
// exit.
#pragma once

#include <span>
#include <vector>

#include "train/draft_step.h"

namespace coppice::core::train {

// Adds each mode's agreement over `batch`, with the whole head. `modes`: the draft's, in the order wanted;
// `sums` is empty at first and has an entry for each of them then.
void add_agreement(SlimDraft& draft, std::span<const DraftMode> modes, const DraftBatch& batch,
                   std::vector<Agreement>& sums);

}  // namespace coppice::core::train
