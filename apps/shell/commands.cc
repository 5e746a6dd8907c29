// coppice completions, man: what shells and man(1) know of the command line, made from the command line
// itself.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "command.h"
#include "files.h"
#include "options.h"
#include "shell/completions.h"
#include "shell/manual.h"
#include "terminal.h"

namespace coppice::app {

namespace shell {

std::string in_quotes(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace shell

namespace {

using shell::Command;

struct Script {
  const char* shell;
  const char* file;  // as each shell wants it called
  std::string (*text)(const Command& top);
};

constexpr Script kScripts[] = {
    {"bash", "coppice.bash", shell::bash_completion},
    {"zsh", "_coppice", shell::zsh_completion},
    {"fish", "coppice.fish", shell::fish_completion},
};

Status write_into(const std::string& folder, const std::string& name, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(fmt::format("cannot make the folder {}: {}", folder, error.message()));
  return write_text((std::filesystem::path(folder) / name).string(), text);
}

Result<int> run_completions(const Command& top, const std::string& wanted, const std::string& folder) {
  if (wanted.empty() == folder.empty())
    return fail("say one shell (bash, zsh or fish), or --out FOLDER for all of them");
  for (const Script& script : kScripts) {
    if (wanted == script.shell) {
      write_out(script.text(top));
      return kOk;
    }
    if (folder.empty()) continue;
    if (Status written = write_into(folder, script.file, script.text(top)); !written)
      return tl::unexpected(written.error());
  }
  if (folder.empty())
    return fail(fmt::format("there is no completion for {}; there is bash, zsh and fish", wanted));
  return kOk;
}

Result<int> run_man(const Command& top, const std::string& wanted, const std::string& folder) {
  const std::string version = COPPICE_VERSION;
  if (!folder.empty()) {
    if (!wanted.empty()) return fail("--out writes the pages of all commands; name none");
    Status written = write_into(folder, top.name + ".1", shell::manual_page(top, version));
    for (const Command& command : top.commands)
      if (written)
        written =
            write_into(folder, shell::manual_name(command) + ".1", shell::manual_page(top, command, version));
    if (!written) return tl::unexpected(written.error());
    return kOk;
  }
  if (wanted.empty()) {
    write_out(shell::manual_page(top, version));
    return kOk;
  }
  for (const Command& command : top.commands) {
    if (command.name != wanted) continue;
    write_out(shell::manual_page(top, command, version));
    return kOk;
  }
  return fail(fmt::format("there is no command \"{}\"; coppice --help lists them", wanted));
}

struct Flags {
  std::string wanted, folder;
};

}  // namespace

void add_completions(CLI::App& app, const Choose& choose) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("completions", "what completes this command line in bash, zsh and fish");
  command->add_option("shell", flags->wanted, "the shell whose script is printed")
      ->check(one_of("bash|zsh|fish"));
  command->add_option("--out", flags->folder, "write the scripts of all shells into this folder");
  command->callback([flags, choose, &app] {
    choose([flags, &app] { return run_completions(shell::command_tree(app), flags->wanted, flags->folder); });
  });
}

void add_man(CLI::App& app, const Choose& choose) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("man", "manual pages, as in: coppice man generate | man -l -");
  std::string names;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    if (each != command) names += (names.empty() ? "" : "|") + each->get_name();
  command
      ->add_option("command", flags->wanted,
                   "the command whose page is printed (default: that of the program)")
      ->check(one_of(names));
  command->add_option("--out", flags->folder, "write the pages of all commands into this folder");
  command->callback([flags, choose, &app] {
    choose([flags, &app] { return run_man(shell::command_tree(app), flags->wanted, flags->folder); });
  });
}

}  // namespace coppice::app
