// A line through points, as SVG: for reports that a person opens in a browser.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace coppice::app {

struct Plot {
  std::string title, x_label, y_label;
  std::vector<std::pair<double, double>> points;  // x rises; at least one
  bool log_x = false;                             // x above 0 then
};
std::string to_svg(const Plot& plot);

}  // namespace coppice::app
