// The records of `coppice bench staged` as tables for a terminal. bench/staged/report.py makes the pages.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace coppice::app {

void print_staged(const std::vector<nlohmann::ordered_json>& records);

}  // namespace coppice::app
