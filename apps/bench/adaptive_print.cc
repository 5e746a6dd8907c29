#include "bench/adaptive_print.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "bench/benches.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

// Of all answers of one kind.
struct Sum {
  double tokens = 0, cycles = 0, guesses = 0, accepted = 0, draft_bytes = 0, seconds = 0;
  std::vector<double> speedups, latencies;
  int answers = 0, same = 0;
};
using Rows = std::vector<std::pair<std::string, Sum>>;  // in the order in which they came

template <class Value>
Value& entry(std::vector<std::pair<std::string, Value>>& table, const std::string& name) {
  auto at = std::find_if(table.begin(), table.end(), [&](const auto& e) { return e.first == name; });
  if (at == table.end()) at = table.insert(at, {name, Value()});
  return at->second;
}

void add(const ordered_json& mode, const ordered_json& plain, Sum& sum) {
  const auto seconds = [](const ordered_json& of, int i) { return of["seconds"][0][i].get<double>(); };
  sum.tokens += mode["tokens"].get<double>();
  sum.cycles += mode["cycles"].get<double>();
  sum.guesses += mode["guesses"].get<double>();
  sum.accepted += mode["accepted"].get<double>();
  sum.draft_bytes += mode["draft_bytes"].get<double>();
  sum.seconds += seconds(mode, 0);
  sum.speedups.push_back(seconds(plain, 0) / std::max(1e-9, seconds(mode, 0)));
  sum.latencies.push_back(seconds(mode, 6));
  ++sum.answers;
  sum.same += mode["same"].get<bool>() ? 1 : 0;
}

void print_row(const std::string& name, const Sum& sum, double full_bytes) {
  const std::string compute =
      full_bytes > 0 ? percent(sum.draft_bytes / std::max(1.0, sum.tokens) / full_bytes) : "";
  say("{:<26} {:>7.1f} {:>8.2f}x {:>8.0f} {:>12.2f} {:>9} {:>8} {:>10}\n", name,
      sum.tokens / std::max(1e-9, sum.seconds), median(sum.speedups), 1000 * median(sum.latencies),
      sum.tokens / std::max(1.0, sum.cycles),
      sum.guesses > 0 ? percent(sum.accepted / sum.guesses) : std::string(), compute,
      fmt::format("{}/{}", sum.same, sum.answers));
}

}  // namespace

void print_adaptive(const std::vector<ordered_json>& records, const std::string& full) {
  std::vector<std::pair<std::string, Rows>> tables;
  for (const ordered_json& record : records) {
    if (!record.contains("modes")) continue;
    const std::string category = record["category"].get<std::string>();
    const std::string title =
        fmt::format("{}: {}{}{}, {}", record["group"].get<std::string>(), record["set"].get<std::string>(),
                    category.empty() ? "" : ", ", category, record["sampling"].get<std::string>());
    Rows& rows = entry(tables, title);
    for (const auto& [name, mode] : record["modes"].items())
      add(mode, record["modes"]["plain"], entry(rows, name));
  }
  for (auto& [title, rows] : tables) {
    say("\n{}, {} answers\n{:<26} {:>7} {:>9} {:>8} {:>12} {:>9} {:>8} {:>10}\n", title,
        rows.front().second.answers, "", "tok/s", "speed-up", "ms", "tokens/pass", "accepted", "draft",
        "same ids");
    double full_bytes = 0;  // a token
    for (const auto& [name, sum] : rows) {
      if (name == full) full_bytes = sum.draft_bytes / std::max(1.0, sum.tokens);
    }
    for (const auto& [name, sum] : rows) print_row(name, sum, full_bytes);
  }
  flush_out();
}

}  // namespace coppice::app
