// One cycle: guesses below the root, one pass over every node, the target's own draw at the root, and again
// at the child that somebody guessed, until nobody did. docs/architecture.md, "The whole idea in a dozen
// lines".
#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/os.h"
#include "engine/engine.h"

namespace coppice::core {
namespace {

void count_decisions(Stats& stats, const Decoding& decoding, bool drafts) {
  stats.wanted += static_cast<std::uint64_t>(decoding.wanted);
  stats.plain_cycles += decoding.tree->size() == 1 ? 1 : 0;
  stats.costly_cycles += drafts && decoding.budget.nodes > 0 && decoding.budget.costly ? 1 : 0;
  stats.probes += decoding.probe ? 1 : 0;
}

}  // namespace

bool Engine::step() {
  DefaultFloatScope scope;  // for the draws; a pass has its own (numerics 13)
  stop_those_who_must();
  admit();
  if (active_.empty()) return false;
  PassCosts pass;
  pass.start = setup_.clock();
  grow(pass);
  pass.grown = setup_.clock();
  collect_rows();
  const PassStats before = context_->stats();
  const Status passed = context_->forward(rows_);
  pass.verified = setup_.clock();
  const PassStats& after = context_->stats();
  pass.bytes =
      static_cast<double>(after.weight_bytes + after.kv_bytes - before.weight_bytes - before.kv_bytes);
  for (const auto& entry : active_) pass.drawing += draws(*entry) ? 1 : 0;
  for (auto& entry : active_) {
    Active& request = *entry;
    if (!passed) {
      fail_request(request, FailureKind::engine, passed.error());
    } else if (draws(request)) {
      charge(request, pass);
      accept(request, pass);
      request.generation.stats.decode_seconds += setup_.clock() - pass.start;
    } else {
      if (request.row_count > 0 && reads_features(request)) {
        shown_.resize(static_cast<std::size_t>(request.row_count));
        std::iota(shown_.begin(), shown_.end(), request.first_row);
        show_features(request, rows_[static_cast<std::size_t>(request.first_row)].position, shown_);
      }
      if (request.row_count > 0) note_state(request, request.first_row + request.row_count - 1);
      request.generation.stats.prefill_seconds += setup_.clock() - pass.start;
      report(request, static_cast<int>(request.generation.tokens.size()));
    }
  }
  learn(pass, passed.has_value());
  retire();
  return true;
}

bool Engine::draws(const Active& request) const {
  return request.row_count > 0 && (rows_[static_cast<std::size_t>(request.first_row)].wants & kLogits) != 0;
}

// Bytes are shared out by rows; the pass itself is counted for the first who draws in it, so that a sum over
// requests counts it once. Seconds are those that a request waited: they pass for everybody.
void Engine::charge(Active& request, PassCosts& pass) {
  Stats& stats = request.generation.stats;
  stats.draft_seconds += pass.grown - pass.start;
  stats.verify_seconds += pass.verified - pass.grown;
  stats.target_bytes +=
      static_cast<std::uint64_t>(pass.bytes * request.row_count / static_cast<double>(rows_.size()));
  stats.draft_bytes += pass.draft.bytes / static_cast<std::uint64_t>(pass.drawing);
  stats.target_passes += pass.counted ? 0 : 1;
  stats.draft_passes += pass.counted ? 0 : pass.draft.passes;
  stats.policy_seconds += pass.counted ? 0 : pass.deciding;
  pass.counted = true;
}

// Who decodes in this pass.
void Engine::collect_decoders() {
  decoding_.clear();
  decoders_.clear();
  for (auto& entry : active_) {
    Active& request = *entry;
    if (!request.decoding(context_->cache().length(request.sequence))) continue;
    request.tree.reset(request.tokens.back());
    Decoding decoding;
    decoding.slot = request.slot;
    decoding.limit = request.budget;
    decoding.length = static_cast<int>(request.tokens.size());
    decoding.tokens_left = request.limit - decoding.length;
    decoding.context_left = setup_.context - decoding.length;
    decoding.by_value = !request.rejection;
    decoding.tree = &request.tree;
    decoding.first = !request.planned;
    if (!request.planned && wants_.surprise > 0 && request.budget.nodes > 0)
      request.surprise =
          setup_.grower->surprise(request.slot, request.tokens, wants_.surprise, ~SourceMask{0});
    request.planned = true;
    decoding.surprise = request.surprise;
    decoding.state = request.state;
    request.log.cycle = request.generation.stats.cycles;
    decoding.log = &request.log;
    decoding_.push_back(decoding);
    decoders_.push_back(&request);
  }
}

void Engine::grow(PassCosts& pass) {
  collect_decoders();
  // Reading a prompt for the policy is drafting, not deciding: the draft would have read it anyway.
  const double collected = wants_.surprise > 0 ? setup_.clock() : pass.start;
  policy_->plan(decoding_);
  const double planned = setup_.clock();
  jobs_.clear();
  for (std::size_t i = 0; i < decoders_.size(); ++i) {
    GrowJob job;
    job.sequence = decoders_[i]->slot;
    job.committed = decoders_[i]->tokens;
    job.sampler = &decoders_[i]->sampler;
    job.budget = decoding_[i].budget;
    job.tree = &decoders_[i]->tree;
    if (job.budget.nodes > 0) jobs_.push_back(job);
  }
  if (setup_.grower && !jobs_.empty()) setup_.grower->grow(jobs_);
  for (std::size_t i = 0, j = 0; i < decoders_.size(); ++i)
    if (decoding_[i].budget.nodes > 0) decoding_[i].rejected = jobs_[j++].rejected;
  if (setup_.grower) pass.draft = setup_.grower->take_cost();
  drafted_ = pass.draft;
  const double grown = setup_.clock();
  for (Decoding& decoding : decoding_) decoding.wanted = decoding.tree->size() - 1;
  int unread = 0;
  for (const auto& entry : active_)
    unread += static_cast<int>(entry->tokens.size()) - 1 - context_->cache().length(entry->sequence);
  prompt_room_ = unread > 0 ? policy_->prompt_rows(decoding_, std::min(unread, setup_.chunk)) : 0;
  policy_->trim(decoding_, prompt_room_);
  pass.drafting = grown - planned + collected - pass.start;
  pass.deciding = planned - collected + setup_.clock() - grown;
}

void Engine::collect_rows() {
  rows_.clear();
  for (auto& entry : active_) entry->row_count = 0;
  for (Active* request : decoders_) add_tree_rows(*request);
  if (prompt_room_ > 0) add_prompts(prompt_room_);
}

// What the pass brought and took, for the policy.
void Engine::learn(PassCosts& pass, bool passed) {
  if (!passed || decoders_.empty()) return;
  const double start = setup_.clock();
  PassTimes times;
  times.drafting = pass.drafting;
  times.pass = pass.verified - pass.grown;
  times.draft = pass.draft;
  times.prompt_rows = prompt_room_;
  policy_->learn(decoding_, times);
  decoders_.front()->generation.stats.policy_seconds += setup_.clock() - start;
}

// The root is committed at once: it is a token of the answer. Node n > 0 goes to scratch slot n - 1.
void Engine::add_tree_rows(Active& request) {
  const TokenTree& tree = request.tree;
  const int root_position = static_cast<int>(request.tokens.size()) - 1;
  request.first_row = static_cast<int>(rows_.size());
  request.row_count = tree.size();
  for (int node = 0; node < tree.size(); ++node) {
    Row row;
    row.sequence = request.sequence;
    row.token = tree.token(node);
    row.position = root_position + tree.depth(node);
    row.slot = node == 0 ? kCommitted : node - 1;
    row.parent_slot = node == 0 || tree.parent(node) == 0 ? kCommitted : tree.parent(node) - 1;
    row.wants = kLogits | (reads_features(request) ? kFeatures : kNothing);
    rows_.push_back(row);
  }
}

// The walk down the tree. `committed` is the request's tokens before it: what is drawn on the way is appended
// to the same memory, which never moves, and is the path.
void Engine::accept(Active& request, PassCosts& pass) {
  const TokenTree& tree = request.tree;
  Stats& stats = request.generation.stats;
  const auto decoding =
      decoding_.begin() + (std::find(decoders_.begin(), decoders_.end(), &request) - decoders_.begin());
  const double start = setup_.clock();
  const int first = static_cast<int>(request.generation.tokens.size());
  int slots[kMaxTreeDepth + 1];
  int nodes[kMaxTreeDepth + 1];
  int depth = 0;
  int node = 0;
  Token last = kNoToken;
  request.chances.clear();
  while (true) {
    nodes[depth] = node;
    auto drawn = draw(request, node);
    if (!drawn) {
      fail_request(request, FailureKind::nothing_to_draw, drawn.error());  // a draw knows no other error
      break;
    }
    last = drawn->token;
    if (wants_.chances && decoding->budget.nodes > 0) note_chance(request, *decoding, node, last);
    const int child = tree.child(node, drawn->token);
    const auto at = static_cast<std::size_t>(std::min(depth, Stats::kDepths - 1));
    if (tree.first_child(node) != kNoNode) ++stats.reached_at_depth[at];
    int source = kFromTarget;
    if (child != kNoNode) {
      ++stats.accepted_at_depth[at];
      ++stats.accepted;
      for (std::size_t d = 0; d < stats.sources.size(); ++d) {
        if ((tree.sources(child) >> d & 1) == 0) continue;
        ++stats.sources[d].accepted;
        if (source == kFromTarget) source = static_cast<int>(d);
      }
    }
    const bool goes_on = append(request, *drawn, source);
    if (!goes_on || child == kNoNode) break;
    slots[depth++] = child - 1;
    node = child;
  }
  context_->cache().keep(request.sequence, std::span<const int>(slots, static_cast<std::size_t>(depth)));
  ++stats.cycles;
  count_decisions(stats, *decoding, drafts_);
  stats.guesses += static_cast<std::uint64_t>(tree.size() - 1);
  for (int n = 1; n < tree.size(); ++n) {
    for (std::size_t d = 0; d < stats.sources.size(); ++d)
      stats.sources[d].proposed += tree.sources(n) >> d & 1;
  }
  if (request.request.trace)
    trace(request, *decoding, std::span<const int>(nodes, static_cast<std::size_t>(depth + 1)), last);
  stats.sample_seconds += setup_.clock() - start;
  if (reads_features(request)) {
    // Every visited node that gave a token: the row of the token before it.
    shown_.resize(request.generation.tokens.size() - static_cast<std::size_t>(first));
    for (std::size_t d = 0; d < shown_.size(); ++d) shown_[d] = request.first_row + nodes[d];
    show_features(request, static_cast<int>(request.tokens.size() - 1 - shown_.size()), shown_);
  }
  note_state(request, request.first_row + node);
  const double drawn = setup_.clock();
  observe(request, first, decoding->budget.nodes > 0);
  pass.drafting += setup_.clock() - drawn;
  decoding->drawn = std::span<const Token>(request.tokens)
                        .last(request.generation.tokens.size() - static_cast<std::size_t>(first));
  decoding->chances = request.chances;
  report(request, first);
}

// The tokens at a node of this pass's tree: what was drawn on the way there has been appended.
PathState Engine::state_at(const Active& request, int node) const {
  const auto depth = static_cast<std::size_t>(request.tree.depth(node));
  const std::span<const Token> all = request.tokens;
  return {all.first(all.size() - depth), all.last(depth)};
}

// What target and draft thought of a token before it was drawn, where a draft was asked.
void Engine::note_chance(Active& request, const Decoding& decoding, int node, Token drawn) {
  const PathState state = state_at(request, node);
  const auto draft = setup_.grower->logprob(request.slot, state, drawn, decoding.budget.drafters);
  if (!draft) return;
  const int row = request.first_row + node;
  const LogitRow logits{context_->logits(row), context_->maxima(row)};
  request.chances.push_back({request.sampler.logprob(drawn, logits, state, scratch_), *draft});
}

// The residual stream at the token before the next root, for the policy.
void Engine::note_state(Active& request, int row) const {
  if (wants_.state_layer < 0 || !reads_features(request)) return;
  const std::vector<int>& layers = context_->options().feature_layers;
  const auto at = std::find(layers.begin(), layers.end(), wants_.state_layer) - layers.begin();
  const auto hidden = static_cast<std::size_t>(setup_.model->config().hidden);
  const auto features = context_->features(row).subspan(static_cast<std::size_t>(at) * hidden, hidden);
  request.state.assign(features.begin(), features.end());
}

Result<Draw> Engine::draw(Active& request, int node) {
  const TokenTree& tree = request.tree;
  const PathState state = state_at(request, node);
  std::span<const float> logits = context_->logits(request.first_row + node);
  if (setup_.on_logits) setup_.on_logits(request.id, state.index(), logits);
  const LogitRow row{logits, context_->maxima(request.first_row + node)};
  if (!request.rejection) {
    COPPICE_TRY(Draw drawn, request.sampler.draw(row, state, scratch_));
    const std::size_t at = request.generation.tokens.size();
    if (at >= request.request.forced.size()) return drawn;
    drawn.token = request.request.forced[at];
    if (request.sampler.options().logprobs < 0) return drawn;
    COPPICE_TRY_STATUS(request.sampler.distribution(row, state, scratch_));
    return request.sampler.describe(drawn.token, scratch_);
  }
  COPPICE_TRY_STATUS(request.sampler.distribution(row, state, scratch_));
  Token children[kMaxTreeNodes];
  std::size_t count = 0;
  for (int c = tree.first_child(node); c != kNoNode; c = tree.next_sibling(c))
    children[count++] = tree.token(c);
  // Where a draft offers its distribution its children were drawn from it; other guesses are point masses.
  Siblings siblings{{children, count}, {}};
  if (setup_.grower && count > 0) siblings.q = setup_.grower->distribution(request.slot, state);
  const Token token = request.rejection->decide(scratch_.probabilities, siblings, request.decisions).token;
  return request.sampler.describe(token, scratch_);
}

// One token of the answer. False: it was the last.
bool Engine::append(Active& request, const Draw& drawn, int source) {
  request.tokens.push_back(drawn.token);
  EmittedToken emitted;
  emitted.token = drawn.token;
  emitted.source = source;
  emitted.logprob = drawn.logprob;
  for (int i = 0; i < drawn.top; ++i) {
    const TokenLogprob& best = scratch_.top[static_cast<std::size_t>(i)];
    emitted.top.emplace_back(best.token, best.logprob);
  }
  request.generation.tokens.push_back(std::move(emitted));
  ++request.generation.stats.tokens;
  if (!request.sampler.options().ignore_eos && setup_.tokenizer->ends_text(drawn.token)) {
    finish(request, StopReason::end_of_text);
  } else if (request.text.push(drawn.token, request.fresh)) {
    finish(request, StopReason::stop_string);
  } else if (static_cast<int>(request.generation.tokens.size()) >= request.sampler.options().max_tokens) {
    finish(request, StopReason::max_tokens);
  } else if (static_cast<int>(request.tokens.size()) >= setup_.context) {
    finish(request, StopReason::context_full);
  }
  return !request.done;
}

bool Engine::reads_features(const Active& request) const {
  return request.budget.nodes > 0 && !context_->options().feature_layers.empty();
}

// What the target computed at `position` and behind it, for drafters that read its states.
void Engine::show_features(Active& request, int position, std::span<const int> rows) {
  if (rows.empty()) return;
  const double start = setup_.clock();
  features_.clear();
  for (const int row : rows) features_.push_back(context_->features(row).data());
  const Features features{position, features_, context_->options().feature_layers,
                          setup_.model->config().hidden};
  setup_.grower->see(request.slot, request.tokens, features);
  request.generation.stats.draft_seconds += setup_.clock() - start;
}

// Where nothing was to be guessed, drafters hear what was drawn and the mixer is not taught: plain decoding.
void Engine::observe(Active& request, int first, bool guessed) {
  if (!setup_.grower) return;
  const double start = setup_.clock();
  const std::span<const Token> all = request.tokens;
  const std::size_t accepted = request.generation.tokens.size() - static_cast<std::size_t>(first);
  if (guessed)
    setup_.grower->observe(request.slot, all.first(all.size() - accepted), all.last(accepted));
  else
    setup_.grower->accept(request.slot, all.last(accepted));
  // What drafters learn is their time too.
  request.generation.stats.draft_seconds += setup_.clock() - start;
}

void Engine::trace(Active& request, const Decoding& decoding, std::span<const int> path, Token drawn) {
  const TokenTree& tree = request.tree;
  request.trace.nodes.clear();
  for (int n = 0; n < tree.size(); ++n) {
    const bool taken = std::find(path.begin(), path.end(), n) != path.end();
    request.trace.nodes.push_back(
        {tree.token(n), n == 0 ? -1 : tree.parent(n), tree.value(n), tree.sources(n), taken});
  }
  request.trace.drawn = drawn;
  request.trace.draft_passes = drafted_.passes;
  request.trace.draft_rows = drafted_.rows;
  request.trace.wanted = decoding.wanted;
  request.trace.costly = drafts_ && decoding.budget.nodes > 0 && decoding.budget.costly;
  request.trace.probe = decoding.probe;
}

// Tells the caller what this pass brought.
void Engine::report(Active& request, int first) {
  Event event;
  event.request = request.id;
  event.tokens =
      std::span<const EmittedToken>(request.generation.tokens).subspan(static_cast<std::size_t>(first));
  event.text = request.fresh;
  event.decisions = request.log.recent;
  request.generation.text += request.fresh;
  if (request.request.trace && !event.tokens.empty()) event.tree = &request.trace;
  const double before_root = static_cast<double>(request.prompt) - 1;
  if (event.tokens.empty() && before_root > 0) {
    event.prefill = context_->cache().length(request.sequence) / before_root;
  }
  if (request.request.on_event && !request.request.on_event(event)) request.cancelled = true;
  request.fresh.clear();
  request.log.recent.clear();
  if (request.cancelled && !request.done) finish(request, StopReason::cancelled);
}

}  // namespace coppice::core
