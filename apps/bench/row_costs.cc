#include "bench/row_costs.h"

#include <algorithm>

namespace coppice::app {
namespace {

constexpr int kRows[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128};
constexpr int kContext = 256;
constexpr int kRepeats = 7;

}  // namespace

Result<RowCosts> RowCosts::measure(const Model& model, int most, const BenchProgress& progress) {
  CostOptions options;
  options.rows.clear();
  for (const int rows : kRows)
    if (rows <= most || rows <= 2) options.rows.push_back(rows);
  options.contexts = {std::min(kContext, std::max(1, model.info().context_length / 2))};
  options.prefill = 0;
  options.repeats = kRepeats;
  options.progress = progress;
  auto report = bench_cost(model, options);
  if (!report) return tl::unexpected(report.error());
  std::vector<std::pair<double, double>> points;
  for (const PassCost& pass : report->passes) points.emplace_back(pass.rows, pass.seconds.median);
  return RowCosts(std::move(points));
}

RowCosts::RowCosts(std::vector<std::pair<double, double>> points) : points_(std::move(points)) {
  for (std::size_t i = 1; i < points_.size(); ++i)
    points_[i].second = std::max(points_[i].second, points_[i - 1].second);
}

double RowCosts::seconds(double rows) const {
  const auto above = std::lower_bound(points_.begin(), points_.end(), rows,
                                      [](const auto& point, double wanted) { return point.first < wanted; });
  if (above == points_.end()) return points_.back().second * rows / points_.back().first;
  if (above == points_.begin()) return above->second;
  const auto below = above - 1;
  const double share = (rows - below->first) / (above->first - below->first);
  return below->second + share * (above->second - below->second);
}

nlohmann::ordered_json RowCosts::json() const {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& [count, seconds] : points_) rows.push_back({{"rows", count}, {"seconds", seconds}});
  return rows;
}

}  // namespace coppice::app
