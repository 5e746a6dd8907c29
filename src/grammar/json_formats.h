// The formats of strings that are kept, each by a pattern.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace coppice::core::grammar {

// Empty: there is no such format.
std::optional<std::string> pattern_of_format(std::string_view format);
std::string known_formats();  // "date, time, ..."

}  // namespace coppice::core::grammar
