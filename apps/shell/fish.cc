// For fish: one line for each command and each option, with a condition that says after which commands it is
// offered.
#include <fmt/format.h>

#include "shell/completions.h"

namespace coppice::app::shell {
namespace {

// {0}: the program's name; {1}: the paths of its commands, quoted.
constexpr const char* kAt = R"sh(function __{0}_at
    set -l at {0}
    for word in (commandline -opc)[2..-1]
        if contains -- "$at $word"{1}
            set at "$at $word"
        end
    end
    test "$at" = "$argv"
end

complete -c {0} -f
)sh";

// The part of a line that tells what stands behind an option.
std::string value_part(const Argument& argument) {
  if (argument.value == Value::none) return "";
  if (argument.value == Value::number) return " -x";
  if (argument.value == Value::text) return " -r -F";
  return fmt::format(" -x -a {}", in_quotes(fmt::format("{}", fmt::join(argument.words, " "))));
}

std::string place_part(const Argument& argument) {
  if (argument.value == Value::word)
    return " -a " + in_quotes(fmt::format("{}", fmt::join(argument.words, " ")));
  return argument.value == Value::text ? " -F" : " -f";
}

std::string lines_of(const Command& command, const std::string& program) {
  const std::string begin = fmt::format("complete -c {} -n {}", program,
                                        in_quotes(fmt::format("__{}_at {}", program, command.path)));
  std::string out;
  for (const Command& each : command.commands)
    out += fmt::format("{} -a {} -d {}\n", begin, each.name, in_quotes(first_line(each.help)));
  for (const Argument& argument : command.arguments) {
    std::string names;
    for (const std::string& name : argument.names)
      names += name.rfind("--", 0) == 0 ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (!names.empty())
      out += fmt::format("{}{}{} -d {}\n", begin, names, value_part(argument),
                         in_quotes(first_line(argument.help)));
    if (!argument.place.empty()) out += begin + place_part(argument) + "\n";
  }
  if (command.hands_on) out += begin + " -F\n";
  return out;
}

}  // namespace

std::string fish_completion(const Command& top) {
  std::string paths;
  for (const Command* command : all_commands(top))
    if (command != &top) paths += " " + in_quotes(command->path);
  std::string out = fmt::format("# Completion of {0} in fish: made by `{0} completions fish`.\n\n", top.name);
  out += fmt::format(kAt, top.name, paths);
  for (const Command* command : all_commands(top)) out += lines_of(*command, top.name);
  return out;
}

}  // namespace coppice::app::shell
