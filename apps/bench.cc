// coppice bench decode: the same prompts plain and with speculation, alternated in one run: how much faster,
// and is the text the same.
#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "answer.h"
#include "command.h"
#include "options.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

struct Flags {
  ModelFlags model;
  SamplingFlags sampling;
  SpeculationFlags speculation;
  EngineFlags engine;
  std::string prompts, instruction, json;
  std::vector<std::string> modes{"greedy"};
  int limit = 0, repeat = 1;
  bool chat = false;
};

struct Mode {
  std::string name;
  Sampling sampling;
};

// One way of decoding over all prompts.
struct Side {
  Stats stats;
  std::vector<double> seconds;  // per repeat
};

struct Outcome {
  Mode mode;
  Side plain, staged;
  int same = 0, prompts = 0;
  std::vector<double> speedups;  // of each prompt and repeat
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// A line of JSON: "prompt", the first of "turns", "question" or "text".
std::string prompt_of(const ordered_json& line) {
  for (const char* key : {"prompt", "question", "text"}) {
    if (line.contains(key) && line[key].is_string()) return line[key].get<std::string>();
  }
  if (line.contains("turns") && line["turns"].is_array() && !line["turns"].empty() &&
      line["turns"][0].is_string()) {
    return line["turns"][0].get<std::string>();
  }
  return {};
}

Result<std::vector<std::string>> read_prompts(const std::string& path, int limit) {
  auto text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  std::vector<std::string> prompts;
  std::size_t begin = 0;
  for (int number = 1; begin < text->size(); ++number) {
    const std::size_t end = std::min(text->find('\n', begin), text->size());
    const std::string line = text->substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const ordered_json json = ordered_json::parse(line, nullptr, false);
    const std::string prompt = json.is_object() ? prompt_of(json) : "";
    if (prompt.empty()) {
      return fail(fmt::format(
          "{} line {}: a JSON object with \"prompt\", \"turns\", \"question\" or \"text\" is wanted", path,
          number));
    }
    prompts.push_back(prompt);
  }
  if (prompts.empty()) return fail(fmt::format("{} has no prompts", path));
  const std::size_t wanted =
      limit > 0 ? std::min<std::size_t>(static_cast<std::size_t>(limit), prompts.size()) : prompts.size();
  std::vector<std::string> spread;  // over the whole set
  for (std::size_t i = 0; i < wanted; ++i) spread.push_back(prompts[i * prompts.size() / wanted]);
  return spread;
}

Result<std::vector<Mode>> read_modes(const Flags& flags) {
  auto base = flags.sampling.resolve();
  if (!base) return tl::unexpected(base.error());
  std::vector<Mode> modes;
  for (const std::string& name : flags.modes) {
    Mode mode{name, *base};
    if (name == "greedy") {
      mode.sampling.temperature = 0;
    } else if (name == "top-k") {
      mode = {"top-k 50, T=1", *base};
      mode.sampling.temperature = 1;
      mode.sampling.top_k = 50;
    } else if (name == "asked") {
      mode.name = "as asked";
    } else {
      return fail(fmt::format(
          "--modes {}: there is greedy, top-k (50 at temperature 1) and asked (the sampling options)", name));
    }
    modes.push_back(mode);
  }
  return modes;
}

class Bench {
 public:
  Bench(const Flags& flags, Model model, Engine plain, Engine staged)
      : flags_(flags), model_(std::move(model)), plain_(std::move(plain)), staged_(std::move(staged)) {}

  Result<Outcome> run(const Mode& mode, std::span<const std::vector<Token>> prompts);
  const Engine& staged() const { return staged_; }

 private:
  Result<Generation> once(Engine& engine, const std::vector<Token>& prompt, const Mode& mode,
                          std::size_t number, Side& side);
  static bool same(const Generation& a, const Generation& b);

  const Flags& flags_;
  Model model_;
  Engine plain_, staged_;
};

Result<Generation> Bench::once(Engine& engine, const std::vector<Token>& prompt, const Mode& mode,
                               std::size_t number, Side& side) {
  Request request;
  request.prompt = prompt;
  request.sampling = mode.sampling;
  request.sampling.stream = static_cast<std::uint32_t>(number);
  request.on_event = [](const Event&) { return !interrupted(); };
  auto answer = engine.generate(request);
  if (!answer) return answer;
  if (answer->stop == StopReason::failed) return fail(answer->error);
  side.stats.add(answer->stats);
  return answer;
}

bool Bench::same(const Generation& a, const Generation& b) {
  return a.tokens.size() == b.tokens.size() && a.text == b.text &&
         std::equal(a.tokens.begin(), a.tokens.end(), b.tokens.begin(),
                    [](const EmittedToken& x, const EmittedToken& y) { return x.token == y.token; });
}

Result<Outcome> Bench::run(const Mode& mode, std::span<const std::vector<Token>> prompts) {
  Outcome outcome;
  outcome.mode = mode;
  outcome.prompts = static_cast<int>(prompts.size());
  for (int repeat = 0; repeat < flags_.repeat; ++repeat) {
    for (std::size_t i = 0; i < prompts.size() && !interrupted(); ++i) {
      show_progress(mode.name,
                    (static_cast<double>(repeat) * prompts.size() + i) / (prompts.size() * flags_.repeat),
                    fmt::format("{} of {}", i + 1, prompts.size()));
      // Which goes first alternates, so that a drifting machine favours neither.
      const bool plain_first = (i + static_cast<std::size_t>(repeat)) % 2 == 0;
      Result<Generation> plain = fail(""), staged = fail("");
      if (plain_first) plain = once(plain_, prompts[i], mode, i, outcome.plain);
      staged = once(staged_, prompts[i], mode, i, outcome.staged);
      if (!plain_first) plain = once(plain_, prompts[i], mode, i, outcome.plain);
      if (!plain) return tl::unexpected(plain.error());
      if (!staged) return tl::unexpected(staged.error());
      if (repeat == 0 && same(*plain, *staged)) ++outcome.same;
      outcome.speedups.push_back(plain->stats.decode_seconds / std::max(1e-9, staged->stats.decode_seconds));
    }
  }
  clear_progress();
  return outcome;
}

void print_outcome(const Outcome& outcome) {
  const Stats& p = outcome.plain.stats;
  const Stats& s = outcome.staged.stats;
  const double bytes = p.bytes_per_token() > 0 ? s.bytes_per_token() / p.bytes_per_token() : 0;
  fmt::print("{:<16} {:<12} {:>8.1f} {:>8.2f}x {:>13.2f} {:>13.2f} {:>10.2f} {:>11}\n", outcome.mode.name,
             "plain", p.tokens_per_second(), 1.0, 1.0, 0.0, 1.0, "");
  fmt::print("{:<16} {:<12} {:>8.1f} {:>8.2f}x {:>13.2f} {:>13.2f} {:>10.2f} {:>11}\n", "", "speculative",
             s.tokens_per_second(), median(outcome.speedups), s.tokens_per_pass(), s.mean_accepted(), bytes,
             fmt::format("{}/{}", outcome.same, outcome.prompts));
}

ordered_json outcome_json(const Outcome& outcome) {
  return {{"mode", outcome.mode.name},
          {"prompts", outcome.prompts},
          {"same_text", outcome.same},
          {"median_speedup", median(outcome.speedups)},
          {"plain", ordered_json::parse(stats_json(outcome.plain.stats))},
          {"speculative", ordered_json::parse(stats_json(outcome.staged.stats))}};
}

Result<std::vector<std::vector<Token>>> tokenise(const Flags& flags, const Model& model,
                                                 std::span<const std::string> prompts, int context) {
  std::vector<std::vector<Token>> out;
  std::optional<ChatTemplate> chat;
  if (flags.chat) {
    auto made = model.chat_template();
    if (!made) return tl::unexpected(made.error());
    chat = *made;
  }
  for (const std::string& prompt : prompts) {
    std::string text = prompt;
    if (!flags.instruction.empty()) {
      const auto hole = flags.instruction.find("{}");
      text = hole == std::string::npos
                 ? flags.instruction + prompt
                 : flags.instruction.substr(0, hole) + prompt + flags.instruction.substr(hole + 2);
    }
    if (chat) {
      const ChatMessage message[] = {{"user", text}};
      auto tokens = chat->tokens(message);
      if (!tokens) return tl::unexpected(tokens.error());
      out.push_back(*tokens);
    } else {
      out.push_back(model.tokenizer().encode(text));
    }
    if (static_cast<int>(out.back().size()) >= context) {
      return fail(fmt::format("prompt {} has {} tokens; the context of {} cannot hold it", out.size(),
                              out.back().size(), context));
    }
  }
  return out;
}

Result<int> run_decode(const Flags& flags) {
  auto modes = read_modes(flags);
  if (!modes) return tl::unexpected(modes.error());
  auto prompts = read_prompts(flags.prompts, flags.limit);
  if (!prompts) return tl::unexpected(prompts.error());
  auto model = flags.model.load();
  if (!model) return tl::unexpected(model.error());
  Speculation speculation = flags.speculation.resolve();
  auto options = flags.engine.resolve(speculation);
  if (!options) return tl::unexpected(options.error());
  auto staged = Engine::make(*model, *options);
  if (!staged) return tl::unexpected(staged.error());
  options->speculation = Speculation{};
  options->speculation.drafters = "none";
  auto plain = Engine::make(*model, *options);
  if (!plain) return tl::unexpected(plain.error());
  auto tokens = tokenise(flags, *model, *prompts, plain->options().context);
  if (!tokens) return tl::unexpected(tokens.error());
  catch_interrupts();
  const ordered_json machine = ordered_json::parse(system_info());
  fmt::print("{}, {} prompts, up to {} tokens each, drafters: {}, trees of {} nodes\n{}, {} threads\n\n",
             model->info().name, tokens->size(), flags.sampling.sampling.max_tokens, speculation.drafters,
             speculation.nodes, machine["cpu"].get<std::string>(),
             flags.model.threads > 0 ? flags.model.threads : machine["cores"].get<int>());
  fmt::print("{:<16} {:<12} {:>8} {:>9} {:>13} {:>13} {:>10} {:>11}\n", "", "", "tok/s", "speed-up",
             "tokens/pass", "mean accepted", "bytes/tok", "same text");
  Bench bench(flags, *model, std::move(*plain), std::move(*staged));
  ordered_json report = {{"model", model->info().name},
                         {"drafters", speculation.drafters},
                         {"nodes", speculation.nodes},
                         {"machine", machine},
                         {"modes", ordered_json::array()}};
  bool all_same = true;
  for (const Mode& mode : *modes) {
    auto outcome = bench.run(mode, *tokens);
    if (!outcome) return tl::unexpected(outcome.error());
    if (interrupted()) return kInterrupted;
    print_outcome(*outcome);
    all_same = all_same && outcome->same == outcome->prompts;
    report["modes"].push_back(outcome_json(*outcome));
  }
  if (!flags.json.empty()) {
    std::ofstream file(flags.json, std::ios::binary);
    file << report.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
    if (!file.flush()) return fail(fmt::format("cannot write {}", flags.json));
  }
  if (!all_same && flags.sampling.acceptance == "keyed") {
    fmt::print(stderr, "coppice: the text differs; that breaks our first law and is a bug of ours\n");
    return kDiffers;
  }
  return kOk;
}

}  // namespace

void add_bench(CLI::App& app, const Choose& choose) {
  CLI::App* bench = app.add_subcommand("bench", "measure");
  bench->require_subcommand(1);
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      bench->add_subcommand("decode", "the same prompts plain and with speculation: speed, and same text");
  flags->model.add(*command);
  command
      ->add_option("--prompts", flags->prompts,
                   "JSON lines with \"prompt\", \"turns\", \"question\" or \"text\"")
      ->required();
  command->add_option("--limit", flags->limit, "prompts, spread over the set; 0: all");
  command->add_option("--instruction", flags->instruction, "text around each prompt, which stands at {}");
  command->add_flag("--chat", flags->chat, "prompts are a user's messages");
  command->add_option("--modes", flags->modes, "greedy, top-k (50, T=1), asked (the sampling options)")
      ->delimiter(',');
  command->add_option("--repeat", flags->repeat, "alternated pairs of each prompt")
      ->check(CLI::Range(1, 1000));
  command->add_option("--json", flags->json, "write the figures to this file");
  flags->engine.add(*command);
  flags->sampling.add(*command);
  flags->speculation.add(*command);
  command->callback([flags, choose] { choose([flags] { return run_decode(*flags); }); });
}

}  // namespace coppice::app
