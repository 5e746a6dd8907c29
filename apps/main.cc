#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "command.h"
#include "terminal.h"

namespace {

using namespace coppice::app;

constexpr void (*kCommands[])(CLI::App&, const Choose&) = {
    add_generate, add_chat,     add_bench,      add_corpus, add_eval,        add_tokenize,
    add_inspect,  add_info,     add_models,     add_ngram,  add_slice,       add_random_model,
    add_train,    add_quantize, add_importance, add_serve,  add_completions, add_man,
};

// "coppice ngram build": the command that was named, with what it belongs to.
std::string full_name(const CLI::App& app) {
  std::string name = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    name += " " + at->get_name();
  }
  return name;
}

std::string command_names(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names += (names.empty() ? "" : ", ") + command->get_name();
  return names;
}

// The word that CLI11's "... not expected: 1 --tempature" is about: an option rather than what stands behind
// it.
std::string unknown_word(const std::string& text) {
  const std::size_t colon = text.rfind(": ");
  const std::string words = colon == std::string::npos ? text : text.substr(colon + 2);
  const std::size_t option = words.rfind(" -") != std::string::npos ? words.rfind(" -") + 1 : 0;
  return words.substr(option, words[option] == '-' ? words.find(' ', option) - option : std::string::npos);
}

// CLI11's messages, where a person wants to hear more.
std::string sentence(const CLI::App& app, const CLI::ParseError& error) {
  std::string text = error.what();
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  const CLI::App* last = &app;
  while (!last->get_subcommands().empty()) last = last->get_subcommands().front();
  const std::vector<std::string> unknown = app.remaining(true);
  const bool wants_command =
      kind == CLI::ExitCodes::RequiredError && text.find("subcommand") != std::string::npos;
  if (wants_command && unknown.empty()) return fmt::format("say a command: {}", command_names(*last));
  if (wants_command)
    return fmt::format("there is no command \"{}\"; there is {}", unknown.front(), command_names(*last));
  if (kind == CLI::ExitCodes::ExtrasError) return fmt::format("\"{}\" is unknown here", unknown_word(text));
  constexpr std::string_view kConvert = "Could not convert: ";
  if (kind == CLI::ExitCodes::ConversionError && text.rfind(kConvert, 0) == 0)
    return text.substr(kConvert.size()) + ": not a number that this option can take";
  return text;
}

// One sentence, exit code 2; help and version go to stdout.
int explain(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);
  note("coppice: {} ({} --help lists what there is)\n", sentence(app, error), full_name(app));
  return kBadInput;
}

int refuse(std::string_view sentence) {
  clear_progress();
  note("coppice: {}\n", sentence);
  return kBadInput;
}

// What CLI11 would let pass for a number: nothing at all (0), and what is beyond 64 bits (the most there is).
std::string number_problem(const std::string& text) {
  if (text.empty()) return "the value is empty; a number is wanted";
  errno = 0;
  std::strtoull(text.c_str(), nullptr, 0);
  const bool whole = text.find_first_not_of("+-0123456789") == std::string::npos;
  return whole && errno == ERANGE ? fmt::format("{} is beyond what 64 bits hold", text) : std::string();
}

void check_numbers(CLI::App& app) {
  for (CLI::Option* option : app.get_options({})) {
    const std::string type = option->get_type_name();
    if (type.rfind("INT", 0) == 0 || type.rfind("UINT", 0) == 0 || type.rfind("FLOAT", 0) == 0)
      option->check(number_problem);
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) check_numbers(*command);
}

int run_safely(const Run& run) {
  try {
    auto code = run();
    return code ? *code : refuse(code.error().message);
  } catch (const std::bad_alloc&) {
    return refuse("out of memory: a smaller --context or model may fit");
  } catch (const std::exception& error) {
    return refuse(fmt::format("{}; this is a bug of ours", error.what()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  set_up_signals();
  CLI::App app{"Runs GGUF language models, several tokens per pass, and the text is the same as without."};
  app.name("coppice");
  app.set_version_flag("--version", "coppice " COPPICE_VERSION);
  app.require_subcommand(1);
  app.fallthrough(false);
  Run run;
  for (auto add : kCommands) add(app, [&run](Run chosen) { run = std::move(chosen); });
  check_numbers(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return explain(app, error);
  }
  const int code = run_safely(run);
  flush_out();
  if (output_lost()) return refuse(fmt::format("cannot write the output: {}", output_error()));
  return code;
}
