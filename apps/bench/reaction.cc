// coppice bench reaction: how soon speculation follows a text that changes. The answer is given, so that
// every way of decoding meets the same turn at the same token: from a line that repeats to tokens without any
// order, and the reverse.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "bench/benches.h"
#include "bench/contenders.h"
#include "command.h"
#include "options.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

constexpr int kPeriod = 12;     // tokens of the line that repeats
constexpr int kWindow = 16;     // tokens that are timed together
constexpr int kAllowed = 32;    // tokens until speed must be back
constexpr double kBack = 0.95;  // of the speed it should have

struct Flags {
  ModelFlags model;
  SpeculationFlags speculation;
  EngineFlags engine;
  ContenderFlags contenders;
  ReportFlags report;
  int half = 128, rounds = 7;
  unsigned seed = 0;
};

// One direction: what is read, and the answer, which turns after `half` tokens.
struct Turn {
  std::string name;
  std::vector<Token> prompt, answer;
  bool to_order = false;  // from no order to the line that repeats
};

// One way of decoding on one turn, over all rounds.
struct Side {
  std::string name;
  std::vector<std::vector<double>> speedups;  // [window][round], over plain
  // [round]: behind kAllowed tokens, over plain; where order begins, over its own later speed
  std::vector<double> back;
  Stats stats;
  int same = 0;
};

std::vector<Token> random_tokens(const Tokenizer& tokenizer, int count, std::mt19937& random) {
  std::vector<Token> tokens;
  while (static_cast<int>(tokens.size()) < count) {
    const auto token = static_cast<Token>(random() % static_cast<unsigned>(tokenizer.size()));
    if (!tokenizer.ends_text(token) && !tokenizer.decode({&token, 1}).empty()) tokens.push_back(token);
  }
  return tokens;
}

std::vector<Turn> make_turns(const Tokenizer& tokenizer, int half, unsigned seed) {
  std::mt19937 random(seed);
  const std::vector<Token> line = random_tokens(tokenizer, kPeriod, random);
  const std::vector<Token> noise = random_tokens(tokenizer, half + kPeriod, random);
  std::vector<Token> order;
  for (int i = 0; i < half; ++i) order.push_back(line[static_cast<std::size_t>(i % kPeriod)]);
  Turn away{"from order to none", line, order, false};
  away.answer.insert(away.answer.end(), noise.begin(), noise.begin() + half);
  Turn back{
      "from none to order", {noise.begin() + half, noise.end()}, {noise.begin(), noise.begin() + half}, true};
  back.answer.insert(back.answer.end(), order.begin(), order.end());
  return {away, back};
}

// When each token came, in seconds from the first pass that brought one; what a pass brought is spread
// evenly.
class Arrivals {
 public:
  void hear(const Event& event) {
    if (event.tokens.empty()) return;
    const double now = clock_seconds();
    const double before = times_.empty() ? now : times_.back();
    const auto count = static_cast<double>(event.tokens.size());
    for (std::size_t i = 1; i <= event.tokens.size(); ++i)
      times_.push_back(before + (now - before) * static_cast<double>(i) / count);
  }
  int count() const { return static_cast<int>(times_.size()); }
  // Seconds from token `begin` to token `end`.
  double seconds(int begin, int end) const {
    return times_[static_cast<std::size_t>(end - 1)] -
           times_[static_cast<std::size_t>(std::max(begin - 1, 0))];
  }

 private:
  std::vector<double> times_;
};

class Bench {
 public:
  Bench(const Flags& flags, std::vector<Engine>& engines) : flags_(flags), engines_(engines) {}

  Result<std::vector<Side>> run(const Turn& turn, const std::vector<Entry>& entries) {
    std::vector<Side> sides;
    for (const Entry& entry : entries) {
      sides.emplace_back();
      sides.back().name = entry.name;
      sides.back().speedups.resize(turn.answer.size() / kWindow);
    }
    for (int round = 0; round < flags_.rounds && !interrupted(); ++round) {
      show_progress(turn.name, static_cast<double>(round) / flags_.rounds,
                    fmt::format("round {} of {}", round + 1, flags_.rounds));
      if (Status done = one_round(turn, round, sides); !done) return tl::unexpected(done.error());
    }
    clear_progress();
    return sides;
  }

 private:
  Status one_round(const Turn& turn, int round, std::vector<Side>& sides) {
    std::vector<Arrivals> arrivals(engines_.size());
    for (std::size_t k = 0; k < engines_.size(); ++k) {
      const std::size_t who = (k + static_cast<std::size_t>(round)) % engines_.size();
      Request request;
      request.prompt = turn.prompt;
      request.forced = turn.answer;
      request.sampling.temperature = 0;
      request.sampling.max_tokens = static_cast<int>(turn.answer.size());
      request.on_event = [&](const Event& event) {
        arrivals[who].hear(event);
        return !interrupted();
      };
      auto answer = engines_[who].generate(request);
      if (!answer) return tl::unexpected(answer.error());
      if (interrupted()) return {};
      if (answer->stop == StopReason::failed) return fail(answer->error);
      Side& side = sides[who];
      side.stats.add(answer->stats);
      side.same += std::equal(answer->tokens.begin(), answer->tokens.end(), turn.answer.begin(),
                              turn.answer.end(), [](const EmittedToken& a, Token b) { return a.token == b; });
      if (arrivals[who].count() != static_cast<int>(turn.answer.size()))
        return fail(
            fmt::format("{} tokens came of an answer of {}", arrivals[who].count(), turn.answer.size()));
    }
    for (std::size_t who = 0; who < sides.size(); ++who) judge(turn, arrivals[0], arrivals[who], sides[who]);
    return {};
  }

  void judge(const Turn& turn, const Arrivals& plain, const Arrivals& own, Side& side) const {
    const auto faster = [](double slow, double fast) { return slow / std::max(1e-9, fast); };
    for (std::size_t w = 0; w < side.speedups.size(); ++w) {
      const int begin = static_cast<int>(w) * kWindow;
      side.speedups[w].push_back(
          faster(plain.seconds(begin, begin + kWindow), own.seconds(begin, begin + kWindow)));
    }
    const int end = static_cast<int>(turn.answer.size());
    const int from = flags_.half + kAllowed, until = from + (end - from) / 2;
    if (turn.to_order) {
      const double soon = own.seconds(from, until) / (until - from);
      const double later = own.seconds(until, end) / (end - until);
      side.back.push_back(faster(later, soon));
    } else {
      side.back.push_back(faster(plain.seconds(from, end), own.seconds(from, end)));
    }
  }

  const Flags& flags_;
  std::vector<Engine>& engines_;  // plain first
};

void print_turn(const Turn& turn, const std::vector<Side>& sides, int half) {
  say("\n{}: over plain, by tokens from the turn\n{:<24}", turn.name, "");
  const auto windows = sides[0].speedups.size();
  for (std::size_t w = 0; w < windows; ++w) say("{:>7}", static_cast<int>(w) * kWindow - half);
  say("{:>16}\n", turn.to_order ? "later speed had" : "of plain");
  for (const Side& side : sides) {
    const bool wide = side.name.size() > 24;
    if (wide) say("{}\n", side.name);
    say("{:<24}", wide ? "" : side.name);
    for (const auto& window : side.speedups) say("{:>6.2f}x", median(window));
    say("{:>16}\n", fmt::format("{:.2f} ({:.2f}-{:.2f})", median(side.back), quantile(side.back, 0.25),
                                quantile(side.back, 0.75)));
  }
  flush_out();
}

ordered_json turn_json(const Turn& turn, const std::vector<Side>& sides) {
  ordered_json list = ordered_json::array();
  for (const Side& side : sides) {
    ordered_json windows = ordered_json::array();
    for (const auto& window : side.speedups)
      windows.push_back(
          {{"median", median(window)}, {"low", quantile(window, 0.25)}, {"high", quantile(window, 0.75)}});
    list.push_back({{"name", side.name},
                    {"over_plain", windows},
                    {"back", side.back},
                    {"back_within_bound", median(side.back) >= kBack},
                    {"same_text", side.same},
                    {"stats", ordered_json::parse(stats_json(side.stats))}});
  }
  return {{"turn", turn.name}, {"sides", list}};
}

Result<int> run_reaction(const Flags& flags) {
  auto entries = flags.contenders.read(flags.speculation, flags.engine);
  if (!entries) return tl::unexpected(entries.error());
  const int needed = kPeriod + 2 * flags.half + 1;
  if (flags.engine.context > 0 && flags.engine.context < needed)
    return fail(fmt::format("--context {}: the answer of {} tokens and what stands before it need {}",
                            flags.engine.context, 2 * flags.half, needed));
  if (Status right = flags.report.check(); !right) return tl::unexpected(right.error());
  auto model = flags.model.load();
  if (!model) return tl::unexpected(model.error());
  if (Status right = flags.report.check({model->info().path}); !right) return tl::unexpected(right.error());
  catch_interrupts();
  const std::vector<Turn> turns = make_turns(model->tokenizer(), flags.half, flags.seed);
  std::vector<Engine> engines;
  for (Entry& entry : *entries) {
    if (flags.engine.context == 0) entry.options.context = needed;
    auto engine = Engine::make(*model, entry.options);
    if (!engine) return tl::unexpected(engine.error());
    engines.push_back(std::move(*engine));
  }
  Bench bench(flags, engines);
  ordered_json report = {{"model", model_json(model->info())},
                         {"half", flags.half},
                         {"rounds", flags.rounds},
                         {"seed", flags.seed},
                         {"window", kWindow},
                         {"allowed_tokens", kAllowed},
                         {"bound", kBack},
                         {"turns", ordered_json::array()}};
  bool all_same = true;
  for (const Turn& turn : turns) {
    auto sides = bench.run(turn, *entries);
    if (!sides) return tl::unexpected(sides.error());
    if (interrupted()) {
      note("[stopped; a turn that was not finished is not shown]\n");
      return kInterrupted;
    }
    if (report["turns"].empty())
      say("{}, a line of {} tokens again and again, {} tokens before the turn and {} after, {} rounds; speed "
          "is to be back within {} tokens\n",
          model->info().name, kPeriod, flags.half, flags.half, flags.rounds, kAllowed);
    print_turn(turn, *sides, flags.half);
    for (const Side& side : *sides) all_same = all_same && side.same == flags.rounds;
    report["turns"].push_back(turn_json(turn, *sides));
  }
  if (Status written = flags.report.write("reaction", report); !written)
    return tl::unexpected(written.error());
  return judged_texts(all_same, "keyed");
}

}  // namespace

void add_reaction(CLI::App& bench, const Choose& choose) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = bench.add_subcommand(
      "reaction", "a text that turns from repeating to random and the reverse: how soon speculation follows");
  flags->model.add(*command);
  command->add_option("--half", flags->half, "tokens before the turn, and after it")
      ->check(CLI::Range(4 * kWindow, 8192))
      ->capture_default_str();
  command->add_option("--rounds", flags->rounds, "of each turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--seed", flags->seed, "of the random tokens")->capture_default_str();
  flags->report.add(*command);
  flags->engine.add(*command);
  flags->speculation.add(*command, false);
  flags->contenders.add(*command);
  command->callback([flags, choose] { choose([flags] { return run_reaction(*flags); }); });
}

}  // namespace coppice::app
