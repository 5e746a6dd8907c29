// The cycles that a run of `coppice bench staged` or `adaptive` recorded, replayed with models of other
// shapes.
#pragma once

#include <coppice/coppice.h>

#include <CLI/CLI.hpp>
#include <string>

#include "bench/long_run.h"

namespace coppice::app {

// --replay FILE and --draft FILE.
struct ReplayFlags {
  std::string recording, draft;

  void add(CLI::App& command);
  // Each mode with a draft model in it, greedy and sampled, at most so many `answers` of each (0: all).
  // Prints a table, and writes {"target", "recording", "draft", "context", "modes"} as the report of `bench`.
  Result<int> run(const std::string& bench, const BenchFlags& flags, int answers) const;
};

}  // namespace coppice::app
