// A run of hours: what it measures one after the other, with progress, Ctrl-C and a journal that the same
// command goes on with; and what a reader of its report must know about when and with what it was made.
#pragma once

#include <coppice/coppice.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/benches.h"
#include "bench/config.h"
#include "options.h"

namespace coppice::app {

// Options that all long benches have.
struct BenchFlags {
  ModelFlags model;
  EngineFlags engine;
  ReportFlags report;
};

struct BenchModel {
  Model model;
  EngineOptions options;
};
// The report may replace none of those that are `read`, nor the model.
Result<BenchModel> open_model(const BenchFlags& flags, const std::vector<std::string>& read);

struct Work {
  std::string key;    // in the journal
  std::string label;  // of the progress
  double weight = 1;  // what it takes, in answers
  // -> a record with "modes": {name: {"same": ids equal to plain decoding's, ...}}, if there was something to
  // measure.
  std::function<Result<nlohmann::ordered_json>()> measure;
};

struct LongRun {
  std::string bench;                // the name of the command
  nlohmann::ordered_json model;     // model_json()
  nlohmann::ordered_json settings;  // a journal that was made with others is refused
  nlohmann::ordered_json left_out;  // {mode: why}
  std::vector<Work> works;
  std::function<void(const std::vector<nlohmann::ordered_json>& records)> print;

  // Measures what is not in the journal yet, prints, writes the report -> the exit code. Ctrl-C: what is
  // finished is in the journal.
  Result<int> run(const ReportFlags& report) const;
};

// Versions, machine, model, files and config.
Result<nlohmann::ordered_json> settings_json(const BenchFlags& flags, const ConfigText& config,
                                             const Model& model, const EngineOptions& options);

}  // namespace coppice::app
