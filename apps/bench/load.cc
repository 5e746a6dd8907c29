// coppice bench load: from nothing to the first token, by phase, and the memory it takes.
#include <coppice/coppice.h>

#include <memory>

#include "bench/benches.h"
#include "options.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

struct LoadFlags {
  ModelFlags model;
  LoadOptions options;
  ReportFlags report;
};

constexpr double kRoom = 64 << 20;  // what may be used besides the file and the cache

struct Phase {
  const char* name;
  const char* what;
  Spread LoadReport::*time;
};
constexpr Phase kPhases[] = {{"open", "  file mapped, keys checked", &LoadReport::open},
                             {"tokenizer", "  vocabulary and merges", &LoadReport::tokenizer},
                             {"weights", "  weights checked and packed", &LoadReport::weights},
                             {"load", "model loaded", &LoadReport::load},
                             {"engine", "engine made", &LoadReport::engine},
                             {"first_token", "first token", &LoadReport::first_token},
                             {"total", "all of it", &LoadReport::total}};

double allowed(const LoadReport& report) {
  return static_cast<double>(report.file_bytes + report.kv_bytes) + kRoom;
}

void print(const LoadReport& report) {
  for (const Phase& phase : kPhases) {
    const Spread& time = report.*phase.time;
    say("{:<30} {:>9.1f} ms {:>20}\n", phase.what, time.median * 1e3,
        fmt::format("{:.1f} to {:.1f}", time.low * 1e3, time.high * 1e3));
  }
  const auto mb = [](double bytes) { return bytes / 1e6; };
  say("memory at most {:.1f} MB; file {:.1f} + cache {:.1f} + 67.1 = {:.1f} MB\n",
      mb(static_cast<double>(report.peak_bytes)), mb(static_cast<double>(report.file_bytes)),
      mb(static_cast<double>(report.kv_bytes)), mb(allowed(report)));
}

Result<int> run(LoadFlags flags) {
  auto path = flags.model.resolve();
  if (!path) return tl::unexpected(path.error());
  if (Status right = flags.report.check({*path}); !right) return tl::unexpected(right.error());
  flags.options.threads = flags.model.threads;
  flags.options.isa = flags.model.isa;
  flags.options.packed_cache = flags.model.packed_cache;
  flags.options.progress = bench_progress();
  auto report = bench_load(*path, flags.options);
  if (!report) return ended(report.error());
  clear_progress();
  say("{}, {} loads ({} from the packed cache), the file in the page cache\n", report->path, report->rounds,
      report->from_packed_cache);
  print(*report);
  ordered_json phases;
  for (const Phase& phase : kPhases) phases[phase.name] = to_json((*report).*phase.time);
  const Status written = flags.report.write("load", {{"model", report->path},
                                                     {"settings",
                                                      {{"repeats", flags.options.repeats},
                                                       {"threads", flags.options.threads},
                                                       {"cache", flags.options.cache},
                                                       {"context", flags.options.context},
                                                       {"packed_cache", flags.options.packed_cache}}},
                                                     {"rounds", report->rounds},
                                                     {"from_packed_cache", report->from_packed_cache},
                                                     {"seconds", phases},
                                                     {"file_bytes", report->file_bytes},
                                                     {"weight_bytes", report->weight_bytes},
                                                     {"kv_bytes", report->kv_bytes},
                                                     {"peak_bytes", report->peak_bytes},
                                                     {"allowed_bytes", allowed(*report)}});
  if (!written) return tl::unexpected(written.error());
  return kOk;
}

}  // namespace

void add_load(CLI::App& bench, const Choose& choose) {
  auto flags = std::make_shared<LoadFlags>();
  CLI::App* command =
      bench.add_subcommand("load", "from nothing to the first token, and the memory it takes");
  flags->model.add(*command);
  LoadOptions& options = flags->options;
  command->add_option("-c,--context", options.context, "tokens; 0: the engine's default")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--cache", options.cache, "f32, f16, q8_0")->capture_default_str();
  command->add_option("--repeats", options.repeats, "loads; the memory is the first's")
      ->capture_default_str();
  flags->report.add(*command);
  command->callback([flags, choose] { choose([flags] { return run(*flags); }); });
}

}  // namespace coppice::app
