#include "engine/engine.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/check.h"
#include "engine/measure_costs.h"
#include "policy/fitted_file.h"

namespace coppice::core {
namespace {

constexpr std::int64_t kMostPositions = 1 << 28;  // of the cache
constexpr std::size_t kBytesPerToken = 16;        // of text, four times what is usual: room, not a limit

// Rows of a pass: a whole chunk of prompt beside everybody's trees.
int max_rows(const EngineSetup& setup) {
  return setup.max_requests * (setup.speculation.nodes + 1) + setup.chunk;
}

void add_drafters(const Grower& grower, double target_bytes, PolicySetup& setup) {
  setup.cheap = false;
  int bit = 0;
  for (const auto& drafter : grower.drafters()) {
    const double share = static_cast<double>(drafter->pass_bytes()) / target_bytes;
    setup.cheap = setup.cheap || !drafter->shape().costly;
    setup.draft_share += share;
    if (drafter->shape().costly) setup.drafts.push_back({bit, share, drafter->slims()});
    ++bit;
  }
  std::stable_sort(setup.drafts.begin(), setup.drafts.end(),
                   [](const CostlyDrafter& a, const CostlyDrafter& b) { return a.share < b.share; });
}

// Without drafters there is nothing to decide, and nothing is measured.
Result<ChosenPolicy> policy_of(const EngineSetup& setup) {
  if (!setup.grower) return choose_policy("fixed");
  COPPICE_TRY(ChosenPolicy chosen, choose_policy(setup.speculation.policy));
  // A grower may have been made of other things than an expression; then no file lies beside it.
  if (const auto mix = parse_drafters(setup.speculation.drafters)) begin_with_fitted(*mix, chosen);
  return chosen;
}

Result<std::unique_ptr<Policy>> make_policy(EngineSetup& setup, const ChosenPolicy& chosen,
                                            Context* context) {
  if (setup.policy) return std::move(setup.policy);
  PolicySetup wanted;
  wanted.requests = setup.max_requests;
  wanted.target = setup.model.get();
  wanted.vocab = setup.model->config().vocab;
  if (setup.grower) add_drafters(*setup.grower, static_cast<double>(setup.model->weight_bytes()), wanted);
  if (chosen.row->wants_costs) {
    if (setup.costs) {
      wanted.costs = *setup.costs;
    } else {
      MeasureOptions options;
      options.context = setup.context;
      options.chunk = setup.chunk;
      options.clock = setup.clock;
      COPPICE_TRY(wanted.costs, measure_costs(*context, options));
    }
  }
  return chosen.make(wanted);
}

// What drafters and policy want to see of the target.
std::vector<int> feature_layers(const EngineSetup& setup, const PolicyWants& wants) {
  std::vector<int> layers;
  if (setup.grower)
    layers.assign(setup.grower->feature_layers().begin(), setup.grower->feature_layers().end());
  const auto there = std::lower_bound(layers.begin(), layers.end(), wants.state_layer);
  if (wants.state_layer >= 0 && (there == layers.end() || *there != wants.state_layer))
    layers.insert(there, wants.state_layer);
  return layers;
}

}  // namespace

Engine::Engine(EngineSetup setup, std::unique_ptr<Context> context, std::unique_ptr<Policy> policy)
    : setup_(std::move(setup)),
      context_(std::move(context)),
      policy_(std::move(policy)),
      sequences_(context_->cache()),
      scratch_(setup_.model->config().vocab) {
  if (!setup_.grammar_tokens) setup_.grammar_tokens = std::make_shared<GrammarTokens>(setup_.tokenizer);
  if (setup_.grower)
    for (const auto& drafter : setup_.grower->drafters()) drafts_ = drafts_ || drafter->shape().costly;
  wants_ = policy_->wants();
  for (int slot = setup_.max_requests; slot-- > 0;) free_slots_.push_back(slot);
  rows_.reserve(static_cast<std::size_t>(max_rows(setup_)));
  shown_.reserve(rows_.capacity());
  features_.reserve(rows_.capacity());
  for (auto* list : {&decoders_, &prompts_}) list->reserve(static_cast<std::size_t>(setup_.max_requests));
  jobs_.reserve(decoders_.capacity());
  decoding_.reserve(decoders_.capacity());
}

Engine::~Engine() = default;

Status Engine::check(const EngineSetup& setup) {
  COPPICE_TRY_STATUS(setup.speculation.validate());
  if (setup.context < 2) {
    return fail(fmt::format("a context of {} tokens is too small; at least 2 are needed", setup.context));
  }
  if (setup.model->config().positions == Positions::learned &&
      setup.context > setup.model->config().context_length) {
    return fail(
        fmt::format("this model has learned positions up to {}; a context of {} tokens is too long for it",
                    setup.model->config().context_length, setup.context));
  }
  if (setup.max_requests < 1 || setup.max_requests > 256) {
    return fail(
        fmt::format("requests at once: {} is out of range, 1 to 256 are possible", setup.max_requests));
  }
  if (setup.chunk < 1 || setup.chunk > 4096) {
    return fail(fmt::format("prompt tokens a pass: {} is out of range, 1 to 4096 are possible", setup.chunk));
  }
  if (setup.max_waiting < 0) {
    return fail(fmt::format("waiting requests: {} is out of range; 0 is any number", setup.max_waiting));
  }
  if (setup.positions != 0 && (setup.positions < setup.context || setup.positions > kMostPositions)) {
    return fail(fmt::format("a cache of {} positions is out of range; {} (one context) to {} are possible",
                            setup.positions, setup.context, kMostPositions));
  }
  if (std::int64_t{setup.max_requests} * (setup.context + std::int64_t{kBlockPositions}) > kMostPositions) {
    return fail(fmt::format(
        "a context of {} tokens for each of {} requests at once is too large; {} together are possible",
        setup.context, setup.max_requests, kMostPositions));
  }
  return {};
}

Result<std::unique_ptr<Engine>> Engine::make(EngineSetup setup) {
  COPPICE_TRY_STATUS(check(setup));
  ContextOptions options;
  options.kv.type = setup.cache;
  options.kv.sequences = 2 * setup.max_requests;  // as many idle ones, for prompts that begin alike
  // One more block each: a shared prefix ends inside a block, which is copied.
  const int positions = setup.positions > 0 ? setup.positions : setup.max_requests * setup.context;
  options.kv.positions = positions + setup.max_requests * kBlockPositions;
  options.longest = setup.context;
  options.kv.slots = std::max(1, setup.speculation.nodes);
  options.max_rows = max_rows(setup);
  options.max_logits = setup.max_requests * (setup.speculation.nodes + 1);
  if (setup.grower) setup.grower->use(*setup.pool);
  COPPICE_TRY(const ChosenPolicy chosen, policy_of(setup));
  // A policy that knows what passes cost is made when they can be measured; the others may want something of
  // the context.
  std::unique_ptr<Policy> policy;
  if (setup.policy || !chosen.row->wants_costs) {
    COPPICE_TRY(policy, make_policy(setup, chosen, nullptr));
    options.feature_layers = feature_layers(setup, policy->wants());
  } else {
    options.feature_layers = feature_layers(setup, {});
  }
  COPPICE_TRY(auto context, Context::make(setup.model, options, *setup.pool));
  if (!policy) {
    COPPICE_TRY(policy, make_policy(setup, chosen, context.get()));
  }
  return std::unique_ptr<Engine>(new Engine(std::move(setup), std::move(context), std::move(policy)));
}

// `begins`: the answer's text begins one, or goes on behind a control token.
Result<Sampler> Engine::make_sampler(const Request& request, bool begins) const {
  COPPICE_TRY(Sampler sampler, Sampler::make(request.sampling, setup_.model->config().vocab,
                                             setup_.tokenizer->vocabulary().end_tokens));
  if (request.sampling.grammar)
    COPPICE_TRY_STATUS(sampler.constrain(setup_.grammar_tokens->get(),
                                         {request.prompt.size(), begins && setup_.tokenizer->adds_space()}));
  return sampler;
}

Result<std::uint64_t> Engine::submit(Request request) {
  const int vocab = setup_.model->config().vocab;
  if (request.prompt.empty()) return fail("the prompt is empty; at least one token is needed");
  for (Token token : request.prompt) {
    if (token < 0 || token >= vocab) {
      return fail(fmt::format("the prompt has token id {}; the vocabulary ends at {}", token, vocab - 1));
    }
  }
  if (static_cast<int>(request.prompt.size()) >= setup_.context) {
    return fail(fmt::format(
        "the prompt has {} tokens and the context holds {}; shorten it or ask for a larger context",
        request.prompt.size(), setup_.context));
  }
  for (Token token : request.forced) {
    if (token < 0 || token >= vocab) {
      return fail(
          fmt::format("the forced answer has token id {}; the vocabulary ends at {}", token, vocab - 1));
    }
  }
  if (!request.forced.empty() && request.sampling.acceptance == Acceptance::rejection) {
    return fail("a forced answer is not drawn, so acceptance = rejection cannot be had with it; use keyed");
  }
  if (!request.forced.empty() && request.sampling.grammar) {
    return fail("a forced answer is not drawn, so a grammar has no say in it; leave one of the two out");
  }
  if (!(request.timeout_seconds >= 0)) {
    return fail(fmt::format("timeout_seconds = {}: it must be 0 (none) or more", request.timeout_seconds));
  }
  if (setup_.max_waiting > 0 && static_cast<int>(waiting_.size()) >= setup_.max_waiting) {
    return fail(fmt::format("{} requests are in work and {} wait, as many as may; try again later",
                            active_.size(), waiting_.size()));
  }
  Speculation wanted = setup_.speculation;
  if (request.nodes) wanted.nodes = *request.nodes;
  if (request.depth) wanted.depth = *request.depth;
  if (request.width) wanted.width = *request.width;
  if (request.price) wanted.price = *request.price;
  if (request.pass_price) wanted.pass_price = *request.pass_price;
  COPPICE_TRY_STATUS(wanted.validate());
  if (wanted.nodes > setup_.speculation.nodes) {
    return fail(fmt::format("this request asks for trees of {} nodes; the engine was made for {}",
                            wanted.nodes, setup_.speculation.nodes));
  }
  const bool begins = request.prompt.empty() || setup_.tokenizer->is_control(request.prompt.back());
  COPPICE_TRY(Sampler sampler, make_sampler(request, begins));
  TextStream text(*setup_.tokenizer, request.sampling.stop, request.show_special, begins);
  auto active = std::make_unique<Active>(next_id_++, std::move(request), std::move(sampler), std::move(text));
  active->budget = {wanted.nodes, wanted.depth, wanted.price, 1.0f, wanted.pass_price, wanted.width};
  if (active->request.timeout_seconds > 0)
    active->deadline = setup_.clock() + active->request.timeout_seconds;
  std::uint64_t id = active->id;
  waiting_.push_back(std::move(active));
  return id;
}

// Those who wait are answered at once too, not when it is their turn.
void Engine::stop_those_who_must() {
  const double now = setup_.clock();
  for (auto* list : {&waiting_, &active_}) {
    for (auto& entry : *list) {
      if (entry->cancelled) finish(*entry, StopReason::cancelled);
      if (!entry->done && now >= entry->deadline) finish(*entry, StopReason::timed_out);
    }
  }
  retire();
}

// In the order they came. The first that finds no room waits, and nobody overtakes it.
void Engine::admit() {
  while (!waiting_.empty() && !free_slots_.empty()) {
    Active& request = *waiting_.front();
    if (!start(request) && !request.done) return;
    active_.push_back(std::move(waiting_.front()));
    waiting_.erase(waiting_.begin());
    if (request.done) retire();
  }
}

std::size_t Engine::reserved_positions(const Request& request) const {
  return std::min(request.prompt.size() + static_cast<std::size_t>(request.sampling.max_tokens),
                  static_cast<std::size_t>(setup_.context));
}

// All memory a request will need is had before its first pass.
bool Engine::start(Active& request) {
  const std::size_t prompt = request.request.prompt.size();
  const std::size_t most = reserved_positions(request.request);
  auto lease = sequences_.take(request.request.prompt, static_cast<int>(most));
  if (!lease) {
    if (active_.empty()) fail_request(request, FailureKind::engine, lease.error());
    return false;
  }
  request.sequence = lease->sequence;
  request.slot = free_slots_.back();
  free_slots_.pop_back();
  request.prompt = prompt;
  request.limit = static_cast<int>(most);
  request.tokens.reserve(most + 1);
  request.tokens = request.request.prompt;
  request.tokens.reserve(most + 1);
  request.generation.tokens.reserve(most - prompt + 1);
  request.generation.text.reserve((most - prompt + 1) * kBytesPerToken);
  request.fresh.reserve((kMaxTreeDepth + 1) * kBytesPerToken);
  request.tree.reset(request.tokens.back());
  if (request.sampler.options().acceptance == Acceptance::rejection) {
    request.rejection.emplace(request.sampler.key(), setup_.model->config().vocab);
  }
  Stats& stats = request.generation.stats;
  stats.requests = 1;
  stats.prompt_tokens = prompt;
  stats.reused_tokens = static_cast<std::uint64_t>(lease->reused);
  policy_->begin(request.slot, static_cast<int>(prompt));
  request.log.recent.reserve(DecisionLog::kMost);
  request.log.counts = &stats.decisions;
  if (wants_.chances) request.chances.reserve(kMaxTreeDepth + 1);
  if (wants_.state_layer >= 0) request.state.reserve(static_cast<std::size_t>(setup_.model->config().hidden));
  for (const std::string& name : sources()) stats.sources.push_back({name, 0, 0});
  if (setup_.grower) {
    Status begun = setup_.grower->begin(request.slot, request.tokens, request.sampler);
    if (!begun) {
      free_slots_.push_back(request.slot);
      request.slot = -1;  // nothing to end there
      fail_request(request, FailureKind::drafter, begun.error());
    }
  }
  return true;
}

void Engine::finish(Active& request, StopReason reason) {
  request.done = true;
  request.generation.stop = reason;
}

void Engine::fail_request(Active& request, FailureKind kind, const Error& error) {
  finish(request, StopReason::failed);
  request.generation.failure = kind;
  request.generation.error = error.message;
}

void Engine::note_trouble(Active& request) const {
  const auto drafters = setup_.grower->drafters();
  for (std::size_t d = 0; d < drafters.size(); ++d) {
    const DrafterTrouble trouble = drafters[d]->trouble(request.slot);
    SourceStats& source = request.generation.stats.sources[d];
    source.failures = trouble.times;
    source.problem = trouble.first;
  }
}

// Its sequence stays behind for prompts that begin alike.
void Engine::close(Active& request) {
  std::string rest;
  request.text.finish(rest);
  request.generation.text += rest;
  if ((!rest.empty() || !request.log.recent.empty()) && request.request.on_event) {
    Event event;
    event.request = request.id;
    event.text = rest;
    event.decisions = request.log.recent;
    request.request.on_event(event);
  }
  if (request.slot >= 0) {
    if (setup_.grower) {
      note_trouble(request);
      setup_.grower->end(request.slot);
    }
    free_slots_.push_back(request.slot);
  }
  if (request.sequence >= 0) {
    if (request.generation.stop == StopReason::failed) {
      sequences_.drop(request.sequence);
    } else {
      auto cached = static_cast<std::size_t>(context_->cache().length(request.sequence));
      sequences_.put(request.sequence, std::span<const Token>(request.tokens).first(cached));
    }
  }
  finished_.emplace_back(request.id, std::move(request.generation));
}

void Engine::retire() {
  for (auto* list : {&waiting_, &active_}) {
    for (std::size_t i = 0; i < list->size(); ++i)  // an event may submit
      if ((*list)[i]->done) close(*(*list)[i]);
    std::erase_if(*list, [](const auto& entry) { return entry->done; });
  }
}

void Engine::cancel(std::uint64_t id) {
  for (auto* list : {&waiting_, &active_}) {
    for (auto& entry : *list) {
      if (entry->id == id) entry->cancelled = true;
    }
  }
}

std::optional<Generation> Engine::take(std::uint64_t id) {
  for (auto it = finished_.begin(); it != finished_.end(); ++it) {
    if (it->first != id) continue;
    Generation generation = std::move(it->second);
    finished_.erase(it);
    return generation;
  }
  return std::nullopt;
}

std::vector<std::string> Engine::sources() const {
  std::vector<std::string> names;
  if (setup_.grower) {
    for (const auto& drafter : setup_.grower->drafters()) names.emplace_back(drafter->name());
  }
  return names;
}

}  // namespace coppice::core
