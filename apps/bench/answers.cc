#include "bench/answers.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "bench/prompts.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

constexpr int kMostNodes = 64;  // of any contender: one engine serves all budgets
constexpr int kEntropyOf = 50;  // best tokens; the others count as one

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

}  // namespace

Contender plain_contender() {
  Contender plain;
  plain.name = "plain";
  plain.drafters = "none";
  plain.budget.nodes = 0;
  return plain;
}

Contender contender_of(const Mode& mode, const std::string& sampling) {
  return {mode.name, mode.drafters, mode.prior, mode.budgets.at(sampling), mode.policy};
}

Result<TaskPrompt> task_prompt(const Model& model, const TaskText& text, int context) {
  PromptFlags flags;
  flags.chat = text.form == "chat";
  auto tokens = flags.tokenise(model, {&text.text, 1}, context);
  if (!tokens) return fail(fmt::format("{} {}: {}", text.set, text.name, tokens.error().message));
  TaskPrompt prompt;
  prompt.set = text.set;
  prompt.form = text.form;
  prompt.name = text.name;
  prompt.tokens = std::move(tokens->front());
  prompt.answer = text.form == "raw" && text.set == "humaneval" ? AnswerForm::code : AnswerForm::chat;
  return prompt;
}

std::vector<std::string> Answers::key(const Contender& contender) const {
  return {engines_kind_ == Engines::own ? contender.name : "", contender.drafters, contender.prior,
          contender.policy};
}

Result<Engine*> Answers::engine(const Contender& contender) {
  const auto of = key(contender);
  if (auto known = engines_.find(of); known != engines_.end()) return &known->second;
  EngineOptions options = options_;
  options.speculation.drafters = contender.drafters;
  options.speculation.prior = contender.prior;
  options.speculation.policy = contender.policy;
  options.speculation.nodes = kMostNodes;
  options.speculation.depth = kMostNodes;
  auto made = Engine::make(model_, options);
  if (!made) return tl::unexpected(made.error());
  return &engines_.emplace(of, std::move(*made)).first->second;
}

Status Answers::prepare(const Contender& contender) {
  auto made = engine(contender);
  return made ? Status() : tl::unexpected(made.error());
}

std::vector<std::string> Answers::sources(const Contender& contender) const {
  return engines_.at(key(contender)).sources();
}

Result<Generation> Answers::answer(const TaskPrompt& prompt, const Sampling& sampling,
                                   const Contender& contender, const Listener& listener) {
  auto who = engine(contender);
  if (!who) return tl::unexpected(who.error());
  Request request;
  request.prompt = prompt.tokens;
  request.sampling = sampling;
  request.sampling.stream = prompt.number;
  if (!prompt.stop.empty()) request.sampling.stop = {prompt.stop};
  if (contender.budget.nodes > 0) {
    request.nodes = contender.budget.nodes;
    request.depth = contender.budget.depth;
    request.width = contender.budget.width;
    request.price = contender.budget.price;
    request.pass_price = contender.budget.pass_price;
  }
  request.trace = listener.trees;
  request.on_event = [&](const Event& event) {
    if (listener.hear) listener.hear(event);
    return !interrupted();
  };
  auto made = (*who)->generate(request);
  if (made && made->stop == StopReason::failed) return fail(made->error);
  if (made && made->stop == StopReason::cancelled) return fail("stopped");
  return made;
}

Result<const Reference*> Answers::reference(const TaskPrompt& prompt, const Sampling& wanted) {
  const std::string key = fmt::format("{}|{}|{}|{}|{}", prompt.set, prompt.form, prompt.name,
                                      wanted.temperature, wanted.max_tokens);
  if (auto known = references_.find(key); known != references_.end()) return &known->second;
  Sampling sampling = wanted;
  sampling.logprobs = std::min(kEntropyOf, model_.tokenizer().size());
  Contender writer = plain_contender();
  writer.name = "reference";
  auto plain = answer(prompt, sampling, writer);
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

Result<ordered_json> Answers::paint(const TaskPrompt& prompt, const Sampling& sampling,
                                    const Contender& contender) {
  ordered_json cycles = ordered_json::array();
  const auto hear = [&](const Event& event) {
    if (event.tree != nullptr)
      cycles.push_back({event.tokens.size(), event.tree->nodes.size() - 1, event.tree->draft_passes,
                        event.tree->draft_rows});
  };
  auto made = answer(prompt, sampling, contender, {hear, true});
  if (!made) return tl::unexpected(made.error());
  ordered_json pieces = ordered_json::array();
  for (const EmittedToken& token : made->tokens)
    pieces.push_back({model_.tokenizer().piece(token.token), token.source});
  return ordered_json{{"sources", sources(contender)}, {"pieces", pieces}, {"cycles", cycles}};
}

bool same_ids(const std::vector<Token>& plain, const std::vector<EmittedToken>& other) {
  return plain.size() == other.size() &&
         std::equal(plain.begin(), plain.end(), other.begin(),
                    [](Token x, const EmittedToken& y) { return x == y.token; });
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

ordered_json reference_json(const Model& model, const TaskPrompt& prompt, const Reference& reference) {
  return {{"prompt_tokens", prompt.tokens.size()},
          {"drawn", reference.drawn},
          {"tokens", reference.cut.tokens},
          {"cut", reference.cut.why},
          {"surprisal", reference.surprisal},
          {"entropy", reference.entropy},
          {"text", model.tokenizer().decode(reference.ids)}};
}

Result<Sampling> bench_sampling(const std::string& name, std::uint64_t seed, int tokens) {
  Sampling sampling;
  sampling.seed = seed;
  sampling.max_tokens = tokens;
  if (name == "top-k") {
    sampling.temperature = 1;
    sampling.top_k = 50;
  } else if (name != "greedy") {
    return fail(fmt::format("--samplings {}: there is greedy and top-k (50 at temperature 1)", name));
  }
  return sampling;
}

}  // namespace coppice::app
