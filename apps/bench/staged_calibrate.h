// How much each mode may draft, tried on prompts for training: never on those that are measured.
#pragma once

#include <coppice/coppice.h>

#include <string>
#include <vector>

#include "bench/staged_config.h"

namespace coppice::app {

struct CalibrateWish {
  std::string prompts;  // JSON lines
  int limit = 8, tokens = 96;
  std::uint64_t seed = 0;
  std::vector<std::string> samplings, modes;  // modes empty: all whose files are there
};

// For each mode and way of sampling: nodes, then the price, each where the time of all prompts together is
// least beside plain decoding in the same rounds. -> the config's text with what was chosen and tried in it.
Result<nlohmann::ordered_json> calibrate_staged(const Model& model, const EngineOptions& options,
                                                const StagedConfig& config, const CalibrateWish& wish);

}  // namespace coppice::app
