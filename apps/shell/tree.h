// The command line as plain data: what completions and manual pages are made from, so that they know every
// command and option there is.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace coppice::app::shell {

// What an argument takes.
enum class Value {
  none,    // a flag
  number,  // nothing that a shell could offer
  word,    // one of Argument::words
  text,    // anything else; a shell offers files
};

struct Argument {
  std::vector<std::string> names;  // "-m", "--model"; empty: it has only a place
  std::string place;               // its name among the arguments without one; empty: it has no place
  std::string help, group;
  std::string type;      // "INT", "TEXT"; empty for a flag
  std::string standard;  // the value where nobody gives one, as text; empty: none, or not worth saying
  Value value = Value::none;
  std::vector<std::string> words;
  bool required = false, repeats = false;
};

struct Command {
  std::string name;  // "decode"
  std::string path;  // "coppice bench decode"
  std::string help;
  std::vector<Argument> arguments;
  std::vector<Command> commands;  // below it
  bool hands_on = false;          // what follows is for another program
};

Command command_tree(const CLI::App& app);

// The command itself and all below it, each before those below it.
std::vector<const Command*> all_commands(const Command& top);

}  // namespace coppice::app::shell
