// coppice chat: a conversation in the terminal.
#include <charconv>
#include <cstdio>
#include <iostream>
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

constexpr const char* kHelp =
    "/help            this list\n"
    "/new             forget the conversation\n"
    "/undo            take back the last question and its answer\n"
    "/again           answer the last question again with the next seed\n"
    "/system TEXT     set the system message and start anew\n"
    "/set NAME VALUE  temperature, top-k, top-p, min-p, seed, max-tokens\n"
    "/stats           what happened so far\n"
    "/save FILE       write the conversation\n"
    "/load FILE       go on with a saved one\n"
    "/quit            leave (Ctrl-D too); Ctrl-C stops an answer\n";

struct Flags {
  ModelFlags model;
  SamplingFlags sampling;
  SpeculationFlags speculation;
  EngineFlags engine;
  ShowFlags show;
  std::string system, load;
  bool quiet = false;
};

constexpr int kFormat = 1;  // of a saved conversation

struct Session {
  std::string model;
  std::vector<ChatMessage> messages;
};

Result<ChatMessage> read_message(const ordered_json& entry) {
  const auto text = [&](const char* key) {
    return entry.is_object() && entry.contains(key) && entry[key].is_string() ? entry[key].get<std::string>()
                                                                              : std::string();
  };
  const ChatMessage message{text("role"), text("content")};
  if (message.role != "system" && message.role != "user" && message.role != "assistant")
    return fail("has no \"role\" that is system, user or assistant");
  if (!entry.contains("content") || !entry["content"].is_string())
    return fail("has no \"content\" that is a text");
  return message;
}

Result<Session> read_session(const std::string& path) {
  auto text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  const ordered_json in = ordered_json::parse(*text, nullptr, false);
  const bool right = in.is_object() && in.contains("messages") && in["messages"].is_array();
  if (!right || in.value("coppice_chat", ordered_json()) != kFormat) {
    return fail(fmt::format(
        "{} is no saved conversation: a JSON object with \"coppice_chat\": {} and \"messages\" is wanted",
        path, kFormat));
  }
  Session session;
  if (in.contains("model") && in["model"].is_string()) session.model = in["model"].get<std::string>();
  for (const auto& entry : in["messages"]) {
    auto message = read_message(entry);
    if (!message) {
      return fail(
          fmt::format("{}: message {} {}", path, session.messages.size() + 1, message.error().message));
    }
    session.messages.push_back(std::move(*message));
  }
  return session;
}

class Chat {
 public:
  Chat(const Flags& flags, Model model, ChatTemplate chat, Engine engine, Sampling sampling)
      : flags_(flags),
        model_(std::move(model)),
        template_(std::move(chat)),
        engine_(std::move(engine)),
        sampling_(std::move(sampling)) {
    restart(flags_.system);
  }

  Status load(const std::string& path);
  Result<int> run();

 private:
  void restart(const std::string& system);
  bool command(const std::string& line);  // false: leave
  Status set(const std::string& rest);
  Status save(const std::string& path) const;
  Status again();
  bool undo();
  Status ask(const std::string& text);
  Status answer();

  Flags flags_;
  Model model_;
  ChatTemplate template_;
  Engine engine_;
  Sampling sampling_;
  std::vector<ChatMessage> messages_;
  Stats total_;
};

void Chat::restart(const std::string& system) {
  messages_.clear();
  if (!system.empty()) messages_.push_back({"system", system});
}

Result<int> Chat::run() {
  catch_interrupts();
  if (stdin_is_terminal()) {
    note("{} ({} layers, {:.0f} M parameters), drafters: {}. /help lists commands.\n", model_.info().name,
         model_.info().layers, static_cast<double>(model_.info().parameters) / 1e6,
         engine_.options().speculation.drafters);
  }
  std::string line;
  while (true) {
    if (stdin_is_terminal()) {
      note("\n> ");
      std::fflush(stderr);
    }
    forget_interrupt();
    if (output_lost()) break;
    if (!std::getline(std::cin, line)) {
      if (!interrupted()) break;  // end of input
      std::cin.clear();           // Ctrl-C at the prompt: the line begins anew
      std::clearerr(stdin);
      note("  (/quit or Ctrl-D leaves)");
      continue;
    }
    if (line.empty()) continue;
    if (line[0] == '/') {
      if (!command(line)) break;
      continue;
    }
    Status asked = ask(line);
    if (!asked) note("coppice: {}\n", asked.error().message);
  }
  return kOk;
}

bool Chat::command(const std::string& line) {
  const auto space = line.find(' ');
  const std::string name = line.substr(1, space == std::string::npos ? std::string::npos : space - 1);
  const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
  Status done;
  if (name == "quit" || name == "exit") return false;
  if (name == "help") {
    note("{}", kHelp);
  } else if (name == "new") {
    restart(flags_.system);
  } else if (name == "undo") {
    if (!undo()) done = fail("there is nothing to take back");
  } else if (name == "again") {
    done = again();
  } else if (name == "system") {
    restart(rest);
  } else if (name == "set") {
    done = set(rest);
  } else if (name == "stats") {
    note("{}\n", summary(total_));
  } else if (name == "save") {
    done = save(rest);
  } else if (name == "load") {
    done = load(rest);
  } else {
    done = fail(fmt::format("there is no command /{}; /help lists them", name));
  }
  if (!done) note("coppice: {}\n", done.error().message);
  return true;
}

bool Chat::undo() {
  if (messages_.empty() || messages_.back().role == "system") return false;
  while (!messages_.empty() && messages_.back().role != "user") messages_.pop_back();
  if (!messages_.empty()) messages_.pop_back();
  return true;
}

Status Chat::again() {
  const std::vector<ChatMessage> before = messages_;
  while (!messages_.empty() && messages_.back().role == "assistant") messages_.pop_back();
  if (messages_.empty() || messages_.back().role != "user") {
    messages_ = before;
    return fail("there is no question to answer again");
  }
  ++sampling_.seed;
  Status answered = answer();
  if (!answered) messages_ = before;
  return answered;
}

// The whole of `text` as a number that `value` can hold; false otherwise.
template <class Number>
bool parse_number(const std::string& text, Number& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

Status Chat::set(const std::string& rest) {
  const auto space = rest.find(' ');
  const std::string name = rest.substr(0, space);
  const std::string text = space == std::string::npos ? "" : rest.substr(space + 1);
  Sampling changed = sampling_;
  bool right = false;
  if (name == "temperature") {
    right = parse_number(text, changed.temperature);
  } else if (name == "top-k") {
    right = parse_number(text, changed.top_k);
  } else if (name == "top-p") {
    right = parse_number(text, changed.top_p);
  } else if (name == "min-p") {
    right = parse_number(text, changed.min_p);
  } else if (name == "seed") {
    right = parse_number(text, changed.seed);
  } else if (name == "max-tokens") {
    right = parse_number(text, changed.max_tokens);
  } else {
    return fail(fmt::format("/set {}: there is temperature, top-k, top-p, min-p, seed and max-tokens", name));
  }
  if (!right) {
    return fail(fmt::format("/set {}: \"{}\" is not a number it can be; /set temperature 0.7 would be right",
                            name, text));
  }
  Status valid = changed.validate(model_.info().vocab);
  if (!valid) return fail("/set " + name_the_option(valid.error()).message.substr(2));
  sampling_ = changed;
  return {};
}

Status Chat::save(const std::string& path) const {
  if (path.empty()) return fail("/save wants a file name");
  if (Status kept = keep_inputs(path, {model_.info().path}); !kept) return kept;
  ordered_json messages = ordered_json::array();
  for (const ChatMessage& m : messages_) messages.push_back({{"role", m.role}, {"content", m.content}});
  const ordered_json out = {{"coppice_chat", kFormat}, {"model", model_.info().name}, {"messages", messages}};
  Status written = write_text(path, out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  if (written) note("[saved {} messages to {}]\n", messages_.size(), path);
  return written;
}

Status Chat::load(const std::string& path) {
  if (path.empty()) return fail("/load wants a file name");
  auto session = read_session(path);
  if (!session) return tl::unexpected(session.error());
  messages_ = std::move(session->messages);
  if (!session->model.empty() && session->model != model_.info().name)
    note("[this conversation was held with {}, not {}]\n", session->model, model_.info().name);
  for (const ChatMessage& m : messages_) {
    if (m.role != "system") note("{}{}\n", m.role == "user" ? "> " : "", m.content);
  }
  return {};
}

Status Chat::ask(const std::string& text) {
  messages_.push_back({"user", text});
  Status answered = answer();
  if (!answered) messages_.pop_back();
  return answered;
}

Status Chat::answer() {
  auto prompt = template_.tokens(messages_);
  if (!prompt) return tl::unexpected(prompt.error());
  const int context = engine_.options().context;
  if (static_cast<int>(prompt->size()) >= context) {
    return fail(
        fmt::format("the conversation has {} tokens and the context holds {}, so this was not asked: /new "
                    "starts anew, /undo makes it shorter, -c makes the context larger",
                    prompt->size(), context));
  }
  Request request;
  request.prompt = std::move(*prompt);
  request.sampling = sampling_;
  request.trace = flags_.show.show_tree;
  request.show_special = flags_.show.show_special;
  AnswerPrinter printer(flags_.show, model_.tokenizer(), engine_.sources());
  request.on_event = [&](const Event& event) { return printer.show(event); };
  auto generation = engine_.generate(request);
  if (!generation) return tl::unexpected(generation.error());
  printer.finish();
  if (generation->stop == StopReason::failed) return fail(generation->error);
  if (generation->stop == StopReason::context_full) {
    note("[stopped: the context of {} tokens is full; /new starts anew, -c makes it larger]\n", context);
  } else if (generation->stop == StopReason::max_tokens) {
    note("[stopped after {} tokens; /set max-tokens allows more]\n", generation->tokens.size());
  } else if (generation->stop == StopReason::cancelled) {
    note("[stopped]\n");
  }
  note_beyond_training(*generation, model_.info().context_length);
  if (!flags_.quiet) note("[{}]\n", summary(generation->stats));
  total_.add(generation->stats);
  messages_.push_back({"assistant", generation->text});
  return {};
}

Result<int> run(const Flags& flags) {
  auto speculation = flags.speculation.resolve();
  if (!speculation) return tl::unexpected(speculation.error());
  auto options = flags.engine.resolve(*speculation);
  if (!options) return tl::unexpected(options.error());
  if (auto early = flags.sampling.resolve(); !early) return tl::unexpected(early.error());
  auto model = flags.model.load();
  if (!model) return tl::unexpected(model.error());
  auto chat = model->chat_template();
  if (!chat) return tl::unexpected(chat.error());
  auto sampling = flags.sampling.resolve(model->info().vocab);
  if (!sampling) return tl::unexpected(sampling.error());
  auto engine = Engine::make(*model, *options);
  if (!engine) return tl::unexpected(engine.error());
  Chat session(flags, *model, std::move(*chat), std::move(*engine), std::move(*sampling));
  if (!flags.load.empty()) {
    Status loaded = session.load(flags.load);
    if (!loaded) return tl::unexpected(loaded.error());
  }
  return session.run();
}

}  // namespace

void add_chat(CLI::App& app, const Choose& choose) {
  auto flags = std::make_shared<Flags>();
  flags->sampling.sampling.max_tokens = 1024;
  CLI::App* command = app.add_subcommand("chat", "a conversation in the terminal");
  flags->model.add(*command);
  flags->model.add_chat(*command);
  command->add_option("--system", flags->system, "system message");
  command->add_option("--load", flags->load, "go on with a saved conversation");
  command->add_flag("-q,--quiet", flags->quiet, "no summary lines");
  flags->show.add(*command);
  flags->engine.add(*command);
  flags->sampling.add(*command);
  flags->speculation.add(*command);
  command->callback([flags, choose] { choose([flags] { return run(*flags); }); });
}

}  // namespace coppice::app
