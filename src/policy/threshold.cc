#include "policy/threshold.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace coppice::core {

double fit_threshold(std::span<const ThresholdCase> cases) {
  constexpr double kStep = 1e-4;
  std::vector<double> values;
  for (const ThresholdCase& one : cases) values.push_back(one.value);
  std::sort(values.begin(), values.end());
  std::vector<double> candidates = {0};
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double middle = std::round((values[i - 1] + values[i]) / 2 / kStep) * kStep;
    // Two values within a step cannot be told apart in a file.
    if (middle > values[i - 1] && middle <= values[i]) candidates.push_back(middle);
  }
  if (!values.empty()) candidates.push_back(std::min(1.0, std::ceil(values.back() / kStep + 0.5) * kStep));
  double best = 0, least = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    double cost = 0;
    for (const ThresholdCase& one : cases) cost += one.cost(candidates[i]);
    if (i == 0 || cost < least) best = candidates[i], least = cost;
  }
  return best;
}

double left_out_cost(std::span<const ThresholdCase> cases) {
  double cost = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::vector<ThresholdCase> others(cases.begin(), cases.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    cost += cases[i].cost(fit_threshold(others));
  }
  return cost;
}

}  // namespace coppice::core
