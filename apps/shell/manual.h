// Manual pages, in the language of man(7), made from the command line itself.
#pragma once

#include <string>

#include "shell/tree.h"

namespace coppice::app::shell {

// The page of the whole program (section 1): what it is, its commands, environment, files, exit codes.
std::string manual_page(const Command& top, const std::string& version);

// The page of a command, with all below it; `command` is one of those of `top`.
std::string manual_page(const Command& top, const Command& command, const std::string& version);

// "coppice-bench", as its file is called before ".1".
std::string manual_name(const Command& command);

}  // namespace coppice::app::shell
