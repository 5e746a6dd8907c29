// The records of `coppice bench adaptive` as tables for a terminal. bench/adaptive/report.py makes the pages.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace coppice::app {

// `full`: the method whose draft compute is 1.
void print_adaptive(const std::vector<nlohmann::ordered_json>& records, const std::string& full);

}  // namespace coppice::app
