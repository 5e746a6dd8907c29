// What was fitted for the models at hand: settings in DRAFT.adaptive beside DRAFT.gguf (tools/fit_adaptive.py
// writes them), with which `adaptive-fitted` begins.
#pragma once

#include <string>

#include "draft/expression.h"
#include "policy/policy.h"

namespace coppice::core {

// Beside the first draft of the mix that has one; empty: none has.
std::string fitted_file(const DrafterMix& mix);

// `adaptive-fitted` of no file becomes adaptive-fitted(from=FILE) where there is one; nothing else changes.
void begin_with_fitted(const DrafterMix& mix, ChosenPolicy& chosen);

}  // namespace coppice::core
