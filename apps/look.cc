// coppice tokenize, inspect, info, models: to look at what there is.
#include <coppice/coppice.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "answer.h"
#include "command.h"
#include "files.h"
#include "options.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

struct Tokenize {
  ModelFlags model;
  std::optional<std::string> text, file;
  bool ids = false, special = false, no_bos = false;
  std::vector<Token> decode;
};

Result<int> run_tokenize(const Tokenize& flags) {
  auto path = flags.model.resolve();
  if (!path) return tl::unexpected(path.error());
  auto tokenizer = Tokenizer::load(*path);
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  if (!flags.decode.empty()) {
    for (Token token : flags.decode) {
      if (token < 0 || token >= tokenizer->size()) {
        return fail(fmt::format("--detokenise: token id {} is not in the vocabulary; ids go from 0 to {}",
                                token, tokenizer->size() - 1));
      }
    }
    write_out(tokenizer->decode(flags.decode, true));
    if (stdout_is_terminal()) write_out("\n");
    return kOk;
  }
  if (flags.text && flags.file) return fail("say a text or -f FILE, not both");
  if (!flags.text && !flags.file && stdin_is_terminal())
    return fail("no text: give one, -f FILE, or pipe one in");
  Result<std::string> text = flags.text ? *flags.text : read_text(flags.file.value_or("-"));
  if (!text) return tl::unexpected(text.error());
  const auto tokens = tokenizer->encode(*text, flags.special, !flags.no_bos);
  if (flags.ids) {
    for (std::size_t i = 0; i < tokens.size(); ++i) say("{}{}", i == 0 ? "" : " ", tokens[i]);
    say("\n");
  } else {
    for (Token token : tokens) say("{:>7}  {}\n", token, printable(tokenizer->piece(token)));
  }
  return kOk;
}

std::string shorten(const std::string& text, std::size_t most = 100) {
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

Result<int> run_inspect(const std::string& name, bool json) {
  auto path = find_model_file(name);
  if (!path) return tl::unexpected(path.error());
  auto text = inspect(*path);
  if (!text) return tl::unexpected(text.error());
  if (json) {
    say("{}\n", *text);
    return kOk;
  }
  const ordered_json file = ordered_json::parse(*text);
  say("{}\nGGUF v{}, {:.1f} MB, {:.1f} M parameters\n\n", *path, file["version"].get<int>(),
      file["bytes"].get<double>() / 1e6, file["parameters"].get<double>() / 1e6);
  for (const auto& [key, value] : file["keys"].items())
    say("{:<44} {}\n", key, shorten(printable(value.dump())));
  say("\n");
  if (file.contains("widths")) {
    for (const auto& width : file["widths"])
      say("width {:<8} hidden {:>5}, feed-forward {:>5}, {} blocks: {:.1f} M parameters a pass\n",
          width["width"].get<std::string>(), width["hidden"].get<int>(), width["feed_forward"].get<int>(),
          width["blocks"].get<int>(), width["parameters"].get<double>() / 1e6);
    say("\n");
  }
  for (const auto& tensor : file["tensors"]) {
    say("{:<44} {:<6} {}\n", tensor["name"].get<std::string>(), tensor["format"].get<std::string>(),
        tensor["shape"].dump());
  }
  return kOk;
}

Result<int> run_info(bool json) {
  const std::string text = system_info();
  if (json) {
    say("{}\n", text);
    return kOk;
  }
  const ordered_json info = ordered_json::parse(text);
  say("CPU     {}, {} cores usable\n", info["cpu"].get<std::string>(), info["cores"].get<int>());
  say("memory  {:.1f} GB, {:.1f} GB available\n", info["memory_bytes"].get<double>() / 1e9,
      info["memory_available_bytes"].get<double>() / 1e9);
  for (const auto& table : info["isa"]) {
    say("ISA     {:<12} {}\n", table["name"].get<std::string>(),
        table["chosen"].get<bool>()   ? "chosen"
        : table["usable"].get<bool>() ? "usable"
                                      : "not on this machine");
  }
  say("cache   {}\n", info["cache"].get<std::string>());
  return kOk;
}

Result<int> run_models(bool json) {
  const auto found = find_models();
  if (json) {
    ordered_json out = ordered_json::array();
    for (const FoundModel& model : found) {
      out.push_back({{"path", model.path},
                     {"name", model.name},
                     {"architecture", model.architecture},
                     {"bytes", model.bytes}});
    }
    say("{}\n", out.dump(2, ' ', false, ordered_json::error_handler_t::replace));
    return kOk;
  }
  for (const FoundModel& model : found) {
    say("{:>9.1f} MB  {:<8} {}  ({})\n", static_cast<double>(model.bytes) / 1e6, model.architecture,
        model.path, model.name);
  }
  if (found.empty()) say("no GGUF files in the usual caches and folders\n");
  return kOk;
}

}  // namespace

void add_tokenize(CLI::App& app, const Choose& choose) {
  auto flags = std::make_shared<Tokenize>();
  CLI::App* command = app.add_subcommand("tokenize", "text to tokens, and back");
  flags->model.add(*command);
  command->add_option("-p,--prompt,text", flags->text, "the text (default: stdin)");
  command->add_option("-f,--file", flags->file, "a file with the text");
  command->add_flag("--ids", flags->ids, "ids only, on one line");
  command->add_flag("--parse-special", flags->special,
                    "control tokens spelled in the text become control tokens");
  command->add_flag("--no-bos", flags->no_bos, "do not add the begin-of-text token");
  command->add_option("--detokenise,--detokenize,--decode", flags->decode, "token ids: print their text")
      ->delimiter(',');
  command->callback([flags, choose] { choose([flags] { return run_tokenize(*flags); }); });
}

void add_inspect(CLI::App& app, const Choose& choose) {
  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("inspect", "what is in a GGUF file");
  command->add_option("file", *path, "GGUF file, or the name of one that `coppice models` lists")->required();
  command->add_flag("--json", *json, "as JSON");
  command->callback([path, json, choose] { choose([path, json] { return run_inspect(*path, *json); }); });
}

void add_info(CLI::App& app, const Choose& choose) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("info", "this machine: CPU, instruction sets, memory");
  command->add_flag("--json", *json, "as JSON");
  command->callback([json, choose] { choose([json] { return run_info(*json); }); });
}

void add_models(CLI::App& app, const Choose& choose) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("models", "GGUF files in the usual caches and folders");
  command->add_flag("--json", *json, "as JSON");
  command->callback([json, choose] { choose([json] { return run_models(*json); }); });
}

}  // namespace coppice::app
