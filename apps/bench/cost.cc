// coppice bench cost: what a pass over n rows costs, beside one row's and beside what the machine can do.
#include <coppice/coppice.h>

#include <memory>

#include "bench/benches.h"
#include "options.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

struct CostFlags {
  ModelFlags model;
  CostOptions options;
  ReportFlags report;
  bool stages = false;
};

double gigabytes(const CostReport& report, const PassCost& pass) {
  return static_cast<double>(report.weight_bytes + pass.kv_bytes) / pass.seconds.median / 1e9;
}

void print(const CostReport& report) {
  say("{}\nreading the {:.1f} MB of packed weights: {:.3f} ms, {:.1f} GB/s\n", machine_line(report.machine),
      static_cast<double>(report.weight_bytes) / 1e6, report.read_seconds.median * 1e3,
      static_cast<double>(report.weight_bytes) / report.read_seconds.median / 1e9);
  int context = -1;
  for (const PassCost& pass : report.passes) {
    if (pass.context != context) {
      context = pass.context;
      say("\ncontext {}\n{:>5} {:>9} {:>17} {:>10} {:>7} {:>10} {:>9}\n", context, "rows", "ms", "quartiles",
          "C(n)/C(1)", "GB/s", "of reading", "of peak");
    }
    say("{:>5} {:.3f} {:>17} {:>10.2f} {:>7.1f} {:>10} {:>9}\n", pass.rows, pass.seconds.median * 1e3,
        fmt::format("{:.3f} to {:.3f}", pass.seconds.low * 1e3, pass.seconds.high * 1e3), pass.ratio.median,
        gigabytes(report, pass), percent(pass.of_read.median), percent(pass.of_peak.median));
  }
  if (report.prefill > 0)
    say("\nprefill of {} in passes of {}: {:.1f} ms, {:.0f} tokens/s, {} of peak, its matmuls alone {}\n",
        report.prefill, report.chunk, report.prefill_seconds.median * 1e3,
        report.prefill / report.prefill_seconds.median, percent(report.prefill_of_peak.median),
        percent(report.prefill_matmuls_of_peak));
}

std::string in_ms(double seconds) { return fmt::format("{:.3f}", seconds * 1e3); }

// A column for each stage.
void print_stages(const CostReport& report) {
  std::string names;
  for (const StageTime& stage : report.passes.front().stages) names += fmt::format(" {:>20}", stage.name);
  say("\nwhere the time goes, in ms\n{:>8} {:>5}{}\n", "context", "rows", names);
  const auto line = [](std::string_view context, int rows, const std::vector<StageTime>& stages) {
    std::string times;
    for (const StageTime& stage : stages) times += fmt::format(" {:>20}", in_ms(stage.seconds));
    say("{:>8} {:>5}{}\n", context, rows, times);
  };
  for (const PassCost& pass : report.passes) line(fmt::format("{}", pass.context), pass.rows, pass.stages);
  if (report.prefill > 0) line("prefill", report.prefill, report.prefill_stages);
}

ordered_json to_json(const std::vector<StageTime>& stages) {
  ordered_json out;
  for (const StageTime& stage : stages) out[stage.name] = stage.seconds;
  return out;
}

ordered_json to_json(const CostReport& report) {
  ordered_json passes = ordered_json::array();
  for (const PassCost& pass : report.passes)
    passes.push_back({{"rows", pass.rows},
                      {"context", pass.context},
                      {"seconds", app::to_json(pass.seconds)},
                      {"ratio", app::to_json(pass.ratio)},
                      {"of_read", app::to_json(pass.of_read)},
                      {"of_peak", app::to_json(pass.of_peak)},
                      {"kv_bytes", pass.kv_bytes},
                      {"stages", to_json(pass.stages)},
                      {"gigabytes_per_second", gigabytes(report, pass)}});
  ordered_json out = {{"limits", app::to_json(report.machine)},
                      {"weight_bytes", report.weight_bytes},
                      {"multiply_adds_per_row", report.multiply_adds},
                      {"read_seconds", app::to_json(report.read_seconds)},
                      {"passes", passes}};
  if (report.prefill > 0)
    out["prefill"] = {{"tokens", report.prefill},
                      {"chunk", report.chunk},
                      {"seconds", app::to_json(report.prefill_seconds)},
                      {"tokens_per_second", report.prefill / report.prefill_seconds.median},
                      {"of_peak", app::to_json(report.prefill_of_peak)},
                      {"matmuls_of_peak", report.prefill_matmuls_of_peak},
                      {"stages", to_json(report.prefill_stages)}};
  return out;
}

Result<int> run(CostFlags flags) {
  auto path = flags.model.resolve();
  if (!path) return tl::unexpected(path.error());
  flags.model.path = *path;
  if (Status right = flags.report.check({*path}); !right) return tl::unexpected(right.error());
  auto model = flags.model.load();
  if (!model) return tl::unexpected(model.error());
  flags.options.progress = bench_progress();
  auto report = bench_cost(*model, flags.options);
  if (!report) return ended(report.error());
  clear_progress();
  say("{}\n", model->info().name);
  print(*report);
  if (flags.stages) print_stages(*report);
  ordered_json json = {{"model", model_json(model->info())},
                       {"settings", {{"repeats", flags.options.repeats}, {"cache", report->cache}}}};
  json.update(to_json(*report));
  if (Status written = flags.report.write("cost", json); !written) return tl::unexpected(written.error());
  return kOk;
}

}  // namespace

void add_cost(CLI::App& bench, const Choose& choose) {
  auto flags = std::make_shared<CostFlags>();
  CLI::App* command = bench.add_subcommand("cost", "what a pass over n rows costs, and a prompt");
  flags->model.add(*command);
  CostOptions& options = flags->options;
  const auto list = [&](const char* name, std::vector<int>& values, const char* help) {
    command->add_option(name, values, help)->delimiter(',')->capture_default_str();
  };
  list("--rows", options.rows, "rows of a pass: the root and guesses below it");
  list("-c,--contexts", options.contexts, "tokens before the root");
  command->add_option("--prefill", options.prefill, "tokens of a prompt; 0: none")->capture_default_str();
  command->add_option("--chunk", options.chunk, "prompt tokens a pass")->capture_default_str();
  command->add_option("--cache", options.cache, "f32, f16, q8_0")->capture_default_str();
  command->add_option("--repeats", options.repeats, "rounds, each over everything")->capture_default_str();
  command->add_flag("--stages", flags->stages, "also show where the time of a pass goes");
  flags->report.add(*command);
  command->callback([flags, choose] { choose([flags] { return run(*flags); }); });
}

}  // namespace coppice::app
