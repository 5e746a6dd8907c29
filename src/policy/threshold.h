// A threshold between two choices, fitted where both were tried: below it one, from it on the other.
#pragma once

#include <span>

namespace coppice::core {

struct ThresholdCase {
  double value = 0;  // from 0 to 1, what is compared with the threshold
  double below = 0;  // what it costs if the threshold is above its value
  double above = 0;  // ... if it is not

  double cost(double threshold) const { return value >= threshold ? above : below; }
};

// The threshold in [0, 1] with the least cost of all: 0, the middle of two neighbouring values, or just above
// the largest; where several are as good, the least. A whole number of steps of 0.0001, so that a file holds
// it as it is.
double fit_threshold(std::span<const ThresholdCase> cases);

// What is to be expected of others: the cost of all cases, each by the threshold fitted on the rest.
double left_out_cost(std::span<const ThresholdCase> cases);

}  // namespace coppice::core
