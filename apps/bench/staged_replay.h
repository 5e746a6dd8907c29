// The cycles that a run of `coppice bench staged` recorded, replayed with models of other shapes.
#pragma once

#include <coppice/coppice.h>

#include <nlohmann/json.hpp>
#include <string>

namespace coppice::app {

struct StagedReplayWish {
  std::string recording, draft, cache = "f16";  // a file of --json; a draft's file
  int answers = 0, context = 0;  // of each mode, at most (0: all); positions a pass sees (0: 256)
};

// Each mode with a draft model in it, greedy and sampled. Prints a table. -> {"draft", "context", "modes"}
Result<nlohmann::ordered_json> replay_staged(const Model& target, const StagedReplayWish& wish);

}  // namespace coppice::app
