#include "shell/manual.h"

#include <fmt/format.h>

#include <algorithm>

namespace coppice::app::shell {
namespace {

struct Row {
  const char* name;
  const char* text;
};

// tests/package/shell_test.py holds this against the variables that the sources read.
constexpr Row kEnvironment[] = {
    {"COPPICE_MODEL",
     "The model where no -m is given: a file, or the name of one that coppice models lists."},
    {"COPPICE_CACHE",
     "Folder of fetched models, costs of passes and packed weights; by default ~/.cache/coppice."},
    {"COPPICE_ISA",
     "Instruction set of the kernels, one of those that coppice info shows; by default the best that this "
     "CPU has."},
    {"NO_COLOR", "Set to anything: no colours."},
    {"HF_HOME, HF_HUB_CACHE, LLAMA_CACHE, OLLAMA_MODELS",
     "Folders of other programs, where coppice models looks, too."},
};

constexpr Row kExitCodes[] = {
    {"0", "All went well."},
    {"1", "A comparison that should be equal was not."},
    {"2",
     "Bad input: one sentence on the standard error output says what was wrong, where, and what would be "
     "right."},
    {"130", "Stopped by Ctrl-C."},
};

constexpr Row kExamples[] = {
    {"coppice chat -m model.gguf", "Talk to a model."},
    {"coppice generate -m model.gguf -p \"def fibonacci(n):\" --colour-by-source",
     "Go on with a text, each token coloured by who guessed it."},
    {"coppice bench decode -m model.gguf --prompts prompts.jsonl",
     "Measure what speculation brings on your own prompts."},
};

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

// Text for troff: a backslash begins an escape, and a point or an apostrophe at a line's beginning a request.
std::string plain(const std::string& text) {
  std::string out;
  bool begins = true;
  for (char c : text) {
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    begins = c == '\n';
    if (c == '\\')
      out += "\\e";
    else if (c == '\n')
      out += "\n.br\n";
    else
      out += c;
  }
  return out;
}

// A word that may be copied: a hyphen-minus stays one.
std::string literal(const std::string& text) {
  std::string out;
  for (char c : plain(text)) out += c == '-' ? "\\-" : std::string(1, c);
  return out;
}

std::string bold(const std::string& text) { return "\\fB" + literal(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + literal(text) + "\\fR"; }

std::string section(const std::string& title) { return ".SH " + upper(title) + "\n"; }

std::string rows(const std::string& title, const Row* begin, const Row* end) {
  std::string out = section(title);
  for (const Row* row = begin; row != end; ++row)
    out += ".TP\n" + bold(row->name) + "\n" + plain(row->text) + "\n";
  return out;
}

std::string header(const Command& command, const std::string& version) {
  return fmt::format(
             ".\\\" Made by `coppice man`; its text is in the sources of the commands.\n.TH {} 1 \"\" "
             "\"coppice {}\" \"Coppice\"\n",
             upper(literal(manual_name(command))), version) +
         section("Name") + literal(manual_name(command)) + " \\- " + plain(command.help) + "\n";
}

// "-m, --model TEXT", or the name of a place.
std::string heading(const Argument& argument) {
  std::string out;
  for (const std::string& name : argument.names) out += (out.empty() ? "" : ", ") + bold(name);
  if (argument.names.empty()) return italic(argument.place);
  if (argument.value == Value::word)
    return out + " " + italic(fmt::format("{}", fmt::join(argument.words, "|")));
  return argument.value == Value::none ? out : out + " " + italic(argument.type);
}

std::string paragraph(const Argument& argument) {
  std::string help = argument.help;
  if (argument.required) help += help.empty() ? "Required." : " (required)";
  if (!argument.standard.empty()) help += fmt::format(" (default: {})", argument.standard);
  return ".TP\n" + heading(argument) + "\n" + (help.empty() ? "\\&" : plain(help)) + "\n";
}

std::string options(const Command& command) {
  std::vector<std::string> groups;
  for (const Argument& argument : command.arguments)
    if (std::find(groups.begin(), groups.end(), argument.group) == groups.end())
      groups.push_back(argument.group);
  std::string out;
  for (const std::string& group : groups) {
    if (groups.size() > 1 || group != "Options") out += ".PP\n" + plain(group) + "\n";
    for (const Argument& argument : command.arguments)
      if (argument.group == group) out += paragraph(argument);
  }
  return out;
}

std::string synopsis(const Command& command) {
  std::string out = bold(command.path);
  if (!command.commands.empty()) return out + " " + italic("command") + " [" + italic("options") + "]\n";
  if (command.hands_on) return out + " " + italic("arguments") + "\n";
  out += " [" + italic("options") + "]";
  for (const Argument& argument : command.arguments) {
    if (argument.place.empty()) continue;
    const std::string name = italic(argument.place) + (argument.repeats ? "..." : "");
    out += argument.required ? " " + name : " [" + name + "]";
  }
  return out + "\n";
}

// What a page says of one command: as sections if it is the page's own, else below a heading.
std::string described(const Command& command) {
  std::string out = plain(command.help) + "\n";
  if (command.hands_on)
    out += fmt::format(".PP\nWhat follows is for another program; {} lists its options.\n",
                       bold(command.path + " --help"));
  return out + options(command);
}

}  // namespace

std::string manual_name(const Command& command) {
  std::string name = command.path;
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string manual_page(const Command& top, const std::string& version) {
  std::string out = header(top, version) + section("Synopsis") + synopsis(top) + section("Description");
  out +=
      "Coppice runs language models in GGUF files. Cheap predictors guess a tree of continuations, the model "
      "checks the whole tree in "
      "one pass, and the guesses it would have made itself are kept: several tokens a pass, and the text is "
      "the same to the last token.\n";
  out += section("Commands");
  for (const Command& command : top.commands)
    out += ".TP\n" + bold(manual_name(command)) + "(1)\n" + plain(command.help) + "\n";
  out += section("Options") + options(top);
  out += rows("Environment", std::begin(kEnvironment), std::end(kEnvironment));
  out += rows("Exit status", std::begin(kExitCodes), std::end(kExitCodes));
  return out + rows("Examples", std::begin(kExamples), std::end(kExamples));
}

std::string manual_page(const Command& top, const Command& command, const std::string& version) {
  std::string out = header(command, version) + section("Synopsis") + synopsis(command);
  for (const Command* each : all_commands(command))
    if (each != &command) out += ".br\n" + synopsis(*each);
  out += section("Description") + described(command);
  for (const Command* each : all_commands(command))
    if (each != &command) out += section(literal(each->path)) + described(*each);
  return out + section("See also") + bold(top.name) + "(1)\n";
}

}  // namespace coppice::app::shell
