#include "policy/cost_model.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace coppice::core {
namespace {

constexpr double kSpeedStep = 0.2, kMostSpeed = 0.2;    // of a logarithm
constexpr double kTableStep = 0.01, kMostTable = 0.15;  // the same

double bounded_log(double ratio, double most) { return std::clamp(std::log(ratio), -most, most); }

}  // namespace

void Typical::add(double value) {
  if (!(value > 0)) return;
  value_ = seen_ ? value_ * std::exp(0.1 * bounded_log(value / value_, 0.5)) : value;
  seen_ = true;
}

CostModel::CostModel(CostTable table) : table_(std::move(table)) {
  COPPICE_CHECK(!table_.points.empty());
  rising_.resize(table_.points.size());
  make_isotonic();
}

// Pools neighbours that fall until none does: the isotonic regression of the points.
void CostModel::make_isotonic() {
  const std::size_t n = table_.points.size();
  for (std::size_t i = 0; i < n; ++i) {
    rising_[i] = table_.points[i].seconds;
    for (std::size_t begin = i; begin > 0 && rising_[begin - 1] > rising_[i];) {
      const double pooled = rising_[begin - 1];
      while (begin > 0 && rising_[begin - 1] == pooled) --begin;
      double sum = 0;
      for (std::size_t k = begin; k <= i; ++k) sum += table_.points[k].seconds;
      std::fill(rising_.begin() + static_cast<std::ptrdiff_t>(begin),
                rising_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                sum / static_cast<double>(i - begin + 1));
    }
  }
}

// Behind the last point the line through the last two goes on.
CostModel::Between CostModel::find(double rows) const {
  const auto& points = table_.points;
  if (points.size() == 1 || rows <= points.front().rows) return {};
  std::size_t above = 1;
  while (above + 1 < points.size() && points[above].rows < rows) ++above;
  const CostPoint &low = points[above - 1], &high = points[above];
  return {above - 1, (rows - low.rows) / (high.rows - low.rows)};
}

double CostModel::unit(const PassShape& pass) const {
  const Between at = find(pass.rows);
  double seconds = rising_[at.below];
  if (at.share > 0) seconds += at.share * (rising_[at.below + 1] - rising_[at.below]);
  return seconds + table_.per_position * pass.positions + table_.per_row_position * pass.row_positions;
}

void CostModel::refine(const PassShape& pass, double seconds) {
  if (!(seconds > 0)) return;
  ++refined_;
  const double ratio = seconds / this->seconds(pass);
  speed_ *= std::exp(kSpeedStep * bounded_log(ratio, kMostSpeed));
  const Between at = find(pass.rows);
  const double step = kTableStep * bounded_log(ratio, kMostTable);
  const double above = std::min(at.share, 1.0);
  table_.points[at.below].seconds *= std::exp(step * (1 - above));
  if (above > 0) table_.points[at.below + 1].seconds *= std::exp(step * above);
  make_isotonic();
}

CostTable CostModel::table() const {
  CostTable table = table_;
  for (std::size_t i = 0; i < rising_.size(); ++i) table.points[i].seconds = rising_[i];
  return table;
}

}  // namespace coppice::core
