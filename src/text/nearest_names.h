// For messages about a name that is not known: which of the known ones may have been meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace coppice::core {

// Up to three of `names`, those to which the fewest letters must be added, taken away or exchanged first, as
// "a, b or c". Of `name` the first 64 bytes count.
std::string nearest_names(std::string_view name, const std::vector<std::string_view>& names);

}  // namespace coppice::core
