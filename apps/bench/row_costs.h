// What passes cost by their rows, measured once, so that what was done can be priced without a clock: on a
// machine that others use too, counts say more than seconds.
#pragma once

#include <coppice/bench.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace coppice::app {

class RowCosts {
 public:
  // Passes of 1 to about `most` rows, which see 256 tokens where the model allows it.
  static Result<RowCosts> measure(const Model& model, int most, const BenchProgress& progress);
  explicit RowCosts(std::vector<std::pair<double, double>> points);  // rows, seconds; rows rise

  // Never falls with rows; interpolated, and beyond the last point in proportion.
  double seconds(double rows) const;
  nlohmann::ordered_json json() const;

 private:
  std::vector<std::pair<double, double>> points_;
};

}  // namespace coppice::app
