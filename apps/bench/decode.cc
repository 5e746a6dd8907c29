// coppice bench decode: the same prompts plain and with speculation, alternated in one run: how much faster,
// and is the text the same.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "answer.h"
#include "bench/benches.h"
#include "bench/contenders.h"
#include "bench/prompts.h"
#include "command.h"
#include "files.h"
#include "options.h"
#include "policy_trace.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

struct Flags {
  ModelFlags model;
  SamplingFlags sampling;
  SpeculationFlags speculation;
  EngineFlags engine;
  PromptFlags prompts;
  ReportFlags report;
  ContenderFlags contenders;
  PolicyTrace trace;
  std::vector<std::string> modes{"greedy"};
  int repeat = 1;
};

struct Mode {
  std::string name;
  Sampling sampling;
};

// One way of decoding over all prompts.
struct Side {
  std::string name;
  Stats stats;
  int same = 0;                  // prompts whose text was the plain one
  std::vector<double> speedups;  // over plain, of each prompt and repeat
};

struct Outcome {
  Mode mode;
  std::vector<Side> sides;  // plain first
  int prompts = 0;
};

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

// One way of decoding.
struct Contender {
  std::string name;
  Engine engine;
};

class Bench {
 public:
  Bench(Flags& flags, std::vector<Contender> contenders)
      : flags_(flags), contenders_(std::move(contenders)) {}

  Result<Outcome> run(const Mode& mode, std::span<const std::vector<Token>> prompts);

 private:
  Status one_prompt(const Mode& mode, const std::vector<Token>& prompt, std::size_t number, int repeat,
                    Outcome& out);

  Flags& flags_;
  std::vector<Contender> contenders_;  // plain first
};

// `trace` is told of each decision, by the name of who made it and the prompt's number.
Result<Generation> answer_one(Contender& contender, const std::vector<Token>& prompt, const Mode& mode,
                              std::size_t number, PolicyTrace& trace) {
  Request request;
  request.prompt = prompt;
  request.sampling = mode.sampling;
  request.sampling.stream = static_cast<std::uint32_t>(number);
  const std::string name = fmt::format("{}, {}, prompt {}", contender.name, mode.name, number + 1);
  request.on_event = [&](const Event& event) {
    trace.hear(event, name);
    return !interrupted();
  };
  auto answer = contender.engine.generate(request);
  if (answer && answer->stop == StopReason::failed) return fail(answer->error);
  return answer;
}

bool same(const Generation& a, const Generation& b) {
  return a.tokens.size() == b.tokens.size() && a.text == b.text &&
         std::equal(a.tokens.begin(), a.tokens.end(), b.tokens.begin(),
                    [](const EmittedToken& x, const EmittedToken& y) { return x.token == y.token; });
}

// Everybody answers; who begins rotates, so that a drifting machine favours nobody.
Status Bench::one_prompt(const Mode& mode, const std::vector<Token>& prompt, std::size_t number, int repeat,
                         Outcome& out) {
  std::vector<std::optional<Generation>> answers(contenders_.size());
  for (std::size_t k = 0; k < contenders_.size(); ++k) {
    const std::size_t who = (k + number + static_cast<std::size_t>(repeat)) % contenders_.size();
    auto answer = answer_one(contenders_[who], prompt, mode, number, flags_.trace);
    if (!answer) return tl::unexpected(answer.error());
    answers[who] = std::move(*answer);
  }
  for (std::size_t who = 0; who < contenders_.size(); ++who) {
    Side& side = out.sides[who];
    side.stats.add(answers[who]->stats);
    if (repeat == 0 && same(*answers[0], *answers[who])) ++side.same;
    side.speedups.push_back(answers[0]->stats.decode_seconds /
                            std::max(1e-9, answers[who]->stats.decode_seconds));
  }
  return {};
}

Result<Outcome> Bench::run(const Mode& mode, std::span<const std::vector<Token>> prompts) {
  Outcome out;
  out.mode = mode;
  out.prompts = static_cast<int>(prompts.size());
  for (const Contender& contender : contenders_) {
    out.sides.emplace_back();
    out.sides.back().name = contender.name;
  }
  for (int repeat = 0; repeat < flags_.repeat; ++repeat) {
    for (std::size_t i = 0; i < prompts.size() && !interrupted(); ++i) {
      const double done =
          static_cast<double>(repeat) * static_cast<double>(prompts.size()) + static_cast<double>(i);
      show_progress(mode.name, done / (static_cast<double>(prompts.size()) * flags_.repeat),
                    fmt::format("{} of {}", i + 1, prompts.size()));
      Status answered = one_prompt(mode, prompts[i], i, repeat, out);
      if (!answered) return tl::unexpected(answered.error());
    }
  }
  clear_progress();
  return out;
}

void print_header() {
  say("{:<14} {:<20} {:>7} {:>9} {:>12} {:>11} {:>9} {:>10} {:>10}\n", "", "", "tok/s", "speed-up",
      "tokens/pass", "passes/tok", "accepted", "bytes/tok", "same text");
  flush_out();
}

// A name that would break the table stands on a line of its own.
void print_outcome(const Outcome& out) {
  const double plain_bytes = out.sides[0].stats.bytes_per_token();
  for (std::size_t who = 0; who < out.sides.size(); ++who) {
    const Side& side = out.sides[who];
    const double per_pass = side.stats.tokens_per_pass();
    const bool wide = side.name.size() > 20;
    if (wide) say("{:<14} {}\n", who == 0 ? out.mode.name : "", side.name);
    say("{:<14} {:<20} {:>7.1f} {:>8.2f}x {:>12.2f} {:>11.2f} {:>9.2f} {:>10.2f} {:>10}\n",
        who == 0 ? out.mode.name : "", wide ? "" : side.name, side.stats.tokens_per_second(),
        median(side.speedups), per_pass, per_pass > 0 ? 1 / per_pass : 0, side.stats.mean_accepted(),
        plain_bytes > 0 ? side.stats.bytes_per_token() / plain_bytes : 0,
        fmt::format("{}/{}", side.same, out.prompts));
  }
}

ordered_json outcome_json(const Outcome& out) {
  ordered_json sides = ordered_json::array();
  for (const Side& side : out.sides) {
    sides.push_back({{"name", side.name},
                     {"same_text", side.same},
                     {"median_speedup", median(side.speedups)},
                     {"speedups", side.speedups},
                     {"stats", ordered_json::parse(stats_json(side.stats))}});
  }
  return {{"mode", out.mode.name}, {"prompts", out.prompts}, {"sides", sides}};
}

// What was asked, with everything checked that needs no model.
struct Plan {
  std::vector<Mode> modes;
  std::vector<std::string> prompts;
  std::vector<Entry> entries;  // plain first
};

Result<Plan> make_plan(const Flags& flags) {
  auto modes = read_modes(flags);
  if (!modes) return tl::unexpected(modes.error());
  auto entries = flags.contenders.read(flags.speculation, flags.engine);
  if (!entries) return tl::unexpected(entries.error());
  if (Status right = flags.report.check({flags.prompts.path}); !right) return tl::unexpected(right.error());
  if (Status right = flags.trace.check(); !right) return tl::unexpected(right.error());
  auto prompts = flags.prompts.read();
  if (!prompts) return tl::unexpected(prompts.error());
  return Plan{std::move(*modes), std::move(*prompts), std::move(*entries)};
}

Result<std::vector<Contender>> make_contenders(const std::vector<Entry>& entries, const Model& model) {
  std::vector<Contender> contenders;
  for (const Entry& entry : entries) {
    auto engine = Engine::make(model, entry.options);
    if (!engine) return tl::unexpected(engine.error());
    contenders.push_back({entry.name, std::move(*engine)});
  }
  return contenders;
}

// Runs every mode; false: a text differed.
Result<bool> run_modes(const std::vector<Mode>& modes, Bench& bench,
                       std::span<const std::vector<Token>> prompts, ordered_json& report) {
  bool all_same = true;
  for (const Mode& mode : modes) {
    auto outcome = bench.run(mode, prompts);
    if (!outcome) return tl::unexpected(outcome.error());
    if (interrupted()) break;
    print_outcome(*outcome);
    flush_out();
    for (const Side& side : outcome->sides) all_same = all_same && side.same == outcome->prompts;
    report["modes"].push_back(outcome_json(*outcome));
  }
  return all_same;
}

Result<int> run_decode(Flags& flags) {
  auto plan = make_plan(flags);
  if (!plan) return tl::unexpected(plan.error());
  auto model = flags.model.load();
  if (!model) return tl::unexpected(model.error());
  if (Status right = flags.report.check({model->info().path}); !right) return tl::unexpected(right.error());
  if (auto fits = flags.sampling.resolve(model->info().vocab); !fits) return tl::unexpected(fits.error());
  auto contenders = make_contenders(plan->entries, *model);
  if (!contenders) return tl::unexpected(contenders.error());
  auto tokens = flags.prompts.tokenise(*model, plan->prompts, contenders->front().engine.options().context);
  if (!tokens) return tl::unexpected(tokens.error());
  catch_interrupts();
  const ordered_json machine = ordered_json::parse(system_info());
  say("{}, {} prompts, up to {} tokens each, trees of {} nodes\n{}, {} threads\n\n", model->info().name,
      tokens->size(), flags.sampling.sampling.max_tokens, flags.speculation.speculation.nodes,
      machine["cpu"].get<std::string>(),
      flags.model.threads > 0 ? flags.model.threads : machine["cores"].get<int>());
  print_header();
  Bench bench(flags, std::move(*contenders));
  ordered_json report = {{"model", model->info().name},
                         {"nodes", flags.speculation.speculation.nodes},
                         {"modes", ordered_json::array()}};
  auto all_same = run_modes(plan->modes, bench, *tokens, report);
  if (!all_same) return tl::unexpected(all_same.error());
  if (interrupted()) {
    note("[stopped; a mode that was not finished is not shown]\n");
    return kInterrupted;
  }
  if (Status written = flags.report.write("decode", report); !written) return tl::unexpected(written.error());
  if (Status written = flags.trace.write(); !written) return tl::unexpected(written.error());
  return judged_texts(*all_same, flags.sampling.acceptance);
}

}  // namespace

void add_decode(CLI::App& bench, const Choose& choose) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      bench.add_subcommand("decode", "the same prompts plain and with speculation: speed, and same text");
  flags->model.add(*command);
  flags->model.add_chat(*command);
  flags->prompts.add(*command);
  command->add_option("--modes", flags->modes, "greedy, top-k (50, T=1), asked (the sampling options)")
      ->delimiter(',');
  command->add_option("--repeat", flags->repeat, "alternated pairs of each prompt")
      ->check(CLI::Range(1, 1000));
  flags->report.add(*command);
  flags->engine.add(*command);
  flags->sampling.add(*command);
  flags->speculation.add(*command, false);
  flags->contenders.add(*command);
  flags->trace.add(*command);
  command->callback([flags, choose] { choose([flags] { return run_decode(*flags); }); });
}

}  // namespace coppice::app
