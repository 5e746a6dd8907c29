// coppice bench kernels: every kernel beside a read loop over the same bytes and the peak of this machine.
#include <coppice/coppice.h>

#include <memory>

#include "bench/benches.h"
#include "options.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

struct KernelsFlags {
  KernelBenchOptions options;
  ReportFlags report;
};

std::string name_of(const KernelTiming& timing) {
  std::string name = timing.kernel;
  if (!timing.variant.empty()) name += " " + timing.variant;
  if (timing.count > 0) name += fmt::format(", {}", timing.count);
  return name;
}

void print_passes(const KernelReport& report) {
  say("\n{:<22} {:>5} {:>9} {:>17} {:>8} {:>9} {:>10} {:>8}\n", "all layers", "rows", "ms", "quartiles",
      "GB/s", "GMAC/s", "of reading", "of peak");
  std::string before;
  for (const KernelTiming& t : report.timings) {
    if (t.multiply_adds == 0) continue;
    const std::string name = name_of(t);
    const double seconds = t.seconds.median;
    say("{:<22} {:>5} {:>9.3f} {:>17} {:>8.1f} {:>9.1f} {:>10} {:>8}\n", name == before ? "" : name, t.rows,
        seconds * 1e3, fmt::format("{:.3f} to {:.3f}", t.seconds.low * 1e3, t.seconds.high * 1e3),
        t.bytes / seconds / 1e9, t.multiply_adds / seconds / 1e9, percent(t.of_read.median),
        percent(t.of_peak.median));
    before = name;
  }
}

void print_small(const KernelReport& report) {
  say("\n{:<22} {:>9} {:>17} {:>8} {:>10}\n", "one call, one thread", "us", "quartiles", "GB/s",
      "of reading");
  for (const KernelTiming& t : report.timings) {
    if (t.multiply_adds > 0) continue;
    say("{:<22} {:>9.2f} {:>17} {:>8} {:>10}\n", name_of(t), t.seconds.median * 1e6,
        fmt::format("{:.2f} to {:.2f}", t.seconds.low * 1e6, t.seconds.high * 1e6),
        t.bytes > 0 ? fmt::format("{:.1f}", t.bytes / t.seconds.median / 1e9) : "",
        t.bytes > 0 ? percent(t.of_read.median) : "");
  }
}

ordered_json to_json(const KernelReport& report) {
  ordered_json timings = ordered_json::array();
  for (const KernelTiming& t : report.timings)
    timings.push_back({{"kernel", t.kernel},
                       {"variant", t.variant},
                       {"rows", t.rows},
                       {"count", t.count},
                       {"seconds", app::to_json(t.seconds)},
                       {"bytes", t.bytes},
                       {"multiply_adds", t.multiply_adds},
                       {"of_read", app::to_json(t.of_read)},
                       {"of_peak", app::to_json(t.of_peak)}});
  return {{"limits", app::to_json(report.machine)}, {"timings", timings}};
}

ordered_json settings(const KernelBenchOptions& o) {
  return {{"hidden", o.hidden},     {"feed_forward", o.feed_forward},
          {"heads", o.heads},       {"kv_heads", o.kv_heads},
          {"head_dim", o.head_dim}, {"layers", o.layers},
          {"vocab", o.vocab},       {"repeats", o.repeats}};
}

Result<int> run(KernelsFlags flags) {
  if (Status right = flags.report.check(); !right) return tl::unexpected(right.error());
  flags.options.progress = bench_progress();
  auto report = bench_kernels(flags.options);
  if (!report) return ended(report.error());
  clear_progress();
  say("{}\n", machine_line(report->machine));
  print_passes(*report);
  print_small(*report);
  ordered_json json = {{"settings", settings(flags.options)}};
  json.update(to_json(*report));
  if (Status written = flags.report.write("kernels", json); !written) return tl::unexpected(written.error());
  return kOk;
}

}  // namespace

void add_kernels(CLI::App& bench, const Choose& choose) {
  auto flags = std::make_shared<KernelsFlags>();
  CLI::App* command = bench.add_subcommand(
      "kernels", "each kernel beside a read loop over the same bytes and the machine's peak");
  KernelBenchOptions& o = flags->options;
  const auto option = [&](const char* name, auto& value, const char* help) {
    return command->add_option(name, value, help)->capture_default_str();
  };
  option(
      "--kinds", o.kinds,
      "packed weights: q4 (of Q4_0), q4_offset (Q4_1), q8 (Q8_0), q5, q5_offset (Q5_0, Q5_1), q4_table "
      "(IQ4_NL), q4_power (MXFP4), q2_super to q6_super (Q2_K to Q6_K), q4_table_super (IQ4_XS), f16, bf16, "
      "f32; default: all")
      ->delimiter(',');
  option("--rows", o.rows, "rows of the matmuls")->delimiter(',');
  option("--positions", o.positions, "positions of attention")->delimiter(',');
  option("--hidden", o.hidden, "width");
  option("--layers", o.layers, "blocks");
  option("--heads", o.heads, "query heads");
  option("--kv-heads", o.kv_heads, "key and value heads");
  option("--head-dim", o.head_dim, "of one head");
  option("--feed-forward", o.feed_forward, "width of the feed-forward layer");
  option("--vocab", o.vocab, "of noise and argmax");
  option("--repeats", o.repeats, "rounds, each over everything that is compared");
  option("-t,--threads", o.threads, "threads; 0: all that this process may use");
  option("--isa", o.isa, "instruction set (default: the best there is)");
  flags->report.add(*command);
  command->callback([flags, choose] { choose([flags] { return run(*flags); }); });
}

}  // namespace coppice::app
