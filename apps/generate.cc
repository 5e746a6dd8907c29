// coppice generate: one answer to one prompt.
#include <memory>
#include <nlohmann/json.hpp>

#include "answer.h"
#include "command.h"
#include "files.h"
#include "options.h"
#include "policy_trace.h"
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
  PolicyTrace trace;
  std::optional<std::string> prompt, file;
  std::string system;
  bool chat = false, json = false, special = false, quiet = false;
  double timeout = 0;
};

Result<std::string> prompt_text(const Generate& flags) {
  if (flags.prompt && flags.file) return fail("say -p or -f, not both");
  if (!flags.prompt && !flags.file && stdin_is_terminal())
    return fail("no prompt: give -p TEXT, -f FILE, or pipe one in");
  Result<std::string> text = flags.prompt ? *flags.prompt : read_text(flags.file.value_or("-"));
  if (text && text->empty()) {
    return fail(fmt::format("the prompt{} is empty; at least one character is needed",
                            flags.prompt ? "" : " from " + flags.file.value_or("stdin")));
  }
  return text;
}

Result<std::vector<Token>> prompt_tokens(const Generate& flags, const std::string& text, const Model& model) {
  const bool chats = flags.chat || !flags.system.empty();
  if (!chats && flags.model.chats())
    return fail(
        "--chat-template-file, --chat-template-kwargs and --tools are about conversations: --chat is "
        "missing");
  if (!chats) return model.tokenizer().encode(text, flags.special);
  auto chat = model.chat_template();
  if (!chat) return tl::unexpected(chat.error());
  std::vector<ChatMessage> messages;
  if (!flags.system.empty()) messages.push_back({"system", flags.system});
  messages.push_back({"user", text});
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
  say("{}\n", out.dump(2, ' ', false, ordered_json::error_handler_t::replace));
}

// What was asked, with everything checked that needs no model.
struct Asked {
  std::string text;
  EngineOptions options;
};

Result<Asked> check(const Generate& flags) {
  Asked asked;
  auto sampling = flags.sampling.resolve();
  if (!sampling) return tl::unexpected(sampling.error());
  auto speculation = flags.speculation.resolve();
  if (!speculation) return tl::unexpected(speculation.error());
  auto options = flags.engine.resolve(*speculation);
  if (!options) return tl::unexpected(options.error());
  if (Status right = flags.trace.check(); !right) return tl::unexpected(right.error());
  auto text = prompt_text(flags);
  if (!text) return tl::unexpected(text.error());
  return Asked{std::move(*text), std::move(*options)};
}

void say_how_it_ended(const Generate& flags, const Generation& answer, int context, int trained) {
  if (answer.stop == StopReason::context_full)
    note("[stopped: the context of {} tokens is full; -c makes it larger]\n", context);
  note_beyond_training(answer, trained);
  if (answer.stop == StopReason::cancelled) note("[stopped]\n");
  if (answer.stop == StopReason::timed_out) note("[stopped: {} seconds are over]\n", flags.timeout);
  if (!flags.quiet) note("[{}]\n", summary(answer.stats));
}

Result<int> run(Generate& flags) {
  auto asked = check(flags);
  if (!asked) return tl::unexpected(asked.error());
  auto model = flags.model.load();
  if (!model) return tl::unexpected(model.error());
  auto sampling = flags.sampling.resolve(model->info().vocab);
  if (!sampling) return tl::unexpected(sampling.error());
  auto prompt = prompt_tokens(flags, asked->text, *model);
  if (!prompt) return tl::unexpected(prompt.error());
  auto engine = Engine::make(*model, asked->options);
  if (!engine) return tl::unexpected(engine.error());
  if (const int context = engine->options().context; static_cast<int>(prompt->size()) >= context) {
    return fail(
        fmt::format("the prompt has {} tokens and the context holds {}; shorten it, or -c makes it larger",
                    prompt->size(), context));
  }
  Request request;
  request.prompt = *prompt;
  request.sampling = *sampling;
  request.trace = flags.show.show_tree;
  request.show_special = flags.show.show_special;
  request.timeout_seconds = flags.timeout;
  AnswerPrinter printer(flags.show, model->tokenizer(), engine->sources());
  request.on_event = [&](const Event& event) {
    flags.trace.hear(event);
    return flags.json ? printer.show_silently(event) : printer.show(event);
  };
  catch_interrupts();
  auto answer = engine->generate(request);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->stop == StopReason::failed) return fail(answer->error);
  if (Status written = flags.trace.write(); !written) return tl::unexpected(written.error());
  if (flags.json) {
    clear_progress();
    print_json(*answer, request, *engine, *model);
    flush_out();
  } else {
    printer.finish();
  }
  if (!output_lost()) {
    say_how_it_ended(flags, *answer, engine->options().context, model->info().context_length);
  }
  return answer->stop == StopReason::cancelled ? kInterrupted : kOk;
}

}  // namespace

void add_generate(CLI::App& app, const Choose& choose) {
  auto flags = std::make_shared<Generate>();
  CLI::App* command = app.add_subcommand("generate", "one answer to one prompt");
  flags->model.add(*command);
  flags->model.add_chat(*command);
  command->add_option("-p,--prompt", flags->prompt, "the prompt");
  command->add_option("-f,--file", flags->file, "a file with the prompt; - is stdin");
  command->add_flag("--chat", flags->chat, "the prompt is a user's message: use the model's chat template");
  command->add_option("--system", flags->system, "system message (implies --chat)");
  command->add_flag("--parse-special", flags->special,
                    "control tokens spelled in the prompt become control tokens");
  command->add_flag("--json", flags->json, "token ids, log-probabilities and statistics as JSON");
  command
      ->add_option("--timeout", flags->timeout,
                   "seconds for the answer, which then ends where it is; 0: none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("-q,--quiet", flags->quiet, "no summary line");
  flags->show.add(*command);
  flags->engine.add(*command);
  flags->sampling.add(*command);
  flags->speculation.add(*command);
  flags->trace.add(*command);
  command->callback([flags, choose] { choose([flags] { return run(*flags); }); });
}

}  // namespace coppice::app
