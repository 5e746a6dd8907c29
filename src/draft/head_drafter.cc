#include "draft/head_drafter.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "text/vocabulary.h"

namespace coppice::core {
namespace {

constexpr int kPassRows = 64;  // of one pass, all sequences together; more is several passes
constexpr int kWaiting = 64;   // positions shown and not computed yet; a full prompt chunk goes in pieces

}  // namespace

HeadDrafter::HeadDrafter(std::unique_ptr<HeadContext> context, const Options& options)
    : context_(std::move(context)),
      lanes_(static_cast<std::size_t>(options.sequences) * 2),
      sequences_(static_cast<std::size_t>(options.sequences)),
      scratch_(context_->model().config().block.vocab) {
  const HeadConfig& config = context_->model().config();
  hidden_ = config.block.hidden;
  features_ = config.features();
  limit_ = std::min(options.context, config.block.context_length);
  feature_at_.resize(config.feature_layers.size());
  for (Lane& lane : lanes_) {
    lane.tokens.reserve(static_cast<std::size_t>(options.context) + 1);
    lane.waiting.resize(static_cast<std::size_t>(kWaiting) * static_cast<std::size_t>(features_));
  }
  for (Sequence& s : sequences_) {
    s.said.resize(kMaxTreeNodes);
    s.hidden.resize(static_cast<std::size_t>(kMaxTreeNodes) * static_cast<std::size_t>(hidden_));
    s.wanted.resize(kMaxTreeNodes);
  }
  nodes_.reserve(sequences_.size() * kMaxTreeNodes);
  touched_.reserve(sequences_.size());
  rows_.reserve(sequences_.size() * (kMaxTreeNodes + kWaiting));
  places_.reserve(rows_.capacity());
}

Result<std::unique_ptr<HeadDrafter>> HeadDrafter::make(std::shared_ptr<const HeadModel> model,
                                                       const Options& options, ThreadPool& pool) {
  ContextOptions context;
  context.max_rows = context.max_logits = kPassRows;
  context.kv.type = options.cache_type;
  context.kv.sequences = 2 * options.sequences;  // as many of requests that are over
  const int blocks = (options.context + kBlockPositions - 1) / kBlockPositions;
  context.kv.positions = context.kv.sequences * blocks * kBlockPositions;
  context.kv.slots = kMaxTreeNodes - 1;
  COPPICE_TRY(auto made, HeadContext::make(std::move(model), context, pool));
  std::unique_ptr<HeadDrafter> drafter(new HeadDrafter(std::move(made), options));
  for (Lane& lane : drafter->lanes_) {
    COPPICE_TRY(lane.cache, drafter->context_->cache().open());
  }
  return drafter;
}

// --- the life of a sequence ---

Status HeadDrafter::begin(int sequence, std::span<const Token> tokens, const Sampler& sampler) {
  Sequence& s = sequences_[sequence];
  COPPICE_CHECK(!s.open && !tokens.empty());
  s.offers_q = sampler.rejects();
  if (s.offers_q && !s.q) COPPICE_TRY_STATUS(make_room_for_q(s.q, vocab(), "head"));
  s.lane = &take_lane(tokens);
  s.open = true;
  s.stopped = false;
  s.length = static_cast<int>(tokens.size());
  s.tree.reset(tokens.back());
  for (Said& said : s.said) said.known = false;
  return {};
}

// The free lane that begins most like these tokens, of equal ones that which was left longest ago. Row p
// stays where tokens 0 .. p + 1 are the same.
HeadDrafter::Lane& HeadDrafter::take_lane(std::span<const Token> tokens) {
  Lane* best = nullptr;
  int most = 0;
  for (Lane& lane : lanes_) {
    if (lane.taken) continue;
    int same = 0;
    const int end = static_cast<int>(std::min(lane.tokens.size(), tokens.size()));
    while (same < end &&
           lane.tokens[static_cast<std::size_t>(same)] == tokens[static_cast<std::size_t>(same)])
      ++same;
    const int usable = lane.base > 0 ? 0 : std::clamp(same - 1, 0, next_position(lane));
    if (best != nullptr && (usable < most || (usable == most && lane.age >= best->age))) continue;
    best = &lane;
    most = usable;
  }
  COPPICE_CHECK(best != nullptr);  // there are twice as many as sequences
  if (best->base > 0) restart(*best, 0);
  cut(*best, most);
  best->taken = true;
  best->tokens.assign(tokens.begin(), tokens.end());
  return *best;
}

// Forgets what it knows of `position` and behind it.
void HeadDrafter::cut(Lane& lane, int position) {
  const int cached = rows_of(lane);
  lane.waiting_count = std::max(0, position - lane.base - cached);
  if (position - lane.base < cached) context_->cache().rewind(lane.cache, position - lane.base);
}

void HeadDrafter::restart(Lane& lane, int position) {
  context_->cache().rewind(lane.cache, 0);
  lane.base = position;
  lane.waiting_count = 0;
}

void HeadDrafter::end(int sequence) {
  Sequence& s = sequences_[sequence];
  context_->cache().keep(s.lane->cache, {});
  s.lane->taken = false;
  s.lane->age = ++clock_;
  s.lane = nullptr;
  s.open = false;
}

void HeadDrafter::see(int sequence, std::span<const Token> committed, const Features& shown) {
  Sequence& s = sequences_[sequence];
  Lane& lane = *s.lane;
  if (s.stopped) return;
  if (committed.size() > lane.tokens.size() && committed.size() <= lane.tokens.capacity())
    lane.tokens.insert(lane.tokens.end(), committed.begin() + static_cast<std::ptrdiff_t>(lane.tokens.size()),
                       committed.end());
  const std::vector<int>& layers = context_->model().config().feature_layers;
  for (std::size_t f = 0; f < layers.size(); ++f)
    feature_at_[f] = static_cast<int>(std::find(shown.layers.begin(), shown.layers.end(), layers[f]) -
                                      shown.layers.begin());
  const auto width = static_cast<std::size_t>(shown.hidden);
  for (std::size_t i = 0; i < shown.rows.size(); ++i) {
    const int position = shown.position + static_cast<int>(i);
    // Of its own cache; but the row that answers at the root must run again to say anything.
    if (position == s.length - 2 && position == next_position(lane) - 1) cut(lane, position);
    if (position < next_position(lane)) continue;
    if (position >= limit_) return;
    if (position > next_position(lane)) restart(lane, position);
    if (lane.waiting_count == kWaiting && !run_all_but_last(lane)) {
      s.stopped = true;
      return;
    }
    float* to = lane.waiting.data() +
                static_cast<std::size_t>(lane.waiting_count++) * static_cast<std::size_t>(features_);
    for (std::size_t f = 0; f < layers.size(); ++f)
      std::copy_n(shown.rows[i] + static_cast<std::size_t>(feature_at_[f]) * width, width, to + f * width);
  }
}

// The last one stays: it may be what answers at the root.
bool HeadDrafter::run_all_but_last(Lane& lane) {
  const int count = lane.waiting_count - 1;
  rows_.clear();
  add_waiting(lane, count);
  const bool fits = context_->cache().reserve(lane.cache, rows_of(lane) + count).has_value();
  if (!fits || !context_->forward(rows_)) {
    restart(lane, 0);
    return false;
  }
  std::copy_n(waiting(lane, count), features_, lane.waiting.data());
  lane.waiting_count = 1;
  return true;
}

void HeadDrafter::add_waiting(const Lane& lane, int count) {
  for (int i = 0; i < count; ++i) {
    HeadRow row;
    row.row.sequence = lane.cache;
    row.row.position = rows_of(lane) + i;
    row.position = lane.base + row.row.position;
    row.row.token = lane.tokens[static_cast<std::size_t>(row.position) + 1];
    row.features = waiting(lane, i);
    rows_.push_back(row);
  }
}

void HeadDrafter::observe(int sequence, std::span<const Token> accepted) {
  Sequence& s = sequences_[sequence];
  if (accepted.empty()) return;
  context_->cache().keep(s.lane->cache, {});
  for (int n = 0; n < s.tree.size(); ++n) s.said[n].known = false;
  s.tree.reset(accepted.back());
  s.length += static_cast<int>(accepted.size());
}

std::size_t HeadDrafter::pass_bytes() const {
  const HeadWeights& w = context_->model().weights();
  std::size_t bytes = context_->model().output().packed.bytes();
  for (const WeightMatrix* matrix :
       {&w.fc, &w.query, &w.key, &w.value, &w.attention_output, &w.gate, &w.up, &w.down})
    bytes += matrix->packed.bytes();
  return bytes;
}

PassCost HeadDrafter::take_cost() { return take_cost_of(*context_); }

// --- asking ---

// It answered at the root, or was shown the position before it and has not computed it yet.
bool HeadDrafter::can_answer(const Sequence& s) const {
  return s.said[0].known || (s.lane->waiting_count > 0 && next_position(*s.lane) == s.length - 1);
}

// A full context, or states nobody showed: the head does not guess, the target goes on.
bool HeadDrafter::out_of_reach(const Sequence& s, const PathState& at) const {
  return s.stopped || at.index() > limit_ || !can_answer(s);
}

bool HeadDrafter::knows(const Query& query) const {
  const Sequence& s = sequences_[query.sequence];
  if (out_of_reach(s, query.state)) return true;
  const int node = s.tree.find(query.state.path);
  return node == kNoNode ? s.tree.size() == s.tree.capacity() : s.said[node].known;
}

// The node of a query in the head's memory, put there if need be. kNoNode: cannot be answered.
int HeadDrafter::place(const Query& query) {
  Sequence& s = sequences_[query.sequence];
  COPPICE_CHECK(s.open && static_cast<int>(query.state.committed.size()) == s.length);
  if (out_of_reach(s, query.state)) return kNoNode;
  s.committed = query.state.committed;
  s.sampler = query.sampler;
  int node = 0;
  for (const Token token : query.state.path)
    if ((node = s.tree.add(node, token, 1.0f, 1.0f, 0)) == kNoNode) break;
  return node;
}

void HeadDrafter::want(int sequence, int node) {
  Sequence& s = sequences_[sequence];
  if (s.said[node].known) return;
  if (std::find(touched_.begin(), touched_.end(), sequence) == touched_.end()) {
    touched_.push_back(sequence);
    std::fill(s.wanted.begin(), s.wanted.end(), std::uint8_t{0});
  }
  for (int n = node; n != kNoNode && !s.said[n].known && s.wanted[n] == 0; n = s.tree.parent(n))
    s.wanted[n] = 1;
}

void HeadDrafter::predict(std::span<Query> queries) {
  nodes_.clear();
  touched_.clear();
  for (const Query& query : queries) nodes_.push_back(place(query));
  for (std::size_t i = 0; i < queries.size(); ++i)
    if (nodes_[i] != kNoNode) want(queries[i].sequence, nodes_[i]);
  // A grower asks level by level, so this is one pass. A node whose parent was never asked about takes more.
  do {
    rows_.clear();
    places_.clear();
    for (const int sequence : touched_) add_rows(sequence);
  } while (!rows_.empty() && run_rows());
  for (std::size_t i = 0; i < queries.size(); ++i) {
    queries[i].count = 0;
    if (nodes_[i] == kNoNode) continue;
    const Said& said = sequences_[queries[i].sequence].said[nodes_[i]];
    if (said.known) answer(said, queries[i]);
  }
}

// --- the pass ---

// What this sequence needs and can have now: the root with all that waits before it, or nodes whose parent
// spoke.
void HeadDrafter::add_rows(int sequence) {
  Sequence& s = sequences_[sequence];
  if (s.stopped) return;
  if (s.wanted[0] != 0) {
    const Lane& lane = *s.lane;
    if (!context_->cache().reserve(lane.cache, rows_of(lane) + lane.waiting_count)) {
      s.stopped = true;
      return;
    }
    add_waiting(lane, lane.waiting_count);
    rows_.back().row.wants = kLogits;
    places_.resize(rows_.size(), {sequence, 0});
    return;
  }
  for (int node = 1; node < s.tree.size(); ++node)
    if (s.wanted[node] != 0 && s.said[s.tree.parent(node)].known) add_node_row(sequence, node);
}

void HeadDrafter::add_node_row(int sequence, int node) {
  Sequence& s = sequences_[sequence];
  const int parent = s.tree.parent(node);
  HeadRow row;
  row.row.sequence = s.lane->cache;
  row.row.token = s.tree.token(node);
  row.position = s.length - 2 + s.tree.depth(node);
  row.row.position = row.position - s.lane->base;
  row.row.slot = node - 1;
  row.row.parent_slot = parent == 0 ? kCommitted : parent - 1;
  row.row.wants = kLogits;
  row.hidden = hidden_of(s, parent);
  rows_.push_back(row);
  places_.push_back({sequence, node});
}

bool HeadDrafter::run_rows() {
  for (std::size_t at = 0; at < rows_.size(); at += kPassRows) {
    const std::size_t n = std::min<std::size_t>(kPassRows, rows_.size() - at);
    if (!context_->forward({&rows_[at], n})) {
      // A value that is not finite: this head is of no use to these requests. Their text does not change.
      for (const int sequence : touched_) sequences_[sequence].stopped = true;
      return false;
    }
    for (std::size_t r = 0; r < n; ++r)
      if (rows_[at + r].row.wants != kNothing) hear(static_cast<int>(r), places_[at + r]);
  }
  return true;
}

void HeadDrafter::hear(int row, const Place& place) {
  Sequence& s = sequences_[place.sequence];
  if (place.node == 0) s.lane->waiting_count = 0;  // all of it was computed on the way to the root
  s.wanted[place.node] = 0;
  std::array<Token, kMaxTreeDepth> path;
  const auto depth = static_cast<std::size_t>(s.tree.path(place.node, path.data()));
  std::copy_n(context_->hidden(row).begin(), hidden_, hidden_of(s, place.node));
  const LogitRow logits{context_->logits(row), context_->maxima(row)};
  listen(s.said[place.node], *s.sampler, logits, {s.committed, {path.data(), depth}}, scratch_,
         s.offers_q ? q_of(s, place.node) : nullptr);
}

std::span<const float> HeadDrafter::distribution(const Query& query) const {
  const Sequence& s = sequences_[query.sequence];
  const int node = s.offers_q ? s.tree.find(query.state.path) : kNoNode;
  if (node == kNoNode || !s.said[node].known || !s.said[node].has_q) return {};
  return {s.q.get() + static_cast<std::size_t>(node) * vocab(), vocab()};
}

void HeadDrafter::describe(const Query& query, std::span<const Token> tokens, float* out, int stride) {
  const Sequence& s = sequences_[query.sequence];
  const int node = out_of_reach(s, query.state) ? kNoNode : s.tree.find(query.state.path);
  if (node == kNoNode || !s.said[node].known) return;
  core::describe(s.said[node], tokens, out, stride);
}

// --- the registry's row ---

Result<std::unique_ptr<Drafter>> make_head(const DrafterNode& node, const DraftEnvironment& environment) {
  const std::string& path = node.files[0];
  if (environment.for_a_draft)
    return fail(
        "head(" + path +
        ") reads the target's own states, so it cannot guess for a draft inside a stage; write it beside "
        "the stage");
  COPPICE_CHECK(environment.target != nullptr && environment.pool != nullptr &&
                environment.vocabulary != nullptr);
  COPPICE_TRY(auto file, gguf::File::open(path));
  if (file->find("tokenizer.ggml.tokens") != nullptr) {
    COPPICE_TRY(const auto vocabulary, Vocabulary::read(*file));
    if (Status same = same_vocabulary(*environment.vocabulary, vocabulary); !same)
      return fail("the head " + path + " cannot guess for this model: " + same.error().message);
  }
  COPPICE_TRY(auto model, HeadModel::load(*file, environment.target, *environment.pool));
  HeadDrafter::Options options;
  options.sequences = environment.sequences;
  options.context = environment.context;
  options.cache_type = environment.cache_type;
  COPPICE_TRY(auto made, HeadDrafter::make(std::move(model), options, *environment.pool));
  return std::unique_ptr<Drafter>(std::move(made));
}

}  // namespace coppice::core
