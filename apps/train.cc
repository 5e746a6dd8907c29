// coppice train: drafts and heads start coppice-train, a program of its own because it alone needs LibTorch;
// the rest is fit.cc and fit_policy.cc.
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "fit.h"

namespace coppice::app {
namespace {

Result<int> run(std::vector<std::string> arguments) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = (error ? "coppice-train" : self.parent_path() / "coppice-train").string();
  if (!error && !std::filesystem::exists(program, error))
    return fail(
        fmt::format("training needs {}, which is not there: ./dev setup --train installs LibTorch, and "
                    "COPPICE_TRAIN=ON ./dev build release builds it",
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
  CLI::App* train = app.add_subcommand(
      "train", "make what goes with a model: drafts, heads, n-grams, priors, gates, thresholds");
  train->require_subcommand(1);
  add_mixer_training(*train, choose);
  add_ngram_training(*train, choose);
  add_gate_training(*train, choose);
  add_tau_training(*train, choose);
  for (const auto& [name, what] :
       {std::pair{"draft", "distil a small draft of the model (needs LibTorch)"},
        std::pair{"head", "train a head that reads the model's states (needs LibTorch)"}}) {
    CLI::App* command = train->add_subcommand(name, what);
    command->prefix_command();  // everything behind it is for the other program
    command->set_help_flag();
    command->callback([name = std::string(name), command, choose] {
      std::vector<std::string> arguments = command->remaining();
      arguments.insert(arguments.begin(), name);
      choose([arguments] { return run(arguments); });
    });
  }
}

}  // namespace coppice::app
