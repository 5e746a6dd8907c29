// The commands of `coppice bench`, one file each, and what their reports share.
#pragma once

#include <coppice/bench.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"

namespace coppice::app {

void add_decode(CLI::App& bench, const Choose& choose);
void add_kernels(CLI::App& bench, const Choose& choose);
void add_cost(CLI::App& bench, const Choose& choose);
void add_load(CLI::App& bench, const Choose& choose);
void add_staged(CLI::App& bench, const Choose& choose);
void add_requests(CLI::App& bench, const Choose& choose);
void add_adaptive(CLI::App& bench, const Choose& choose);
void add_reaction(CLI::App& bench, const Choose& choose);

// --json FILE.
struct ReportFlags {
  std::string path;

  void add(CLI::App& command);
  // Before long work: the file can be written, and replaces none of those that are read.
  Status check(const std::vector<std::string>& read = {}) const;
  // Nothing where nobody asked. `bench` names the command.
  Status write(std::string_view bench, nlohmann::ordered_json report) const;
};

nlohmann::ordered_json to_json(const Spread& spread);
nlohmann::ordered_json to_json(const MachineSpeed& machine);
nlohmann::ordered_json model_json(const ModelInfo& info);

// A bar; Ctrl-C stops.
BenchProgress bench_progress();
// How a measurement ended that gave no report: by Ctrl-C (said, exit code 130), or by an error that names an
// option.
Result<int> ended(const Error& error);

// "AMD EPYC, 2 threads, avx512vnni: int8 470.1, f32 117.5 billion multiply-adds a second"
std::string machine_line(const MachineSpeed& machine);
std::string percent(double share);  // "84%"
double clock_seconds();             // of a clock that only goes on
// The value that a share of all is not above, between the two nearest; 0 where there are none.
double quantile(std::vector<double> values, double share);
double median(std::vector<double> values);
// The exit code of a bench that compared texts; says so where one differs that must not (acceptance = keyed).
int judged_texts(bool all_same, const std::string& acceptance);

}  // namespace coppice::app
