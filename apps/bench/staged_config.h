// What `coppice bench staged` compares: a JSON file that says which files play which part, which drafters
// make a mode, and how much each may draft. Fixed on training prompts (--calibrate) before anything is
// measured.
//
//   {"files": {"draft": "models/x.gguf", ...},           a part, and the file that plays it
//    "modes": {"draft tree": {"drafters": "model(\"{draft}\")", "prior": "", "width": 16,
//                             "greedy": {"nodes": 8, "depth": 16, "price": 0.01}, "top-k": {...}},
//              "auto": {"drafters": "lookup", "policy": "auto", "nodes": 16}, ...},   without "policy": fixed
//    "mixed": "all mixed",                            the mode that trees of fixed size and sweeps are of
//    "alone": ["draft tree"],                         whose agreement with the target is measured too
//    "unstaged": {"staged tree": "draft tree"},       what a staged mode is compared with
//    "draft_sizes": {"0.5": "model(\"{draft}\", ...)"}, ...: expressions, smallest first
//    "calibrated": {...}}                             what --calibrate tried
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/config.h"

namespace coppice::app {

struct StagedConfig : ConfigText {
  std::vector<Mode> modes;
  std::vector<Mode> draft_sizes;  // named by size
  std::string mixed;
  std::vector<std::string> alone;

  const Mode* find(const std::string& name) const;  // nullptr: no such mode
};

// Errors name the file, the mode and the field.
Result<StagedConfig> read_staged_config(const std::string& path);

// With what --calibrate chose, for the mode and way of sampling.
void set_budget(nlohmann::ordered_json& config, const std::string& mode, const std::string& sampling,
                const DraftBudget& budget);
nlohmann::ordered_json budget_json(const DraftBudget& budget);

}  // namespace coppice::app
