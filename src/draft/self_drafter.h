// The drafter `self`: the target as its own draft, without training. It leaves out some of its blocks, or
// sees only the first positions and a window of the last ones, or both; its weights are the target's. It is a
// ModelDrafter in everything else, with a cache of its own.
#pragma once

#include <string_view>

#include "draft/model_drafter.h"

namespace coppice::core {

// "0-9,25-29": block numbers and stretches of them, each once, below `layers`; in rising order. + is as good
// as a comma, which the expression of drafters takes only in quotes. The error says what is wrong with it.
Result<std::vector<int>> parse_blocks(std::string_view text, int layers);

// What the influence of blocks is measured on where `layers` is a number: a little prose, a dialogue and
// code.
std::string_view calibration_text();

Status check_self(const DrafterNode& node);  // it must leave something out
Result<std::unique_ptr<Drafter>> make_self(const DrafterNode& node, const DraftEnvironment& environment);

}  // namespace coppice::core
