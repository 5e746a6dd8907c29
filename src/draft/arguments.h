// What factories in the registry use to check a drafter's arguments, with the same sentences for all.
#pragma once

#include <coppice/error.h>

#include <string_view>
#include <vector>

#include "draft/expression.h"

namespace coppice::core {

struct Arguments {
  int files = 0;       // exactly so many
  bool inner = false;  // needs a nested mix; else has none
  std::vector<std::string_view> options;
};
Status check_arguments(const DrafterNode& node, const Arguments& allowed);

struct Range {
  int least, most;
};
// The option as a number, or `fallback` if it is not given.
Result<int> int_option(const DrafterNode& node, std::string_view key, int fallback, Range range);

// "a, b or c"
std::string choices(const std::vector<std::string_view>& names);

}  // namespace coppice::core
