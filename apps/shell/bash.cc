// For bash: three tables, by the command that has been named so far, and one function that walks the line to
// find out which that is.
#include <fmt/format.h>

#include "shell/completions.h"

namespace coppice::app::shell {
namespace {

// A function with one row for each command; a row sets REPLY to a list of words.
template <class ListOf>
std::string table(const Command& top, const char* name, const char* what, ListOf list_of) {
  std::string out = fmt::format("_{}_{}() {{  # {}\n  case $1 in\n", top.name, name, what);
  for (const Command* command : all_commands(top)) {
    std::string words;
    for (const std::string& word : list_of(*command)) words += (words.empty() ? "" : " ") + word;
    if (!words.empty())
      out += fmt::format("    {}) REPLY={} ;;\n", in_quotes(command->path), in_quotes(words));
  }
  return out + "    *) REPLY= ;;\n  esac\n}\n\n";
}

std::vector<std::string> commands_of(const Command& command) {
  std::vector<std::string> words;
  for (const Command& each : command.commands) words.push_back(each.name);
  return words;
}

std::vector<std::string> options_of(const Command& command) {
  std::vector<std::string> words;
  for (const Argument& argument : command.arguments)
    words.insert(words.end(), argument.names.begin(), argument.names.end());
  return words;
}

// What can stand in a place; @file where that is any text.
std::vector<std::string> places_of(const Command& command) {
  std::vector<std::string> words;
  for (const Argument& argument : command.arguments) {
    if (argument.place.empty()) continue;
    if (argument.value == Value::text) return {"@file"};
    words.insert(words.end(), argument.words.begin(), argument.words.end());
  }
  return words;
}

std::string wanted(const Argument& argument) {
  if (argument.value == Value::number) return "@number";
  if (argument.value == Value::text) return "@file";
  return fmt::format("{}", fmt::join(argument.words, " "));
}

std::string values(const Command& top) {
  std::string out = fmt::format(
      "_{}_value() {{  # what an option of a command takes; fails for a flag and for what is no option\n  "
      "case \"$1 $2\" in\n",
      top.name);
  for (const Command* command : all_commands(top)) {
    for (const Argument& argument : command->arguments) {
      if (argument.value == Value::none || argument.names.empty()) continue;
      std::string patterns;
      for (const std::string& name : argument.names)
        patterns += (patterns.empty() ? "" : " | ") + in_quotes(command->path + " " + name);
      out += fmt::format("    {}) REPLY={} ;;\n", patterns, in_quotes(wanted(argument)));
    }
  }
  return out + "    *) return 1 ;;\n  esac\n}\n\n";
}

// NAME is put in for the command's name.
constexpr const char* kWalk = R"sh(_NAME() {
  local REPLY at=NAME want= word i current=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    want=
    if _NAME_value "$at" "$word"; then
      want=$REPLY
      ((i++))
      [[ ${COMP_WORDS[i]} == = ]] && ((i++))  # bash takes --option=value for three words
      ((i < COMP_CWORD)) && want=
    else
      _NAME_commands "$at"
      [[ " $REPLY " == *" $word "* ]] && at+=" $word"
    fi
  done
  [[ $current == = ]] && current=
  if [[ -z $want ]]; then
    _NAME_options "$at"
    want=$REPLY
    if [[ $current != -* ]]; then
      _NAME_commands "$at"
      [[ -z $REPLY ]] && _NAME_places "$at"
      want=${REPLY:-$want}
    fi
  fi
  case $want in
    @number) ;;
    @file)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$want" -- "$current") ;;
  esac
}
complete -F _NAME NAME
)sh";

std::string named(std::string text, const std::string& name) {
  constexpr std::string_view kName = "NAME";
  for (std::size_t at = 0; (at = text.find(kName, at)) != std::string::npos; at += name.size())
    text.replace(at, kName.size(), name);
  return text;
}

}  // namespace

std::string bash_completion(const Command& top) {
  return fmt::format("# Completion of {0} in bash: made by `{0} completions bash`.\n\n", top.name) +
         table(top, "commands", "the commands below a command", commands_of) +
         table(top, "options", "the options of a command", options_of) +
         table(top, "places", "what a command takes without an option", places_of) + values(top) +
         named(kWalk, top.name);
}

}  // namespace coppice::app::shell
