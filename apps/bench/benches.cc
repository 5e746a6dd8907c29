#include "bench/benches.h"

#include <coppice/coppice.h>

#include <algorithm>
#include <chrono>

#include "files.h"
#include "options.h"
#include "terminal.h"

namespace coppice::app {

using nlohmann::ordered_json;

void add_bench(CLI::App& app, const Choose& choose) {
  CLI::App* bench = app.add_subcommand("bench", "measure");
  bench->require_subcommand(1);
  add_decode(*bench, choose);
  add_kernels(*bench, choose);
  add_cost(*bench, choose);
  add_load(*bench, choose);
  add_staged(*bench, choose);
  add_requests(*bench, choose);
  add_adaptive(*bench, choose);
  add_reaction(*bench, choose);
}

void ReportFlags::add(CLI::App& command) {
  command.add_option("--json", path, "write the figures to this file");
}

Status ReportFlags::check(const std::vector<std::string>& read) const {
  if (path.empty()) return {};
  if (Status writable = check_output(path); !writable) return writable;
  return keep_inputs(path, read);
}

Status ReportFlags::write(std::string_view bench, ordered_json report) const {
  if (path.empty()) return {};
  ordered_json whole = {
      {"bench", bench}, {"version", COPPICE_VERSION}, {"machine", ordered_json::parse(system_info())}};
  whole.update(report);
  return write_text(path, whole.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
}

ordered_json to_json(const Spread& spread) {
  return {{"median", spread.median}, {"low", spread.low}, {"high", spread.high}};
}

ordered_json to_json(const MachineSpeed& machine) {
  return {{"isa", machine.isa},
          {"threads", machine.threads},
          {"int8_multiply_adds_per_second", to_json(machine.int8_peak)},
          {"f32_multiply_adds_per_second", to_json(machine.f32_peak)}};
}

ordered_json model_json(const ModelInfo& info) {
  return {{"name", info.name},
          {"architecture", info.architecture},
          {"parameters", info.parameters},
          {"file_bytes", info.file_bytes},
          {"weight_bytes", info.weight_bytes},
          {"vocab", info.vocab},
          {"hidden", info.hidden},
          {"layers", info.layers}};
}

BenchProgress bench_progress() {
  catch_interrupts();
  return [](double fraction, std::string_view what) {
    show_progress("measuring", fraction, what);
    return !interrupted();
  };
}

Result<int> ended(const Error& error) {
  clear_progress();
  if (interrupted()) {
    note("[stopped; nothing was measured to the end]\n");
    return kInterrupted;
  }
  const std::size_t word = error.message.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
  const bool field = word != std::string::npos && error.message.compare(word, 3, " = ") == 0;
  return tl::unexpected(field ? name_the_option(error) : error);
}

std::string machine_line(const MachineSpeed& machine) {
  const ordered_json info = ordered_json::parse(system_info());
  return fmt::format("{}, {} threads, {}: at best {:.1f} int8 and {:.1f} f32 billion multiply-adds a second",
                     info["cpu"].get<std::string>(), machine.threads, machine.isa,
                     machine.int8_peak.median / 1e9, machine.f32_peak.median / 1e9);
}

double clock_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

int judged_texts(bool all_same, const std::string& acceptance) {
  if (all_same || acceptance != "keyed") return kOk;
  note("coppice: the text differs; that breaks our first law and is a bug of ours\n");
  return kDiffers;
}

std::string percent(double share) { return fmt::format("{:.0f}%", share * 100); }

}  // namespace coppice::app
