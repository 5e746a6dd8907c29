#include "shell/tree.h"

namespace coppice::app::shell {
namespace {

// CLI11 says "TEXT:f32|f16|q8_0" for one_of("f32|f16|q8_0"): the type, and what a check has to say of itself.
std::vector<std::string> words_of(const std::string& type) {
  const std::size_t colon = type.find(':');
  if (colon == std::string::npos || type.find('|', colon) == std::string::npos) return {};
  std::vector<std::string> words;
  for (std::size_t begin = colon + 1; begin <= type.size();) {
    const std::size_t end = std::min(type.find('|', begin), type.size());
    words.push_back(type.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

Value value_of(const CLI::Option& option, const Argument& argument) {
  if (option.get_items_expected_max() == 0) return Value::none;
  if (!argument.words.empty()) return Value::word;
  const bool number = argument.type == "INT" || argument.type == "UINT" || argument.type == "FLOAT";
  return number ? Value::number : Value::text;
}

Argument argument_of(const CLI::Option& option) {
  Argument out;
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  out.place = option.get_name(true);
  out.help = option.get_description();
  out.group = option.get_group();
  out.words = words_of(option.get_type_name());
  out.type = option.get_type_name().substr(0, option.get_type_name().find(':'));
  out.value = value_of(option, out);
  if (out.value == Value::none) out.type.clear();
  out.standard = out.value == Value::none ? std::string() : option.get_default_str();
  out.required = option.get_required();
  out.repeats = option.get_expected_max() > 1;
  return out;
}

Command command_below(const CLI::App& app, const std::string& above) {
  Command out;
  out.name = app.get_name();
  out.path = above.empty() ? out.name : above + " " + out.name;
  out.help = app.get_description();
  out.hands_on = app.get_prefix_command();
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) out.arguments.push_back(argument_of(*option));  // no group: hidden
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    out.commands.push_back(command_below(*command, out.path));
  return out;
}

void collect(const Command& command, std::vector<const Command*>& into) {
  into.push_back(&command);
  for (const Command& each : command.commands) collect(each, into);
}

}  // namespace

Command command_tree(const CLI::App& app) { return command_below(app, ""); }

std::vector<const Command*> all_commands(const Command& top) {
  std::vector<const Command*> commands;
  collect(top, commands);
  return commands;
}

}  // namespace coppice::app::shell
