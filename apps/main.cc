#include <fmt/core.h>

#include "command.h"
#include "terminal.h"

namespace {

using namespace coppice::app;

constexpr void (*kCommands[])(CLI::App&, const Choose&) = {
    add_generate, add_chat, add_bench,  add_eval,  add_tokenize,
    add_inspect,  add_info, add_models, add_ngram, add_slice,
};

// CLI11's messages, in our own form: one sentence, exit code 2; help and version go to stdout.
int explain(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);
  fmt::print(stderr, "coppice: {} (coppice {}--help lists what there is)\n", error.what(),
             app.get_subcommands().empty() ? "" : app.get_subcommands().front()->get_name() + " ");
  return kBadInput;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs GGUF language models, several tokens per pass, and the text is the same as without."};
  app.name("coppice");
  app.set_version_flag("--version", "coppice 0.1.0");
  app.require_subcommand(1);
  app.fallthrough(false);
  Run run;
  for (auto add : kCommands) add(app, [&run](Run chosen) { run = std::move(chosen); });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return explain(app, error);
  }
  auto code = run();
  if (!code) {
    clear_progress();
    fmt::print(stderr, "coppice: {}\n", code.error().message);
    return kBadInput;
  }
  return *code;
}
