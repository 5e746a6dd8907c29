#include "bench/staged_print.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "bench/benches.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

// Of all prompts of one kind.
struct Sum {
  double tokens = 0, cycles = 0, bytes = 0, seconds = 0, drafting = 0, reached = 0, taken = 0;
  std::vector<double> speedups;  // over plain, the median over the rounds of each prompt
  int prompts = 0, same = 0;
};

double total(const ordered_json& values) {
  double sum = 0;
  for (const ordered_json& value : values) sum += value.get<double>();
  return sum;
}

void add(const ordered_json& mode, const ordered_json& plain, Sum& sum) {
  const ordered_json &seconds = mode["seconds"], &of_plain = plain["seconds"];
  std::vector<double> decode, draft, ratio;
  for (std::size_t round = 0; round < seconds.size(); ++round) {
    decode.push_back(seconds[round][0].get<double>());
    draft.push_back(seconds[round][1].get<double>());
    ratio.push_back(of_plain[round][0].get<double>() / std::max(1e-9, decode.back()));
  }
  sum.tokens += mode["tokens"].get<double>();
  sum.cycles += mode["cycles"].get<double>();
  sum.bytes += mode["target_bytes"].get<double>() + mode["draft_bytes"].get<double>();
  sum.seconds += median(decode);
  sum.drafting += median(draft);
  sum.reached += total(mode["reached_at_depth"]);
  sum.taken += total(mode["accepted_at_depth"]);
  sum.speedups.push_back(median(ratio));
  ++sum.prompts;
  sum.same += mode["same"].get<bool>() ? 1 : 0;
}

}  // namespace

void print_staged(const std::vector<ordered_json>& records) {
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, Sum>>>> tables;
  for (const ordered_json& record : records) {
    if (!record.contains("modes")) continue;
    const std::string title =
        fmt::format("{}: {}, {}, {}", record["group"].get<std::string>(), record["set"].get<std::string>(),
                    record["form"].get<std::string>(), record["sampling"].get<std::string>());
    auto table = std::find_if(tables.begin(), tables.end(), [&](const auto& t) { return t.first == title; });
    if (table == tables.end()) table = tables.insert(table, {title, {}});
    for (const auto& [name, mode] : record["modes"].items()) {
      auto& rows = table->second;
      auto row =
          std::find_if(rows.begin(), rows.end(), [&name = name](const auto& r) { return r.first == name; });
      if (row == rows.end()) row = rows.insert(row, {name, {}});
      add(mode, record["modes"]["plain"], row->second);
    }
  }
  for (const auto& [title, rows] : tables) {
    say("\n{}, {} prompts\n{:<24} {:>7} {:>9} {:>12} {:>10} {:>9} {:>8} {:>10}\n", title,
        rows.front().second.prompts, "", "tok/s", "speed-up", "tokens/pass", "bandwidth", "drafting", "taken",
        "same ids");
    const Sum& plain = rows.front().second;
    for (const auto& [name, sum] : rows) {
      say("{:<24} {:>7.1f} {:>8.2f}x {:>12.2f} {:>10.2f} {:>8.0f}% {:>7.0f}% {:>10}\n", name,
          sum.tokens / std::max(1e-9, sum.seconds), median(sum.speedups),
          sum.tokens / std::max(1.0, sum.cycles),
          sum.bytes * plain.tokens / std::max(1.0, sum.tokens * plain.bytes),
          100 * sum.drafting / std::max(1e-9, sum.seconds), 100 * sum.taken / std::max(1.0, sum.reached),
          fmt::format("{}/{}", sum.same, sum.prompts));
    }
  }
  flush_out();
}

}  // namespace coppice::app
