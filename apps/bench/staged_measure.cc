#include "bench/staged_measure.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

constexpr int kMostNodes = 64;  // of any contender: one engine serves all budgets
constexpr int kEntropyOf = 50;  // best tokens; the others count as one

bool same_ids(std::span<const Token> plain, std::span<const EmittedToken> other) {
  return plain.size() == other.size() &&
         std::equal(plain.begin(), plain.end(), other.begin(),
                    [](Token x, const EmittedToken& y) { return x == y.token; });
}

// Of the target's distribution where the token was drawn, in nats; what is not among the best counts as one
// token, so it is a little too low.
double entropy_of(const EmittedToken& token) {
  double rest = 1, sum = 0;
  for (const auto& [id, logprob] : token.top) {
    sum -= std::exp(logprob) * logprob;
    rest -= std::exp(logprob);
  }
  return rest > 1e-9 ? sum - rest * std::log(rest) : sum;
}

ordered_json counts_json(const Stats& stats) {
  std::size_t depths = Stats::kDepths;
  while (depths > 0 && stats.reached_at_depth[depths - 1] == 0) --depths;
  const auto upto = [&](const auto& values) {
    return std::vector<std::uint64_t>(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(depths));
  };
  ordered_json sources = ordered_json::array();
  for (const SourceStats& s : stats.sources) sources.push_back({s.name, s.proposed, s.accepted});
  return {{"tokens", stats.tokens},
          {"cycles", stats.cycles},
          {"guesses", stats.guesses},
          {"accepted", stats.accepted},
          {"draft_passes", stats.draft_passes},
          {"target_bytes", stats.target_bytes},
          {"draft_bytes", stats.draft_bytes},
          {"reached_at_depth", upto(stats.reached_at_depth)},
          {"accepted_at_depth", upto(stats.accepted_at_depth)},
          {"sources", sources}};
}

}  // namespace

StagedContender plain_contender() {
  StagedContender plain;
  plain.name = "plain";
  plain.drafters = "none";
  plain.budget.nodes = 0;
  return plain;
}

Result<Engine*> StagedBench::engine(const StagedContender& contender) {
  const auto key = std::pair(contender.drafters, contender.prior);
  if (auto known = engines_.find(key); known != engines_.end()) return &known->second;
  EngineOptions options = options_;
  options.speculation.drafters = contender.drafters;
  options.speculation.prior = contender.prior;
  options.speculation.policy = "fixed";  // the budgets of the figures are what is compared
  options.speculation.nodes = kMostNodes;
  options.speculation.depth = kMostNodes;
  auto made = Engine::make(model_, options);
  if (!made) return fail(fmt::format("mode \"{}\": {}", contender.name, made.error().message));
  return &engines_.emplace(key, std::move(*made)).first->second;
}

Status StagedBench::prepare(const StagedContender& contender) {
  auto made = engine(contender);
  return made ? Status() : tl::unexpected(made.error());
}

Result<Generation> StagedBench::answer(const StagedPrompt& prompt, const Sampling& sampling,
                                       const StagedContender& contender,
                                       std::function<bool(const Event&)> hear) {
  auto who = engine(contender);
  if (!who) return tl::unexpected(who.error());
  Request request;
  request.prompt = prompt.tokens;
  request.sampling = sampling;
  request.sampling.stream = prompt.number;
  if (contender.budget.nodes > 0) {
    request.nodes = contender.budget.nodes;
    request.depth = contender.budget.depth;
    request.width = contender.budget.width;
    request.price = contender.budget.price;
    request.pass_price = contender.budget.pass_price;
  }
  request.trace = static_cast<bool>(hear);
  request.on_event = [&](const Event& event) { return !interrupted() && (!hear || hear(event)); };
  auto made = (*who)->generate(request);
  if (made && made->stop == StopReason::failed) return fail(made->error);
  if (made && made->stop == StopReason::cancelled) return fail("stopped");
  return made;
}

// Which drafter of the mix first guessed each token (-1: nobody, the target drew it), and what each cycle
// cost: [tokens, guesses, passes of drafts, rows of them].
Result<ordered_json> StagedBench::paint(const StagedPrompt& prompt, const Sampling& sampling,
                                        const StagedContender& contender) {
  ordered_json cycles = ordered_json::array();
  auto made = answer(prompt, sampling, contender, [&](const Event& event) {
    if (event.tree != nullptr)
      cycles.push_back({event.tokens.size(), event.tree->nodes.size() - 1, event.tree->draft_passes,
                        event.tree->draft_rows});
    return true;
  });
  if (!made) return tl::unexpected(made.error());
  ordered_json pieces = ordered_json::array();
  for (const EmittedToken& token : made->tokens)
    pieces.push_back({model_.tokenizer().piece(token.token), token.source});
  return ordered_json{{"sources", (*engine(contender))->sources()}, {"pieces", pieces}, {"cycles", cycles}};
}

// Not timed: it also says how sure the target was.
Result<const StagedBench::Reference*> StagedBench::reference(const StagedPrompt& prompt,
                                                             const Sampling& wanted) {
  const std::string key = fmt::format("{}|{}|{}|{}|{}", prompt.set, prompt.form, prompt.name,
                                      wanted.temperature, wanted.max_tokens);
  if (auto known = references_.find(key); known != references_.end()) return &known->second;
  Sampling sampling = wanted;
  sampling.logprobs = std::min(kEntropyOf, model_.tokenizer().size());
  auto plain = answer(prompt, sampling, plain_contender());
  if (!plain) return tl::unexpected(plain.error());
  Reference made;
  for (const EmittedToken& token : plain->tokens) made.ids.push_back(token.token);
  made.drawn = made.ids.size();
  made.cut = cut_answer(model_.tokenizer(), made.ids, prompt.answer);
  made.ids.resize(made.cut.tokens);
  for (std::size_t i = 0; i < made.cut.tokens; ++i) {
    made.surprisal -= plain->tokens[i].logprob / static_cast<double>(made.cut.tokens);
    made.entropy += entropy_of(plain->tokens[i]) / static_cast<double>(made.cut.tokens);
  }
  return &references_.emplace(key, std::move(made)).first->second;
}

Result<ordered_json> StagedBench::measure(const StagedPrompt& prompt, const Sampling& wanted,
                                          std::span<const StagedContender> contenders, int rounds,
                                          bool painted) {
  auto plain = reference(prompt, wanted);
  if (!plain) return tl::unexpected(plain.error());
  const Reference& counts = **plain;
  ordered_json record = {{"prompt_tokens", prompt.tokens.size()},
                         {"drawn", counts.drawn},
                         {"tokens", counts.cut.tokens},
                         {"cut", counts.cut.why},
                         {"surprisal", counts.surprisal},
                         {"entropy", counts.entropy},
                         {"text", model_.tokenizer().decode(counts.ids)}};
  if (counts.ids.size() < kShortestAnswer) return record;
  Sampling sampling = wanted;
  sampling.max_tokens = static_cast<int>(counts.ids.size());
  std::vector<ordered_json> modes(contenders.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t k = 0; k < contenders.size(); ++k) {
      const std::size_t who = (k + prompt.number + static_cast<std::size_t>(round)) % contenders.size();
      auto made = answer(prompt, sampling, contenders[who]);
      if (!made) return tl::unexpected(made.error());
      const Stats& stats = made->stats;
      ordered_json& mode = modes[who];
      if (round == 0) mode = counts_json(stats);
      mode["seconds"].push_back(
          {stats.decode_seconds, stats.draft_seconds, stats.verify_seconds, stats.sample_seconds});
      mode["same"] = mode.value("same", true) && same_ids(counts.ids, made->tokens);
    }
  }
  for (std::size_t who = 0; who < contenders.size(); ++who)
    record["modes"][contenders[who].name] = std::move(modes[who]);
  if (!painted) return record;
  for (const StagedContender& contender : contenders) {
    if (contender.budget.nodes == 0) continue;
    auto paints = paint(prompt, sampling, contender);
    if (!paints) return tl::unexpected(paints.error());
    record["painted"][contender.name] = std::move(*paints);
  }
  return record;
}

}  // namespace coppice::app
