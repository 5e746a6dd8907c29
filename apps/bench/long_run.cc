#include "bench/long_run.h"

#include <coppice/tools.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <vector>

#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr double kNoteEvery = 60;  // seconds between lines of progress where nobody sees a bar

class LongRun {
 public:
  explicit LongRun(Journal& journal) : journal_(journal) {}

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
      auto record = work.measure();
      if (interrupted()) return false;
      if (!record) return tl::unexpected(record.error());
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

}  // namespace

Result<bool> run_all(std::span<const Work> works, Journal& journal) {
  catch_interrupts();
  auto finished = LongRun(journal).all(works);
  clear_progress();
  return finished;
}

std::string journal_path(const std::string& report) { return report.empty() ? "" : report + ".journal"; }

void note_stopped(const std::string& report) {
  note("[stopped; {}]\n",
       report.empty() ? "with --json FILE the same command would go on" : "the same command goes on");
}

ordered_json moment_json() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  double loads[3] = {0, 0, 0};
  const int n = getloadavg(loads, 3);
  return {{"when", text}, {"load", std::vector<double>(loads, loads + std::max(0, n))}};
}

ordered_json files_json(const std::map<std::string, std::string>& files) {
  ordered_json all = ordered_json::object();
  for (const auto& [part, path] : files) {
    auto of = file_hash(path);
    all[part] = {{"path", path}, {"hash", of ? ordered_json(*of) : ordered_json()}};
  }
  return all;
}

}  // namespace coppice::app
