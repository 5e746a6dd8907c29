// coppice generate: one answer to one prompt.
#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "answer.h"
#include "command.h"
#include "options.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

struct Generate {
  ModelFlags model;
  SamplingFlags sampling;
  SpeculationFlags speculation;
  EngineFlags engine;
  ShowFlags show;
  std::string prompt, file, system;
  bool chat = false, json = false, special = false, quiet = false;
};

Result<std::string> prompt_text(const Generate& flags) {
  if (!flags.prompt.empty() && !flags.file.empty()) return fail("say -p or -f, not both");
  if (!flags.prompt.empty()) return flags.prompt;
  if (!flags.file.empty()) return read_text(flags.file);
  if (stdin_is_terminal()) return fail("no prompt: give -p TEXT, -f FILE, or pipe one in");
  return read_text("-");
}

Result<std::vector<Token>> prompt_tokens(const Generate& flags, const Model& model) {
  auto text = prompt_text(flags);
  if (!text) return tl::unexpected(text.error());
  if (!flags.chat && flags.system.empty()) return model.tokenizer().encode(*text, flags.special);
  auto chat = model.chat_template();
  if (!chat) return tl::unexpected(chat.error());
  std::vector<ChatMessage> messages;
  if (!flags.system.empty()) messages.push_back({"system", flags.system});
  messages.push_back({"user", *text});
  return chat->tokens(messages);
}

ordered_json token_json(const EmittedToken& token, const Engine& engine, const Tokenizer& tokenizer,
                        bool logprobs) {
  const auto sources = engine.sources();
  ordered_json out = {
      {"id", token.token},
      {"text", tokenizer.piece(token.token)},
      {"source", token.source < 0 ? "target" : sources[static_cast<std::size_t>(token.source)]}};
  if (logprobs) {
    out["logprob"] = token.logprob;
    out["top"] = ordered_json::array();
    for (const auto& [id, logprob] : token.top) out["top"].push_back({{"id", id}, {"logprob", logprob}});
  }
  return out;
}

void print_json(const Generation& answer, const Request& request, const Engine& engine, const Model& model) {
  ordered_json tokens = ordered_json::array();
  ordered_json ids = ordered_json::array();
  for (const EmittedToken& token : answer.tokens) {
    ids.push_back(token.token);
    tokens.push_back(token_json(token, engine, model.tokenizer(), request.sampling.logprobs >= 0));
  }
  ordered_json out = {{"text", answer.text},
                      {"stop", to_string(answer.stop)},
                      {"prompt_ids", request.prompt},
                      {"ids", ids},
                      {"tokens", tokens},
                      {"seed", request.sampling.seed},
                      {"drafters", engine.options().speculation.drafters},
                      {"stats", ordered_json::parse(stats_json(answer.stats))}};
  fmt::print("{}\n", out.dump(2, ' ', false, ordered_json::error_handler_t::replace));
}

Result<int> run(const Generate& flags) {
  auto model = flags.model.load();
  if (!model) return tl::unexpected(model.error());
  auto options = flags.engine.resolve(flags.speculation.resolve());
  if (!options) return tl::unexpected(options.error());
  auto engine = Engine::make(*model, *options);
  if (!engine) return tl::unexpected(engine.error());
  auto prompt = prompt_tokens(flags, *model);
  if (!prompt) return tl::unexpected(prompt.error());
  auto sampling = flags.sampling.resolve();
  if (!sampling) return tl::unexpected(sampling.error());
  Request request;
  request.prompt = *prompt;
  request.sampling = *sampling;
  request.trace = flags.show.show_tree;
  request.show_special = flags.show.show_special;
  AnswerPrinter printer(flags.show, model->tokenizer(), engine->sources());
  request.on_event = [&](const Event& event) { return flags.json ? !interrupted() : printer.show(event); };
  catch_interrupts();
  auto answer = engine->generate(request);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->stop == StopReason::failed) return fail(answer->error);
  if (flags.json) {
    print_json(*answer, request, *engine, *model);
  } else {
    printer.finish();
    fmt::print("\n");
    if (answer->stop == StopReason::context_full) {
      fmt::print(stderr, "[stopped: the context of {} tokens is full; -c makes it larger]\n",
                 engine->options().context);
    }
    if (!flags.quiet) fmt::print(stderr, "[{}]\n", summary(answer->stats));
  }
  return answer->stop == StopReason::cancelled ? kInterrupted : kOk;
}

}  // namespace

void add_generate(CLI::App& app, const Choose& choose) {
  auto flags = std::make_shared<Generate>();
  CLI::App* command = app.add_subcommand("generate", "one answer to one prompt");
  flags->model.add(*command);
  command->add_option("-p,--prompt", flags->prompt, "the prompt");
  command->add_option("-f,--file", flags->file, "a file with the prompt; - is stdin");
  command->add_flag("--chat", flags->chat, "the prompt is a user's message: use the model's chat template");
  command->add_option("--system", flags->system, "system message (implies --chat)");
  command->add_flag("--parse-special", flags->special,
                    "control tokens spelled in the prompt become control tokens");
  command->add_flag("--json", flags->json, "token ids, log-probabilities and statistics as JSON");
  command->add_flag("-q,--quiet", flags->quiet, "no summary line");
  flags->show.add(*command);
  flags->engine.add(*command);
  flags->sampling.add(*command);
  flags->speculation.add(*command);
  command->callback([flags, choose] { choose([flags] { return run(*flags); }); });
}

}  // namespace coppice::app
