#include "policy/adaptive_policy.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace coppice::core {
namespace {

constexpr float kMostCapacity = 1.5f;

void log(const Decoding& request, Decision decision) {
  if (request.log != nullptr) request.log->add(decision);
}

Decision decision(Rule rule, double number, double threshold, double decided, int times = 1) {
  Decision out;
  out.rule = rule;
  out.number = number;
  out.threshold = threshold;
  out.decided = decided;
  out.times = times;
  return out;
}

// How many guesses of the tree the target took.
int taken_of(const TokenTree& tree, std::span<const Token> drawn) {
  int node = 0, taken = 0;
  for (const Token token : drawn) {
    if ((node = tree.child(node, token)) == kNoNode) break;
    ++taken;
  }
  return taken;
}

}  // namespace

AdaptivePolicy::Memory::Memory(const AdaptiveOptions& options)
    : taken(std::max(options.monitor, options.probe)), draft(options.compare), target(options.compare) {}

AdaptivePolicy::AdaptivePolicy(AdaptiveOptions options, const PolicySetup& setup, std::optional<Gate> gate)
    : options_(std::move(options)), setup_(setup), gate_(std::move(gate)), batch_(setup.requests) {
  COPPICE_CHECK(!gate_ || setup.target != nullptr);
  if (gate_) embedding_.resize(static_cast<std::size_t>(gate_->hidden()));
  for (int r = 0; r < setup.requests; ++r) memory_.emplace_back(options_);
}

PolicyWants AdaptivePolicy::wants() const {
  PolicyWants wants;
  if (setup_.drafts.empty()) return wants;
  wants.surprise = options_.tau > 0 && options_.tau < 1 ? options_.analyse : 0;
  const auto slims = [](const CostlyDrafter& draft) { return draft.slims; };
  if (gate_ && std::any_of(setup_.drafts.begin(), setup_.drafts.end(), slims))
    wants.state_layer = gate_->layer();
  wants.chances = std::min(options_.upgrade, options_.failure) < AdaptiveOptions::kNever;
  return wants;
}

void AdaptivePolicy::begin(int slot, int) {
  Memory& memory = memory_[static_cast<std::size_t>(slot)];
  memory.mode = Mode::drafting;
  memory.taken.restart(options_.monitor);
  memory.judged = memory.right = 0;
  memory.before = 1;
  memory.window = options_.first;
  memory.draft.restart(options_.compare);
  memory.target.restart(options_.compare);
  memory.failing = false;
  memory.alpha = static_cast<float>(options_.alpha);
  memory.raised = memory.rested = memory.tries = memory.since_gate = 0;
  memory.who = 0;
  memory.ask_gate = true;
  memory.at_exit = false;
}

// --- before growth ---

void AdaptivePolicy::analyse(const Decoding& request, Memory& memory) const {
  if (options_.tau <= 0) return;
  if (options_.tau >= 1 && !setup_.drafts.empty()) {  // never, and no prompt is read to find that out
    memory.mode = Mode::target_only;
    return log(request, decision(Rule::target_only, 0, options_.tau, 0));
  }
  if (!request.surprise) return log(request, decision(Rule::analyser_silent, 0, options_.tau, 1));
  const double confidence = prompt_confidence(*request.surprise, setup_.vocab);
  const bool drafts = confidence >= options_.tau;
  if (!drafts) memory.mode = Mode::target_only;
  const Rule rule = drafts ? Rule::draft_led : Rule::target_only;
  log(request, decision(rule, confidence, options_.tau, drafts ? 1 : 0));
}

bool AdaptivePolicy::drafts_now(const Decoding& request, Memory& memory) const {
  if (memory.mode == Mode::resting && memory.rested >= options_.rest) {
    memory.mode = Mode::probing;
    memory.taken.restart(options_.probe);
    memory.tries = 0;
    log(request, decision(Rule::probe, memory.rested, options_.rest, options_.probe));
  }
  return memory.mode == Mode::drafting || memory.mode == Mode::probing;
}

bool AdaptivePolicy::slims(const Memory& memory) const {
  return memory.who < setup_.drafts.size() && setup_.drafts[memory.who].slims;
}

float AdaptivePolicy::alpha_of(const Memory& memory) const {
  return std::min(kMostCapacity, memory.alpha + static_cast<float>(memory.raised * options_.step));
}

// Anew every few tokens, and when acceptance has fallen.
void AdaptivePolicy::ask_gate(const Decoding& request, Memory& memory) {
  if (!gate_ || request.state.empty()) return;
  if (!memory.ask_gate && memory.since_gate < options_.every) return;
  memory.ask_gate = false;
  memory.since_gate = 0;
  const float before = memory.alpha;
  read_embedding(*setup_.target, request.tree->token(0), embedding_);
  memory.alpha = gate_->alpha({embedding_, request.state});
  log(request, decision(Rule::gate, memory.alpha, before, alpha_of(memory)));
}

void AdaptivePolicy::set_width(Decoding& request, Memory& memory) {
  Budget& budget = request.budget;
  if (setup_.drafts.empty()) return;
  budget.drafters = SourceMask{1} << setup_.drafts[memory.who].bit;
  if (!slims(memory)) return;
  ask_gate(request, memory);
  const float alpha = alpha_of(memory);
  budget.capacity = alpha;
  budget.exit = alpha < options_.exit;
  if (budget.exit && !memory.at_exit) log(request, decision(Rule::exit, alpha, options_.exit, alpha));
  memory.at_exit = budget.exit;
}

// Whose trees cannot be trimmed grows no more than will fit.
void AdaptivePolicy::set_amount(Decoding& request, const Memory& memory, int sharing) const {
  Budget& budget = request.budget;
  const int candidates = options_.batch > 0 ? memory.window * options_.pool : memory.window;
  budget.nodes = std::min(budget.nodes, request.by_value ? candidates : memory.window);
  if (!request.by_value && options_.batch > 0)
    budget.nodes = std::min(budget.nodes, options_.batch / sharing);
  budget.depth = std::min(budget.depth, memory.window);
  budget.least_chance = static_cast<float>(options_.reject);
}

void AdaptivePolicy::plan(std::span<Decoding> requests) {
  int sharing = 0;
  for (Decoding& request : requests) {
    Memory& memory = memory_of(request);
    request.budget = within_reach(request);
    if (request.first && request.limit.nodes > 0) analyse(request, memory);
    if (request.budget.nodes == 0) continue;
    if (!drafts_now(request, memory)) request.budget.nodes = 0;
    request.probe = memory.mode == Mode::probing;
    sharing += request.budget.nodes > 0 ? 1 : 0;
  }
  for (Decoding& request : requests) {
    if (request.budget.nodes == 0) continue;
    Memory& memory = memory_of(request);
    set_width(request, memory);
    set_amount(request, memory, sharing);
  }
}

// --- after growth ---

void AdaptivePolicy::look_at_tree(const Decoding& request, Memory& memory) const {
  const TokenTree& tree = *request.tree;
  double sum = 0;
  memory.deepest = 0;
  for (int n = 1; n < tree.size(); ++n) {
    sum += tree.score(n);
    memory.deepest = std::max(memory.deepest, tree.depth(n));
  }
  memory.confidence = tree.size() > 1 ? sum / (tree.size() - 1) : 0;
}

void AdaptivePolicy::trim(std::span<Decoding> requests, int) {
  int room = options_.batch > 0 ? options_.batch : static_cast<int>(requests.size()) * kMaxTreeNodes;
  batch_.begin();
  for (const Decoding& request : requests) {
    const int grown = request.tree->size() - 1;
    if (!request.by_value) room -= grown;
    batch_.add(*request.tree, request.by_value ? memory_of(request).window : 0);
  }
  batch_.fill(room, options_.batch > 0 ? options_.patience : 1);
  for (std::size_t r = 0; r < requests.size(); ++r) {
    Decoding& request = requests[r];
    const int grown = request.tree->size() - 1;
    if (request.by_value) request.tree->keep(batch_.taken(r));
    const int kept = request.tree->size() - 1;
    look_at_tree(request, memory_of(request));
    if (request.rejected > 0)
      log(request,
          decision(Rule::early_rejection, request.rejected, options_.reject, grown, request.rejected));
    if (grown > kept) log(request, decision(Rule::left_out, grown, kept, kept, grown - kept));
    if (kept > 0)
      log(request, decision(Rule::batch, request.by_value ? batch_.runs(r) : 0, options_.batch, kept));
  }
}

// --- after the pass ---

void AdaptivePolicy::end_drafting(const Decoding& request, Memory& memory, double rate) const {
  memory.mode = Mode::resting;
  memory.rested = 0;
  log(request, decision(Rule::stop, rate, options_.stop, options_.rest));
}

// A probe is over when it has seen enough guesses, or had as many cycles for it.
void AdaptivePolicy::judge_probe(const Decoding& request, Memory& memory) {
  ++memory.tries;
  if (!memory.taken.full() && memory.tries < options_.probe) return;
  const double rate = memory.taken.mean();
  if (rate < options_.stop) return end_drafting(request, memory, rate);
  memory.mode = Mode::drafting;
  memory.taken.restart(options_.monitor);
  memory.judged = memory.right = 0;
  memory.before = 1;
  log(request, decision(Rule::resume, rate, options_.stop, memory.window));
}

void AdaptivePolicy::judge_acceptance(const Decoding& request, Memory& memory, int submitted, int accepted) {
  for (int i = 0; i < submitted; ++i) memory.taken.add(i < accepted ? 1 : 0);
  if (memory.mode == Mode::probing) return judge_probe(request, memory);
  memory.judged += submitted;
  memory.right += accepted;
  if (submitted == 0 || memory.judged < options_.monitor) return;
  const double rate = options_.sliding
                          ? memory.taken.mean()
                          : static_cast<double>(memory.right) / static_cast<double>(memory.judged);
  memory.ask_gate = memory.ask_gate || (rate < options_.again && memory.before >= options_.again);
  memory.before = rate;
  if (rate < options_.stop) end_drafting(request, memory, rate);
}

// One more when the longest run was taken whole by a confident draft, half when it is not confident.
void AdaptivePolicy::move_window(const Decoding& request, Memory& memory, int accepted) const {
  if (!options_.dynamic) return;
  const int before = memory.window;
  const int most = std::min(request.limit.nodes, options_.batch > 0 ? options_.batch : request.limit.nodes);
  if (memory.confidence < options_.sure)
    memory.window = std::max(1, before / 2);
  else if (accepted == memory.deepest)
    memory.window = std::max(before, std::min(before + 1, most));
  if (memory.window == before) return;
  const Rule rule = memory.window > before ? Rule::window_up : Rule::window_down;
  log(request, decision(rule, memory.confidence, options_.sure, memory.window));
}

bool AdaptivePolicy::upgrade(const Decoding& request, Memory& memory, double excess) const {
  if (slims(memory) && alpha_of(memory) < kMostCapacity && options_.step > 0) {
    ++memory.raised;
    log(request, decision(Rule::upgrade_width, excess, options_.upgrade, alpha_of(memory)));
    return true;
  }
  if (memory.who + 1 >= setup_.drafts.size()) return false;
  ++memory.who;
  memory.raised = 0;
  log(request, decision(Rule::upgrade_draft, excess, options_.upgrade, static_cast<double>(memory.who)));
  return true;
}

bool AdaptivePolicy::downgrade(const Decoding& request, Memory& memory, double excess) const {
  if (memory.raised > 0) {
    --memory.raised;
  } else if (memory.who > 0) {
    --memory.who;
  } else {
    return false;
  }
  log(request, decision(Rule::downgrade, excess, options_.upgrade / 2, alpha_of(memory)));
  return true;
}

// Perplexities of the same tokens. What was decided is judged by tokens drawn after it.
void AdaptivePolicy::compare(const Decoding& request, Memory& memory) {
  for (const TokenChance& chance : request.chances) {
    memory.draft.add(-chance.draft);
    memory.target.add(-chance.target);
  }
  if (request.chances.empty() || !memory.draft.full()) return;
  const double excess = std::exp(memory.draft.mean() - memory.target.mean()) - 1;
  const bool failing = excess > options_.failure;
  if (failing && !memory.failing) log(request, decision(Rule::failure, excess, options_.failure, 1));
  memory.failing = failing;
  const bool changed = excess > options_.upgrade       ? upgrade(request, memory, excess)
                       : excess < options_.upgrade / 2 ? downgrade(request, memory, excess)
                                                       : false;
  if (!changed) return;
  memory.draft.restart(options_.compare);
  memory.target.restart(options_.compare);
}

void AdaptivePolicy::learn(std::span<const Decoding> requests, const PassTimes&) {
  for (const Decoding& request : requests) {
    if (request.drawn.empty()) continue;
    Memory& memory = memory_of(request);
    const int tokens = static_cast<int>(request.drawn.size());
    memory.since_gate += tokens;
    if (request.budget.nodes == 0) {
      memory.rested += tokens;
      continue;
    }
    const int submitted = request.tree->size() - 1;
    const int accepted = taken_of(*request.tree, request.drawn);
    judge_acceptance(request, memory, submitted, accepted);
    move_window(request, memory, accepted);
    compare(request, memory);
  }
}

// --- the table's rows ---

Status check_adaptive(const DrafterNode& expression, bool files) {
  COPPICE_TRY(const AdaptiveOptions options, read_adaptive_options(expression, files));
  if (files && !options.gate.empty()) COPPICE_TRY_STATUS(Gate::read(options.gate));
  return {};
}

Result<std::unique_ptr<Policy>> make_adaptive(const DrafterNode& expression, const PolicySetup& setup) {
  COPPICE_TRY(AdaptiveOptions options, read_adaptive_options(expression));
  std::optional<Gate> gate;
  if (!options.gate.empty()) {
    COPPICE_TRY(gate, Gate::read(options.gate));
    if (setup.target == nullptr) return fail("policy `adaptive`: a gate needs a model");
    if (Status fits = gate->check(*setup.target); !fits)
      return fail(fmt::format("policy `{}`: {}", expression.name, fits.error().message));
  }
  return std::make_unique<AdaptivePolicy>(std::move(options), setup, std::move(gate));
}

}  // namespace coppice::core
