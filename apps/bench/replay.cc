#include "bench/replay.h"

#include <fmt/core.h>

#include <algorithm>

#include "bench/benches.h"
#include "files.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

struct Recorded {
  std::string mode, sampling;
  std::vector<std::vector<ReplayCycle>> answers;
};

bool is_cycle(const ordered_json& json) {
  return json.is_array() && json.size() == 4 &&
         std::all_of(json.begin(), json.end(), [](const ordered_json& n) { return n.is_number_unsigned(); });
}

// [tokens, guesses, passes of drafts, rows of them] of each cycle. False: that is none.
bool read_cycles(const ordered_json& json, std::vector<ReplayCycle>& cycles) {
  if (!json.is_array()) return false;
  for (const ordered_json& one : json) {
    if (!is_cycle(one)) return false;
    cycles.push_back({one[0].get<int>(), one[1].get<int>(), one[2].get<int>(), one[3].get<int>()});
  }
  return true;
}

Status add(const ordered_json& record, int most, std::vector<Recorded>& all) {
  const std::string sampling = record.value("sampling", "");
  for (const auto& [mode, painted] : record["painted"].items()) {
    std::vector<ReplayCycle> cycles;
    if (!painted.is_object() || !painted.contains("cycles") || !read_cycles(painted["cycles"], cycles))
      return fail(fmt::format("the recording of {} has no cycles of four numbers", mode));
    const bool drafted =
        std::any_of(cycles.begin(), cycles.end(), [](const ReplayCycle& c) { return c.draft_passes > 0; });
    if (!drafted) continue;
    auto at = std::find_if(all.begin(), all.end(), [&sampling, &mode = mode](const Recorded& r) {
      return r.mode == mode && r.sampling == sampling;
    });
    if (at == all.end()) at = all.insert(at, Recorded{mode, sampling, {}});
    if (most == 0 || static_cast<int>(at->answers.size()) < most) at->answers.push_back(std::move(cycles));
  }
  return {};
}

Result<std::vector<Recorded>> read_recording(const std::string& path, int answers) {
  auto text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  const ordered_json results = ordered_json::parse(*text, nullptr, false);
  if (!results.is_object() || !results.contains("records") || !results["records"].is_array())
    return fail(fmt::format("{} is nothing that coppice bench staged or adaptive wrote (--json)", path));
  std::vector<Recorded> all;
  for (const ordered_json& record : results["records"]) {
    if (!record.is_object() || !record.contains("painted") || !record["painted"].is_object()) continue;
    if (Status added = add(record, answers, all); !added)
      return fail(fmt::format("{}: {}", path, added.error().message));
  }
  if (all.empty())
    return fail(fmt::format(
        "{} has no recorded cycles of a mode with a draft model; record them with --texts", path));
  return all;
}

ordered_json mode_json(const Recorded& recorded, const ReplayReport& report) {
  const auto tokens = static_cast<double>(report.tokens), cycles = static_cast<double>(report.cycles);
  return {{"name", recorded.mode},
          {"sampling", recorded.sampling},
          {"answers", recorded.answers.size()},
          {"tokens_per_pass", tokens / cycles},
          {"draft_passes_per_cycle", static_cast<double>(report.draft_passes) / cycles},
          {"plain_tokens_per_second", tokens / report.plain_seconds},
          {"tokens_per_second", tokens / report.seconds},
          {"draft_share", report.draft_seconds / report.seconds},
          {"speed_up", to_json(report.speed_up)}};
}

// -> {"draft", "context", "modes"}
Result<ordered_json> replay_recorded(const Model& target, ReplayOptions options, const std::string& path,
                                     int answers) {
  auto recorded = read_recording(path, answers);
  if (!recorded) return tl::unexpected(recorded.error());
  ordered_json modes = ordered_json::array(), draft;
  say("acceptance replayed from {}: real passes, recorded guesses\n{:<16} {:<8} {:>11} {:>9} {:>9} {:>9} "
      "{:>9}\n",
      path, "", "", "tokens/pass", "plain", "tok/s", "speed-up", "drafting");
  for (Recorded& one : *recorded) {
    options.answers = std::move(one.answers);
    auto report = bench_replay(target, options);
    if (!report) return tl::unexpected(report.error());
    one.answers = std::move(options.answers);
    modes.push_back(mode_json(one, *report));
    const ordered_json& mode = modes.back();
    clear_progress();
    say("{:<16} {:<8} {:>11.2f} {:>9.1f} {:>9.1f} {:>8.2f}x {:>9}\n", one.mode, one.sampling,
        mode["tokens_per_pass"].get<double>(), mode["plain_tokens_per_second"].get<double>(),
        mode["tokens_per_second"].get<double>(), report->speed_up.median,
        percent(mode["draft_share"].get<double>()));
    flush_out();
    draft = {{"path", report->draft.path},
             {"parameters", report->draft.parameters},
             {"file_bytes", report->draft.file_bytes}};
  }
  return ordered_json{{"draft", draft}, {"context", options.context}, {"modes", modes}};
}

}  // namespace

void ReplayFlags::add(CLI::App& command) {
  command.add_option(
      "--replay", recording,
      "instead: the cycles recorded in this file of --json, with -m and --draft doing the passes");
  command.add_option("--draft", draft, "of --replay: a model of any shape");
}

Result<int> ReplayFlags::run(const std::string& bench, const BenchFlags& flags, int answers) const {
  if (draft.empty()) return fail("--replay needs --draft FILE: the model whose passes stand for the draft's");
  if (Status right = flags.report.check({recording, draft}); !right) return tl::unexpected(right.error());
  auto model = flags.model.load();
  if (!model) return tl::unexpected(model.error());
  if (Status right = flags.report.check({model->info().path}); !right) return tl::unexpected(right.error());
  ReplayOptions options;
  options.draft = draft;
  options.cache = flags.engine.cache;
  if (flags.engine.context > 0) options.context = flags.engine.context;
  options.progress = bench_progress();
  auto report = replay_recorded(*model, std::move(options), recording, answers);
  if (!report) return ended(report.error());
  ordered_json whole = {{"target", model_json(model->info())}, {"recording", recording}};
  whole.update(*report);
  if (Status written = flags.report.write(bench, whole); !written) return tl::unexpected(written.error());
  return kOk;
}

}  // namespace coppice::app
