// Whether JSON is nested so deeply that walking its value, which everybody does recursively, would be no good
// idea.
#pragma once

#include <string_view>

namespace coppice::core {

// Looks at brackets outside strings alone: the text need not be JSON.
bool json_deeper_than(std::string_view text, int depth);

}  // namespace coppice::core
