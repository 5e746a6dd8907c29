// coppice train: starts coppice-train, a program of its own because it alone needs LibTorch.
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "command.h"

namespace coppice::app {
namespace {

Result<int> run(std::vector<std::string> arguments) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = (error ? "coppice-train" : self.parent_path() / "coppice-train").string();
  if (!error && !std::filesystem::exists(program, error))
    return fail(
        fmt::format("training needs {}, which is not there: it is built where CMake finds LibTorch (Debian: "
                    "libtorch-dev)",
                    program));
  std::vector<char*> pointers;
  std::string name = "coppice-train";
  pointers.push_back(name.data());
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  return fail(fmt::format("cannot start {}: {}", program, std::strerror(errno)));
}

}  // namespace

void add_train(CLI::App& app, const Choose& choose) {
  CLI::App* command =
      app.add_subcommand("train", "train drafts and heads for a model (coppice-train, needs LibTorch)");
  command->prefix_command();  // everything behind it is for the other program
  command->set_help_flag();
  command->callback(
      [command, choose] { choose([arguments = command->remaining()] { return run(arguments); }); });
}

}  // namespace coppice::app
