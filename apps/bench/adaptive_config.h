// What `coppice bench adaptive` compares: a JSON file like that of `bench staged` (bench/config.h), whose
// rows also name a policy.
//
//   {"files": {"draft": "models/x.gguf", ...},        a part, and the file that plays it
//    "methods": {"DSD": {"drafters": "model(\"{draft}\")", "policy": "fixed", "nodes": 5, ...}, ...},
//    "fixed": {"mixed, 8 nodes": {...}, ...},         beside them on Spec-Bench: a choice with hindsight
//    "ablations": {"static window": {"of": "adaptive-fitted", ...}, ...},   beside the method they are of
//    "full": "DSD",                                   whose draft compute is 1
//    "analyser": {"led": "DSD"},                      whose time is draft-led (bench/adaptive/report.py)
//    "capacity": "full capacity"}                     the ablation that is the full draft (the same)
#pragma once

#include <string>
#include <vector>

#include "bench/config.h"

namespace coppice::app {

struct AdaptiveMethod {
  Mode mode;
  std::string of;        // of an ablation: the method it is compared with
  std::string left_out;  // why it is not measured: a file or a policy that is not there. Empty: it is
};

struct AdaptiveConfig : ConfigText {
  std::vector<AdaptiveMethod> methods, fixed, ablations;

  const AdaptiveMethod* find(const std::string& name) const;  // of the methods; nullptr: no such one
};

// Errors name the file, the method and the field.
Result<AdaptiveConfig> read_adaptive_config(const std::string& path);

}  // namespace coppice::app
