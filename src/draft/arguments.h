// What a drafter takes between its parentheses: the table of drafters says it (registry.cc), so that an
// expression can be checked before there is a model to guess for, with the same sentences for all.
#pragma once

#include <coppice/error.h>

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "draft/expression.h"

namespace coppice::core {

struct Range {
  int least, most;
};

struct OptionRule {
  std::string_view name;
  std::optional<Range> whole;  // a whole number of these; none: a text that the drafter reads
};

enum class Inner { none, needed, allowed };

struct Arguments {
  int files = 0;  // exactly so many
  Inner inner = Inner::none;
  std::span<const OptionRule> options;
};
Status check_arguments(const DrafterNode& node, const Arguments& allowed);

// The option as a number, or `fallback` if it is not given. It has been checked.
int int_option(const DrafterNode& node, std::string_view key, int fallback);

// "a, b or c"
std::string choices(const std::vector<std::string_view>& names);

}  // namespace coppice::core
