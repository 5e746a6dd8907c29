// A string of a file in a message: quoted, on one line, and not too long, for a file may hold anything.
#pragma once

#include <string>
#include <string_view>

namespace coppice::core {

std::string show_token(std::string_view text);

}  // namespace coppice::core
