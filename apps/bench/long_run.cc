#include "bench/long_run.h"

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <span>

#include "bench/journal.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr double kNoteEvery = 60;  // seconds between lines of progress where nobody sees a bar

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

ordered_json load_average() {
  double loads[3] = {0, 0, 0};
  const int n = getloadavg(loads, 3);
  return std::vector<double>(loads, loads + std::max(0, n));
}

class Progress {
 public:
  explicit Progress(Journal& journal) : journal_(journal) {}

  // False: stopped by Ctrl-C.
  Result<bool> all(std::span<const Work> works) {
    for (const Work& work : works) {
      if (journal_.has(work.key)) continue;
      ++open_;
      left_ += work.weight;
    }
    if (open_ < works.size()) note("[{} of {} are there already]\n", works.size() - open_, works.size());
    for (const Work& work : works) {
      if (journal_.has(work.key)) continue;
      show(work);
      ordered_json state = {{"begun", utc_now()}, {"load_before", load_average()}};
      auto record = work.measure();
      if (interrupted()) return false;
      if (!record) return tl::unexpected(record.error());
      state["ended"] = utc_now();
      state["load_after"] = load_average();
      (*record)["state"] = state;
      if (Status kept = journal_.add(work.key, *record); !kept) return tl::unexpected(kept.error());
      done_ += work.weight;
      ++finished_;
    }
    clear_progress();
    return true;
  }

 private:
  void show(const Work& work) {
    const double spent = std::chrono::duration<double>(Clock::now() - start_).count();
    std::string left = "time left not known yet";
    if (done_ > 0) {
      const auto minutes = std::lround(spent / done_ * (left_ - done_) / 60);
      left = fmt::format("{}:{:02} h left", minutes / 60, minutes % 60);
    }
    const std::string what = fmt::format("{} of {}, {}", finished_ + 1, open_, left);
    show_progress(work.label, done_ / left_, what);
    if (stderr_is_terminal() || spent - noted_ < kNoteEvery) return;
    noted_ = spent;
    note("[{}: {}]\n", work.label, what);
  }

  Journal& journal_;
  Clock::time_point start_ = Clock::now();
  double left_ = 0, done_ = 0, noted_ = 0;
  std::size_t open_ = 0, finished_ = 0;
};

bool all_same(const std::vector<ordered_json>& records) {
  for (const ordered_json& record : records) {
    if (!record.contains("modes")) continue;
    for (const auto& [name, mode] : record["modes"].items()) {
      if (!mode["same"].get<bool>()) return false;
    }
  }
  return true;
}

// From the first record to the last, whichever run measured them.
ordered_json state_of(const std::vector<ordered_json>& records) {
  ordered_json state = {{"begun", ""}, {"load_before", {}}, {"ended", ""}, {"load_after", {}}};
  bool any = false;
  for (const ordered_json& record : records) {
    const auto its = record.find("state");
    if (its == record.end()) continue;
    if (!any) state = *its;
    any = true;
    for (const char* field : {"ended", "load_after"}) state[field] = (*its)[field];
  }
  return state;
}

}  // namespace

Result<BenchModel> open_model(const BenchFlags& flags, const std::vector<std::string>& read) {
  auto options = flags.engine.resolve({});
  if (!options) return tl::unexpected(options.error());
  if (Status right = flags.report.check(read); !right) return tl::unexpected(right.error());
  auto model = flags.model.load();
  if (!model) return tl::unexpected(model.error());
  if (Status right = flags.report.check({model->info().path}); !right) return tl::unexpected(right.error());
  options->context = options->context > 0 ? options->context : std::min(4096, model->info().context_length);
  return BenchModel{std::move(*model), *options};
}

Result<int> LongRun::run(const ReportFlags& report) const {
  auto journal = Journal::open(report.path.empty() ? "" : report.path + ".journal", settings);
  if (!journal) return tl::unexpected(journal.error());
  for (const auto& [mode, why] : left_out.items())
    note("[{} is left out: {}]\n", mode, why.get<std::string>());
  catch_interrupts();
  auto finished = Progress(*journal).all(works);
  clear_progress();
  if (!finished) return tl::unexpected(finished.error());
  print(journal->records());
  if (!*finished) {
    note("[stopped; {}]\n",
         report.path.empty() ? "with --json FILE the same command would go on" : "the same command goes on");
    return kInterrupted;
  }
  const ordered_json whole = {{"state", state_of(journal->records())},
                              {"model", model},
                              {"settings", settings},
                              {"left_out", left_out},
                              {"records", journal->records()}};
  if (Status written = report.write(bench, whole); !written) return tl::unexpected(written.error());
  return judged_texts(all_same(journal->records()), "keyed");
}

Result<ordered_json> settings_json(const BenchFlags& flags, const ConfigText& config, const Model& model,
                                   const EngineOptions& options) {
  auto hash = file_hash(model.info().path);
  if (!hash) return tl::unexpected(hash.error());
  ordered_json files = ordered_json::object();
  for (const auto& [part, path] : config.files) {
    auto of = file_hash(path);
    files[part] = {{"path", path}, {"hash", of ? ordered_json(*of) : ordered_json()}};
  }
  const ordered_json machine = ordered_json::parse(system_info());
  return ordered_json{
      {"version", COPPICE_VERSION},     {"cpu", machine["cpu"]},      {"isa", machine["isa"]},
      {"threads", flags.model.threads}, {"model_hash", *hash},        {"files", files},
      {"config", config.text},          {"context", options.context}, {"cache", flags.engine.cache}};
}

}  // namespace coppice::app
