#include "draft/model_drafter.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "model/slim.h"

namespace coppice::core {
int width_for(const Model& model, float capacity) {
  const std::span<const Variant> variants = model.variants();
  int nearest = 0;
  for (int w = 1; w <= model.whole(); ++w)
    if (std::abs(variants[w].factor - capacity) < std::abs(variants[nearest].factor - capacity)) nearest = w;
  return nearest;
}

int variant_for(const Model& model, const Budget& budget) {
  const auto variants = model.variants();
  if (budget.exit && variants.back().name == "exit") return static_cast<int>(variants.size()) - 1;
  return width_for(model, budget.capacity);
}

ModelDrafter::ModelDrafter(std::unique_ptr<Context> context, std::unique_ptr<Grower> inner,
                           const Options& options)
    : context_(std::move(context)),
      inner_(std::move(inner)),
      options_(options),
      sequences_(static_cast<std::size_t>(options.sequences)),
      scratch_(context_->model().config().vocab) {
  if (inner_)
    for (const auto& drafter : inner_->drafters()) drafter->serve_a_draft();
  plain_ = *Sampler::make({}, context_->model().config().vocab, {});
  variants_ = static_cast<int>(context_->model().variants().size());
  limit_ = std::min(options.context, context_->model().config().context_length);
  for (Sequence& s : sequences_) {
    s.said.resize(kMaxTreeNodes);
    s.wanted.resize(kMaxTreeNodes);
    s.from.reserve(kMaxTreeNodes);
    s.tokens.reserve(static_cast<std::size_t>(limit_));
  }
  const std::size_t nodes = sequences_.size() * kMaxTreeNodes;
  nodes_.reserve(nodes);
  touched_.reserve(sequences_.size());
  sizes_.reserve(sequences_.size());
  jobs_.reserve(sequences_.size());
  rows_.reserve(nodes + static_cast<std::size_t>(limit_) * sequences_.size());
  places_.reserve(rows_.capacity());
  slots_.reserve(kMaxTreeDepth + 1);
}

Result<std::unique_ptr<ModelDrafter>> ModelDrafter::make(std::shared_ptr<const Model> model,
                                                         std::unique_ptr<Grower> inner,
                                                         const Options& options, ThreadPool& pool) {
  ContextOptions context;
  context.max_rows = kPassRows;
  context.max_logits = kPassRows;
  context.window = options.window;
  context.kv.type = options.cache_type;
  context.kv.sequences = options.sequences;
  const int blocks = (options.context + kBlockPositions - 1) / kBlockPositions;
  context.kv.positions = options.sequences * blocks * kBlockPositions;
  context.kv.slots = kMaxTreeNodes - 1;
  context.longest = options.context;
  COPPICE_TRY(auto made, Context::make(std::move(model), context, pool));
  std::unique_ptr<ModelDrafter> drafter(new ModelDrafter(std::move(made), std::move(inner), options));
  for (Sequence& s : drafter->sequences_) {
    COPPICE_TRY(s.cache, drafter->context_->cache().open());
  }
  return drafter;
}

// --- the life of a sequence ---

Status ModelDrafter::begin(int sequence, std::span<const Token> tokens, const Sampler& sampler) {
  Sequence& s = sequences_[sequence];
  COPPICE_CHECK(!s.open && !tokens.empty());
  s.offers_q = sampler.rejects() && !serves_a_draft_;
  if (s.offers_q && !s.q) COPPICE_TRY_STATUS(make_room_for_q(s.q, vocab(), options_.name));
  if (inner_) COPPICE_TRY_STATUS(inner_->begin(sequence, tokens, sampler));
  // What the last request here began with stays; the root is always computed anew, for its logits.
  const std::size_t most = std::min(
      {s.tokens.size(), tokens.size() - 1, static_cast<std::size_t>(context_->cache().length(s.cache))});
  const auto differ =
      std::mismatch(s.tokens.begin(), s.tokens.begin() + static_cast<std::ptrdiff_t>(most), tokens.begin());
  context_->cache().rewind(s.cache, static_cast<int>(differ.first - s.tokens.begin()));
  s.tokens.assign(tokens.begin(),
                  tokens.begin() + static_cast<std::ptrdiff_t>(std::min(tokens.size(), s.tokens.capacity())));
  s.open = true;
  s.stopped = false;
  s.length = static_cast<int>(tokens.size());
  s.tree.reset(tokens.back());
  for (Node& said : s.said) said.known = false, said.asked = kNoNode;
  return {};
}

void ModelDrafter::end(int sequence) {
  if (inner_) inner_->end(sequence);
  // Slots are free again; committed positions stay for a request that begins in the same way.
  Sequence& s = sequences_[sequence];
  context_->cache().keep(s.cache, {});
  s.open = false;
}

void ModelDrafter::observe(int sequence, std::span<const Token> accepted) {
  Sequence& s = sequences_[sequence];
  if (accepted.empty()) return;
  if (inner_) {
    teach_inner(sequence);
    inner_->accept(sequence, accepted);
  }
  // What was computed on the accepted path stays, what was said at its end too.
  slots_.clear();
  int node = 0;
  for (const Token token : accepted) {
    const int child = s.said[node].known ? s.tree.child(node, token) : kNoNode;
    if (child == kNoNode || !s.said[child].known) break;
    slots_.push_back(child - 1);
    node = child;
  }
  const int kept = static_cast<int>(slots_.size());
  if (kept > 0 && !context_->cache().reserve(s.cache, s.length + kept)) {
    slots_.clear();
    s.stopped = true;
  }
  context_->cache().keep(s.cache, slots_);
  const bool root_known = !s.stopped && kept == static_cast<int>(accepted.size());
  if (root_known) {
    s.said[0] = s.said[node];
    if (s.said[0].has_q && node != 0) std::copy_n(q_of(s, node), vocab(), q_of(s, 0));
  }
  for (int n = 0; n < s.tree.size(); ++n) {
    s.said[n].known = n == 0 && root_known;
    s.said[n].asked = kNoNode;
  }
  s.tree.reset(accepted.back());
  s.length += static_cast<int>(accepted.size());
  for (const Token token : accepted)
    if (s.tokens.size() < s.tokens.capacity()) s.tokens.push_back(token);
}

// The inner grower guesses the draft, so the draft's own choice is what it is taught, at every node. Where
// guesses are drawn from q, that is the first drawn one that somebody wanted continued.
void ModelDrafter::teach_inner(int sequence) {
  const Sequence& s = sequences_[sequence];
  std::array<Token, kMaxTreeDepth> path;
  for (int node = 0; node < s.tree.size(); ++node) {
    const Node& said = s.said[node];
    if (!said.known || said.count == 0 || (said.has_q && said.asked == kNoNode)) continue;
    const auto depth = static_cast<std::size_t>(s.tree.path(node, path.data()));
    inner_->teach(sequence, {path.data(), depth}, said.has_q ? s.tree.token(said.asked) : said.top[0].token);
  }
}

PassCost ModelDrafter::take_cost() {
  PassCost cost = inner_ ? inner_->take_cost() : PassCost{};
  return cost += take_cost_of(*context_);
}

// --- asking ---

// A full context: the draft stops guessing, the target goes on.
bool ModelDrafter::out_of_reach(const Sequence& s, const PathState& at) const {
  return s.stopped || at.index() > limit_;
}

bool ModelDrafter::knows(const Query& query) const {
  const Sequence& s = sequences_[query.sequence];
  if (out_of_reach(s, query.state)) return true;
  const int node = s.tree.find(query.state.path);
  return node == kNoNode ? s.tree.size() == s.tree.capacity() : s.said[node].known;
}

// The node of a query in this stage's memory, put there if need be. kNoNode: cannot be answered.
int ModelDrafter::place(const Query& query) {
  Sequence& s = sequences_[query.sequence];
  COPPICE_CHECK(s.open && static_cast<int>(query.state.committed.size()) == s.length);
  if (out_of_reach(s, query.state)) return kNoNode;
  s.committed = query.state.committed;
  s.sampler = query.sampler;
  s.variant =
      options_.variant != kByCapacity ? options_.variant : variant_for(context_->model(), query.budget);
  int node = 0;
  for (const Token token : query.state.path) {
    // The value of what was guessed is now known better, but never above its parent's.
    const int child = s.tree.add(node, token, 1.0f, query.value, 0);
    if (child == kNoNode) return kNoNode;
    if (s.said[node].asked == kNoNode) s.said[node].asked = child;
    node = child;
  }
  return node;
}

void ModelDrafter::want(int sequence, int node) {
  Sequence& s = sequences_[sequence];
  if (s.said[node].known) return;
  if (std::find(touched_.begin(), touched_.end(), sequence) == touched_.end()) {
    touched_.push_back(sequence);
    s.from.clear();
    std::fill(s.wanted.begin(), s.wanted.end(), std::uint8_t{0});
  }
  if (std::find(s.from.begin(), s.from.end(), node) == s.from.end()) s.from.push_back(node);
  for (int n = node; n != kNoNode && !s.said[n].known && s.wanted[n] == 0; n = s.tree.parent(n))
    s.wanted[n] = 1;
}

void ModelDrafter::predict(std::span<Query> queries) {
  nodes_.clear();
  touched_.clear();
  for (const Query& query : queries) nodes_.push_back(place(query));
  for (std::size_t i = 0; i < queries.size(); ++i)
    if (nodes_[i] != kNoNode) want(queries[i].sequence, nodes_[i]);
  if (!touched_.empty()) {
    guess();
    for (int variant = 0; variant < variants_; ++variant) {
      add_rows(variant);
      if (rows_.empty()) continue;
      context_->set_variant(variant);
      run_rows();
    }
  }
  for (std::size_t i = 0; i < queries.size(); ++i) {
    Query& query = queries[i];
    query.count = 0;
    if (nodes_[i] == kNoNode) continue;
    const Said& said = sequences_[query.sequence].said[nodes_[i]];
    if (!said.known) continue;
    answer(said, query);
  }
}

// The inner grower's guesses of the draft's next levels, for all sequences together.
void ModelDrafter::guess() {
  sizes_.clear();
  jobs_.clear();
  for (const int sequence : touched_) {
    Sequence& s = sequences_[sequence];
    sizes_.push_back(s.tree.size());
    GrowJob job;
    job.sequence = sequence;
    job.committed = s.committed;
    job.sampler = s.sampler;
    job.budget = options_.inner;
    job.tree = &s.tree;
    job.from = s.from;
    jobs_.push_back(job);
  }
  if (inner_) inner_->grow(jobs_);
}

// --- the pass ---

void ModelDrafter::add_node_row(int sequence, int node) {
  const Sequence& s = sequences_[sequence];
  const int parent = s.tree.parent(node);
  Row row;
  row.sequence = s.cache;
  row.token = s.tree.token(node);
  row.position = s.length - 1 + s.tree.depth(node);
  row.slot = node - 1;
  row.parent_slot = parent == 0 ? kCommitted : parent - 1;
  row.wants = kLogits;
  rows_.push_back(row);
  places_.push_back({sequence, node});
}

// Accepted tokens that were not computed, the root last.
void ModelDrafter::catch_up(int sequence) {
  Sequence& s = sequences_[sequence];
  KvCache& cache = context_->cache();
  if (cache.length(s.cache) >= s.length) cache.rewind(s.cache, s.length - 1);
  if (!cache.reserve(s.cache, s.length)) {
    s.stopped = true;
    return;
  }
  for (int position = cache.length(s.cache); position < s.length; ++position) {
    Row row;
    row.sequence = s.cache;
    row.token = s.committed[position];
    row.position = position;
    row.wants = position == s.length - 1 ? kLogits : kNothing;
    rows_.push_back(row);
    places_.push_back({sequence, 0});
  }
}

// Of the sequences that are to be run as this variant of the model.
void ModelDrafter::add_rows(int variant) {
  rows_.clear();
  places_.clear();
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    const int sequence = touched_[i];
    if (sequences_[sequence].variant != variant) continue;
    if (sequences_[sequence].wanted[0] != 0) catch_up(sequence);
    if (sequences_[sequence].stopped) continue;
    for (int node = 1; node < sizes_[i]; ++node)
      if (sequences_[sequence].wanted[node] != 0) add_node_row(sequence, node);
  }
  // Guesses fill the last pass that is needed anyway.
  const std::size_t room = (rows_.size() + kPassRows - 1) / kPassRows * kPassRows;
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    const Sequence& s = sequences_[touched_[i]];
    if (s.stopped || s.variant != variant) continue;
    for (int node = 1; node < s.tree.size() && rows_.size() < room; ++node) {
      if (s.said[node].known || s.wanted[node] != 0) continue;
      const int parent = s.tree.parent(node);
      const bool computed = s.said[parent].known || s.wanted[parent] != 0;
      if (!computed || s.length + s.tree.depth(node) > limit_) continue;
      sequences_[touched_[i]].wanted[node] = 1;
      add_node_row(touched_[i], node);
    }
  }
}

void ModelDrafter::run_rows() {
  for (std::size_t at = 0; at < rows_.size(); at += kPassRows) {
    const std::size_t n = std::min<std::size_t>(kPassRows, rows_.size() - at);
    if (!context_->forward({&rows_[at], n})) {
      // A value that is not finite: this draft is of no use to these requests. Their text does not change.
      for (const int sequence : touched_) sequences_[sequence].stopped = true;
      return;
    }
    for (std::size_t r = 0; r < n; ++r)
      if ((rows_[at + r].wants & kLogits) != 0) listen(static_cast<int>(r), places_[at + r]);
  }
}

void ModelDrafter::listen(int row, const Place& place) {
  Sequence& s = sequences_[place.sequence];
  std::array<Token, kMaxTreeDepth> path;
  const auto depth = static_cast<std::size_t>(s.tree.path(place.node, path.data()));
  const LogitRow logits{context_->logits(row), context_->maxima(row)};
  core::listen(s.said[place.node], *s.sampler, logits, {s.committed, {path.data(), depth}}, scratch_,
               s.offers_q ? q_of(s, place.node) : nullptr);
}

DrafterTrouble ModelDrafter::trouble(int sequence) const {
  DrafterTrouble all;
  if (inner_ == nullptr) return all;
  for (const auto& drafter : inner_->drafters()) {
    const DrafterTrouble one = drafter->trouble(sequence);
    if (all.times == 0) all.first = one.first;
    all.times += one.times;
  }
  return all;
}

std::span<const float> ModelDrafter::distribution(const Query& query) const {
  const Sequence& s = sequences_[query.sequence];
  const int node = s.offers_q ? s.tree.find(query.state.path) : kNoNode;
  if (node == kNoNode || !s.said[node].known || !s.said[node].has_q) return {};
  return {s.q.get() + static_cast<std::size_t>(node) * vocab(), vocab()};
}

void ModelDrafter::describe(const Query& query, std::span<const Token> tokens, float* out, int stride) {
  const Sequence& s = sequences_[query.sequence];
  const int node = out_of_reach(s, query.state) ? kNoNode : s.tree.find(query.state.path);
  if (node == kNoNode || !s.said[node].known) return;
  core::describe(s.said[node], tokens, out, stride);
}

}  // namespace coppice::core
