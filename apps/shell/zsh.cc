// For zsh: a function for each command, which hands _arguments its options and, where it has commands below
// it, the rest of the line to theirs.
#include <fmt/format.h>

#include <algorithm>

#include "shell/completions.h"

namespace coppice::app::shell {
namespace {

std::string function_name(const std::string& path) {
  std::string name = "_" + path;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
  return name;
}

// Characters that end a part of a specification.
std::string escaped(const std::string& text, std::string_view special) {
  std::string out;
  for (char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string action(const Argument& argument) {
  if (argument.value == Value::number) return " ";  // a message, and nothing to choose from
  if (argument.value == Value::text) return "_files";
  return fmt::format("({})", fmt::join(argument.words, " "));
}

std::string value_spec(const Argument& argument) {
  if (argument.value == Value::none) return "";
  const std::string message = argument.place.empty() ? argument.type : argument.place;
  return fmt::format(":{}:{}", escaped(message, ":\\"), action(argument));
}

// --model with its value in the next word or behind "=", -m in the next word or right behind it.
std::string with_value(const std::string& name, const Argument& argument) {
  if (argument.value == Value::none) return name;
  return name + (name.rfind("--", 0) == 0 ? "=" : "+");
}

std::vector<std::string> specifications(const Command& command) {
  std::vector<std::string> specs;
  for (const Argument& argument : command.arguments) {
    const std::string help = escaped(first_line(argument.help), "[]\\");
    const std::string others = argument.repeats ? "*" : fmt::format("({})", fmt::join(argument.names, " "));
    for (const std::string& name : argument.names)
      specs.push_back(others + with_value(name, argument) + "[" + help + "]" + value_spec(argument));
    if (!argument.place.empty() && argument.value != Value::none)
      specs.push_back((argument.repeats ? "*" : "") + value_spec(argument));
  }
  return specs;
}

std::string function_of(const Command& command) {
  const bool parent = !command.commands.empty();
  std::string out = function_name(command.path) + "() {\n";
  if (parent) out += "  local curcontext=$curcontext state line\n  typeset -A opt_args\n";
  out += parent ? "  _arguments -C" : "  _arguments";
  for (const std::string& spec : specifications(command)) out += " \\\n    " + in_quotes(spec);
  if (command.hands_on) out += " '*::argument:_files'";
  if (!parent) return out + "\n}\n\n";
  out += " \\\n    '1: :->command' '*:: :->rest'\n  case $state in\n    command)\n      local -a commands=(";
  for (const Command& each : command.commands)
    out += "\n        " + in_quotes(escaped(each.name, ":\\") + ":" + first_line(each.help));
  out += "\n      )\n      _describe command commands\n      ;;\n    rest)\n      case $line[1] in";
  for (const Command& each : command.commands)
    out += fmt::format("\n        {}) {} ;;", each.name, function_name(each.path));
  return out + "\n      esac\n      ;;\n  esac\n}\n\n";
}

}  // namespace

std::string zsh_completion(const Command& top) {
  std::string out =
      fmt::format("#compdef {0}\n# Completion of {0} in zsh: made by `{0} completions zsh`.\n\n", top.name);
  for (const Command* command : all_commands(top)) out += function_of(*command);
  // Read from $fpath this file is the function; read by `source` it defines it.
  const std::string function = function_name(top.path);
  return out + fmt::format("if [[ $funcstack[1] == {0} ]]; then\n  {0} \"$@\"\nelse\n  compdef {0} {1}\nfi\n",
                           function, top.name);
}

}  // namespace coppice::app::shell
