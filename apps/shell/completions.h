// Scripts that complete the command line of `top` in a shell: commands, options, the words that options take,
// and files. Each is the whole text of a file. docs/packaging.md says where they belong.
#pragma once

#include <string>

#include "shell/tree.h"

namespace coppice::app::shell {

std::string bash_completion(const Command& top);
std::string zsh_completion(const Command& top);
std::string fish_completion(const Command& top);

// In single quotes, as all three read them.
std::string in_quotes(const std::string& text);
// The first line of a help text, which may be a whole table.
std::string first_line(const std::string& text);

}  // namespace coppice::app::shell
