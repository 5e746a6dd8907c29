// coppice bench requests: many people at once. Each way of decoding works under the same constant load
// (closed_loop.h); all take turns of a few passes, whoever is behind first, so that a drifting machine
// favours nobody and all end together.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/benches.h"
#include "bench/closed_loop.h"
#include "bench/contenders.h"
#include "bench/prompts.h"
#include "bench/row_costs.h"
#include "command.h"
#include "options.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

constexpr int kTurn = 8;  // passes
constexpr int kMostAtOnce = 256;

struct Flags {
  ModelFlags model;
  SamplingFlags sampling;
  SpeculationFlags speculation;
  EngineFlags engine;
  PromptFlags prompts;
  ContenderFlags contenders;
  ReportFlags report;
  std::vector<int> at_once{1, 4, 16};
  int rounds = 3;
};

using Texts = std::vector<std::vector<Token>>;  // [prompt]

// One way of decoding under one load, over all rounds.
struct Side {
  std::string name;
  std::vector<double> goodput;                         // tokens a second, of each round
  std::vector<double> speedups;                        // goodput over plain's of the same round
  std::vector<double> priced;                          // the same, by what its passes cost in the table
  std::vector<double> first_token, tokens_per_second;  // of each request
  std::uint64_t tokens = 0, passes = 0, rows = 0;
  Stats stats;   // of the requests that count
  int same = 0;  // answers that were the first seen
};

struct Load {
  int at_once = 1;
  std::vector<Side> sides;  // plain first
};

ordered_json spread_json(const std::vector<double>& values) {
  return {
      {"median", quantile(values, 0.5)}, {"low", quantile(values, 0.25)}, {"high", quantile(values, 0.75)}};
}

class Bench {
 public:
  Bench(const Flags& flags, const Model& model, const RowCosts& costs)
      : flags_(flags), model_(model), costs_(costs) {}

  // Every round under a load; nothing where somebody pressed Ctrl-C.
  Result<std::optional<Load>> run(const std::vector<Entry>& entries, const LoadShape& shape);

 private:
  Status one_round(std::vector<Engine>& engines, const LoadShape& shape, Load& load);
  void add(Side& side, const ClosedLoop& loop);

  const Flags& flags_;
  const Model& model_;
  const RowCosts& costs_;
  Texts texts_;  // as first seen
};

void Bench::add(Side& side, const ClosedLoop& loop) {
  side.goodput.push_back(static_cast<double>(loop.tokens()) / std::max(1e-9, loop.seconds()));
  side.tokens += loop.tokens();
  side.passes += loop.passes();
  side.rows += loop.rows();
  texts_.resize(loop.answers().size());
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    const Answered& answer = loop.answers()[i];
    std::vector<Token> text;
    for (const EmittedToken& token : answer.generation.tokens) text.push_back(token.token);
    if (texts_[i].empty()) texts_[i] = text;
    side.same += text == texts_[i] ? 1 : 0;
    side.stats.add(answer.generation.stats);
    side.first_token.push_back(answer.first_token);
    if (const double rate = answer.tokens_per_second(); rate > 0) side.tokens_per_second.push_back(rate);
  }
}

Status Bench::one_round(std::vector<Engine>& engines, const LoadShape& shape, Load& load) {
  std::vector<std::unique_ptr<ClosedLoop>> loops;
  for (Engine& engine : engines) loops.push_back(std::make_unique<ClosedLoop>(engine, shape, costs_));
  while (!interrupted()) {
    ClosedLoop* behind = nullptr;
    for (const auto& loop : loops)
      if (!loop->done() && (behind == nullptr || loop->tokens() < behind->tokens())) behind = loop.get();
    if (behind == nullptr) break;
    if (Status gone = behind->turn(kTurn); !gone) return gone;
  }
  if (interrupted()) return {};
  const auto priced = [](const ClosedLoop& loop) {
    return static_cast<double>(loop.tokens()) / std::max(1e-12, loop.priced_seconds());
  };
  for (std::size_t who = 0; who < loops.size(); ++who) {
    Side& side = load.sides[who];
    add(side, *loops[who]);
    side.speedups.push_back(side.goodput.back() / load.sides[0].goodput.back());
    side.priced.push_back(priced(*loops[who]) / priced(*loops[0]));
  }
  return {};
}

Result<std::optional<Load>> Bench::run(const std::vector<Entry>& entries, const LoadShape& shape) {
  Load load;
  load.at_once = shape.at_once;
  std::vector<Engine> engines;
  for (const Entry& entry : entries) {
    EngineOptions options = entry.options;
    options.max_requests = shape.at_once;
    auto engine = Engine::make(model_, options);
    if (!engine) return tl::unexpected(engine.error());
    engines.push_back(std::move(*engine));
    load.sides.emplace_back();
    load.sides.back().name = entry.name;
  }
  for (int round = 0; round < flags_.rounds && !interrupted(); ++round) {
    show_progress(fmt::format("{} at once", shape.at_once), static_cast<double>(round) / flags_.rounds,
                  fmt::format("round {} of {}", round + 1, flags_.rounds));
    if (Status done = one_round(engines, shape, load); !done) return tl::unexpected(done.error());
  }
  clear_progress();
  if (interrupted()) return std::nullopt;
  return load;
}

void print_load(const Load& load, std::size_t answers) {
  say("\n{} at once\n{:<28} {:>7} {:>8} {:>15} {:>8} {:>9} {:>8} {:>15} {:>15} {:>11}\n", load.at_once, "",
      "tok/s", "goodput", "", "by rows", "guesses", "tokens", "first token s", "tok/s each", "same text");
  for (const Side& side : load.sides) {
    const bool wide = side.name.size() > 28;
    if (wide) say("{}\n", side.name);
    const double cycles = std::max<double>(1, static_cast<double>(side.stats.cycles));
    say("{:<28} {:>7.1f} {:>7.2f}x {:>15} {:>7.2f}x {:>9.2f} {:>8.2f} {:>15} {:>15} {:>11}\n",
        wide ? "" : side.name, median(side.goodput), median(side.speedups),
        fmt::format("{:.2f}-{:.2f}", quantile(side.speedups, 0.25), quantile(side.speedups, 0.75)),
        median(side.priced), static_cast<double>(side.stats.guesses) / cycles, side.stats.tokens_per_pass(),
        fmt::format("{:.2f} / {:.2f}", quantile(side.first_token, 0.5), quantile(side.first_token, 0.95)),
        fmt::format("{:.1f} / {:.1f}", quantile(side.tokens_per_second, 0.5),
                    quantile(side.tokens_per_second, 0.05)),
        fmt::format("{}/{}", side.same, answers));
  }
  flush_out();
}

ordered_json percentiles(const std::vector<double>& values) {
  ordered_json out;
  for (const int percent : {5, 25, 50, 75, 95, 99})
    out[fmt::format("p{}", percent)] = quantile(values, percent / 100.0);
  return out;
}

ordered_json load_json(const Load& load) {
  ordered_json sides = ordered_json::array();
  for (const Side& side : load.sides) {
    const auto per = [](std::uint64_t a, std::uint64_t b) {
      return b > 0 ? static_cast<double>(a) / static_cast<double>(b) : 0;
    };
    sides.push_back({{"name", side.name},
                     {"goodput", spread_json(side.goodput)},
                     {"goodput_over_plain", spread_json(side.speedups)},
                     {"rounds", side.speedups},
                     {"priced_over_plain", spread_json(side.priced)},
                     {"guesses_per_request_and_pass", per(side.stats.guesses, side.stats.cycles)},
                     {"tokens_per_request_and_pass", side.stats.tokens_per_pass()},
                     {"tokens", side.tokens},
                     {"passes", side.passes},
                     {"rows_per_pass", per(side.rows, side.passes)},
                     {"first_token_seconds", percentiles(side.first_token)},
                     {"request_tokens_per_second", percentiles(side.tokens_per_second)},
                     {"same_text", side.same},
                     {"stats", ordered_json::parse(stats_json(side.stats))}});
  }
  return {{"at_once", load.at_once}, {"sides", sides}};
}

// What was asked, with everything checked that needs no model.
struct Plan {
  std::vector<Entry> entries;
  std::vector<std::string> prompts;
  Sampling sampling;
};

Result<Plan> make_plan(const Flags& flags) {
  Plan plan;
  auto sampling = flags.sampling.resolve();
  if (!sampling) return tl::unexpected(sampling.error());
  plan.sampling = *sampling;
  auto entries = flags.contenders.read(flags.speculation, flags.engine);
  if (!entries) return tl::unexpected(entries.error());
  plan.entries = std::move(*entries);
  if (Status right = flags.report.check({flags.prompts.path}); !right) return tl::unexpected(right.error());
  auto prompts = flags.prompts.read();
  if (!prompts) return tl::unexpected(prompts.error());
  plan.prompts = std::move(*prompts);
  return plan;
}

// Where no context was asked for: what the longest prompt needs, for there are many caches.
int context_for(const Flags& flags, const Model& model, const Texts& prompts) {
  if (flags.engine.context > 0) return flags.engine.context;
  std::size_t longest = 0;
  for (const auto& prompt : prompts) longest = std::max(longest, prompt.size());
  return std::min(model.info().context_length,
                  static_cast<int>(longest) + flags.sampling.sampling.max_tokens + 1);
}

// Every load; false: a text differed.
Result<bool> run_loads(const Flags& flags, Bench& bench, const std::vector<Entry>& entries, LoadShape shape,
                       ordered_json& report) {
  bool all_same = true;
  for (const int at_once : flags.at_once) {
    shape.at_once = at_once;
    auto load = bench.run(entries, shape);
    if (!load) return tl::unexpected(load.error());
    if (!*load) break;
    const std::size_t answers = shape.prompts.size() * static_cast<std::size_t>(flags.rounds);
    if (report["loads"].empty())
      say("{}, {} prompts, up to {} tokens each, {} rounds\n", report["model"]["name"].get<std::string>(),
          shape.prompts.size(), shape.sampling.max_tokens, flags.rounds);
    print_load(**load, answers);
    for (const Side& side : (*load)->sides)
      all_same = all_same && static_cast<std::size_t>(side.same) == answers;
    report["loads"].push_back(load_json(**load));
  }
  return all_same;
}

Result<int> run_requests(const Flags& flags) {
  auto plan = make_plan(flags);
  if (!plan) return tl::unexpected(plan.error());
  auto model = flags.model.load();
  if (!model) return tl::unexpected(model.error());
  if (Status right = flags.report.check({model->info().path}); !right) return tl::unexpected(right.error());
  if (auto fits = flags.sampling.resolve(model->info().vocab); !fits) return tl::unexpected(fits.error());
  auto prompts = flags.prompts.tokenise(
      *model, plan->prompts, flags.engine.context > 0 ? flags.engine.context : model->info().context_length);
  if (!prompts) return tl::unexpected(prompts.error());
  for (Entry& entry : plan->entries) entry.options.context = context_for(flags, *model, *prompts);
  const int most = *std::max_element(flags.at_once.begin(), flags.at_once.end());
  const BenchProgress progress = bench_progress();
  auto costs = RowCosts::measure(*model, most * (flags.speculation.speculation.nodes + 1), progress);
  if (!costs) return ended(costs.error());
  clear_progress();
  ordered_json report = {{"model", model_json(model->info())},
                         {"prompts", prompts->size()},
                         {"max_tokens", plan->sampling.max_tokens},
                         {"rounds", flags.rounds},
                         {"row_costs", costs->json()},
                         {"loads", ordered_json::array()}};
  Bench bench(flags, *model, *costs);
  auto all_same = run_loads(flags, bench, plan->entries, {*prompts, plan->sampling, 1}, report);
  if (!all_same) return tl::unexpected(all_same.error());
  if (interrupted()) {
    note("[stopped; a load that was not finished is not shown]\n");
    return kInterrupted;
  }
  if (Status written = flags.report.write("requests", report); !written)
    return tl::unexpected(written.error());
  return judged_texts(*all_same, flags.sampling.acceptance);
}

}  // namespace

void add_requests(CLI::App& bench, const Choose& choose) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = bench.add_subcommand(
      "requests", "many requests at once, plain and with speculation: tokens a second over all, and waits");
  flags->model.add(*command);
  flags->model.add_chat(*command);
  flags->prompts.add(*command);
  command->add_option("--at-once", flags->at_once, "requests in work, one load after the other")
      ->delimiter(',')
      ->check(CLI::Range(1, kMostAtOnce));
  command->add_option("--rounds", flags->rounds, "times that all prompts are answered under each load")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  flags->report.add(*command);
  flags->engine.add(*command);
  flags->sampling.add(*command);
  flags->speculation.add(*command, false);
  flags->contenders.add(*command);
  command->callback([flags, choose] { choose([flags] { return run_requests(*flags); }); });
}

}  // namespace coppice::app
