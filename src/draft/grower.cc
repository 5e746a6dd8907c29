// Best-first growth. A job keeps what it has grown in a list of its own; only the best budget.nodes of it
// enter the caller's tree, at the end. A node is worth having when fewer than budget.nodes better ones are
// known: values never rise on the way down, so the N-th best value so far is a floor for everything to come,
// also while nodes wait for a pass of a costly drafter.
//
// Without early stopping the tree does not depend on what costly drafters happened to know in advance: every
// node above the final floor has been asked about, the rest is dropped, and the order of nodes is that of
// their values. What is learned from a visited node does not depend on it either: see write().
#include "draft/grower.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>

#include "draft/grower_state.h"

namespace coppice::core {

using namespace growing;

// A node of a job: its sequence, path and value.
void Grower::State::set_query(Asking& asking, int i, const Ask& ask) {
  const JobState& state = jobs[ask.job];
  std::array<Token, kMaxTreeDepth> path;
  int above = ask.grown;
  int length = 0;
  while (state.grown[above].parent != kStart) above = state.grown[above].parent, ++length;
  const int start = state.grown[above].tree_node;
  length += state.job->tree->depth(start);
  int at = length;
  for (int g = ask.grown; g != above; g = state.grown[g].parent) path[--at] = state.grown[g].token;
  state.job->tree->path(start, path.data());
  Query query;
  query.sequence = state.job->sequence;
  query.state = {state.job->committed, {path.data(), static_cast<std::size_t>(length)}};
  query.sampler = sequences[query.sequence].sampler;
  query.value = state.grown[ask.grown].value;
  query.budget = state.job->budget;
  asking.set(i, query);
}

// --- growing ---

void Grower::State::expand(Asking& asking, std::span<const Ask> asks, bool with_costly) {
  const int n = static_cast<int>(asks.size());
  for (int i = 0; i < n; ++i) set_query(asking, i, asks[i]);
  asking.ask(n, with_costly);
  for (int i = 0; i < n; ++i) {
    const Query& query = asking.query(i);
    if (with_costly && draw_children(jobs[asks[i].job], asks[i].grown, query)) continue;
    std::array<float, kMaxUnion> chances;
    Opinions opinions = asking.gather(i, sequences[query.sequence].store);
    sequences[query.sequence].mixture.chances(opinions, query.state, *query.sampler, chances.data());
    push_children(jobs[asks[i].job], asks[i].grown, opinions, chances.data());
  }
}

void Grower::State::push_children(JobState& state, int parent, const Opinions& o, const float* chances) {
  std::array<int, kMaxUnion> order;
  std::iota(order.begin(), order.begin() + o.count, 0);
  const int most = std::min({kMaxBranches, state.job->budget.width, o.count});
  std::partial_sort(order.begin(), order.begin() + most, order.begin() + o.count,
                    [&](int a, int b) { return chances[a] != chances[b] ? chances[a] > chances[b] : a < b; });
  for (int k = 0; k < most; ++k) {
    const int c = order[k];
    if (chances[c] < state.job->budget.least_chance) {
      // The others are no likelier.
      while (k < most && state.worth(state.grown[parent].value * chances[order[k]])) ++state.rejected, ++k;
      break;
    }
    Grown child;
    child.sibling = k;
    child.token = o.tokens[c];
    child.chance = chances[c];
    child.sources = o.sources[c];
    if (!push(state, parent, child)) break;
  }
}

bool Grower::State::push(JobState& state, int parent, Grown child) {
  const Grown& from = state.grown[parent];
  child.parent = parent;
  child.depth = from.depth + 1;
  child.value = from.value * child.chance;
  if (from.tree_node != kNoNode) child.tree_node = state.job->tree->child(from.tree_node, child.token);
  if (!state.worth(child.value) || state.heap.size() == state.heap.capacity()) return false;
  state.heap.push_back({child, state.order++});
  std::push_heap(state.heap.begin(), state.heap.end(), worse);
  return true;
}

// acceptance = rejection: children drawn from a costly drafter's q, nobody else's. How many is settled before
// the first is drawn. False: nobody offers a q here.
bool Grower::State::draw_children(JobState& state, int parent, const Query& query) {
  Drawing& drawing = sequences[query.sequence].drawing;
  if (!drawing.on()) return false;
  std::size_t d = 0;
  std::span<const float> q;
  for (; d < panel.drafters.size(); ++d)
    if (panel.shapes[d].costly && panel.may_ask(d, query) &&
        !(q = panel.drafters[d]->distribution(query)).empty())
      break;
  if (q.empty()) return false;
  const int sureness = SiblingChances::sureness(q);
  const auto chances = drawing.chances().chances(sureness);
  // Ancestors and earlier siblings come before the last of them in the tree.
  const int room = state.job->budget.nodes - state.grown[parent].depth;
  const int most = std::min({kMaxDrawn, state.job->budget.width, room});
  int worth = 0;
  while (worth < most && state.worth(state.grown[parent].value * chances[worth])) ++worth;
  int count = 0;
  while (count < worth && chances[count] >= state.job->budget.least_chance) ++count;
  state.rejected += worth - count;
  const int drawn = drawing.draw(query.state.path, q, count);
  COPPICE_CHECK(drawn >= 0);
  Drawing::Node& node = drawing.node(drawn);
  node.drafter = static_cast<int>(d);
  node.sureness = sureness;
  state.grown[parent].drawn = drawn;
  for (int r = 0; r < node.drawn; ++r) {
    Grown child;
    child.sibling = r;
    child.token = node.tokens[r];
    child.chance = chances[r];
    child.sources = SourceMask{1} << d;
    if (!push(state, parent, child)) break;
  }
  return true;
}

bool Grower::State::known(const Query& query) const {
  for (std::size_t d = 0; d < panel.drafters.size(); ++d)
    if (panel.shapes[d].costly && panel.may_ask(d, query) && !panel.drafters[d]->knows(query)) return false;
  return true;
}

void Grower::State::start(JobState& state, GrowJob& job) {
  COPPICE_CHECK(sequence(job.sequence).open && job.tree != nullptr && !job.committed.empty());
  sequences[job.sequence].sampler = job.sampler;
  sequences[job.sequence].drawing.new_tree();
  state.job = &job;
  state.grown.clear();
  state.heap.clear();
  state.best.clear();
  state.parked.clear();
  state.order = 0;
  state.rejected = 0;
  state.cheap_only = !job.budget.costly || !panel.costly;
  if (job.budget.nodes <= 0 || job.budget.depth <= 0) return;
  const auto add = [&](int node) {
    Grown start;
    start.tree_node = node;
    start.sibling = static_cast<int>(state.grown.size());
    start.value = job.tree->value(node);
    if (job.tree->depth(node) < kMaxTreeDepth) state.grown.push_back(start);
  };
  if (job.from.empty()) add(0);
  for (const int node : job.from)
    if (state.grown.size() < state.grown.capacity()) add(node);
}

// Takes what is worth taking. Nodes the costly drafters know, or never will, are expanded; others parked.
void Grower::State::pop_all(Asking& asking, int j) {
  JobState& state = jobs[j];
  while (!state.heap.empty() && state.worth(state.heap.front().node.value)) {
    if (state.grown.size() == state.grown.capacity()) break;
    std::pop_heap(state.heap.begin(), state.heap.end(), worse);
    const Grown node = state.heap.back().node;
    state.heap.pop_back();
    const int g = static_cast<int>(state.grown.size());
    state.grown.push_back(node);
    if (node.tree_node == kNoNode) state.count(node.value);
    const Ask ask{j, g};
    if (node.depth >= state.job->budget.depth) continue;
    // The tree is full of better nodes than its children. What would be said there is asked if the target
    // comes by.
    if (state.cheap_only && node.value <= state.floor()) continue;
    set_query(asking, 0, ask);
    if (asking.query(0).state.path.size() == kMaxTreeDepth) continue;
    if (state.cheap_only)
      expand(asking, {&ask, 1}, false);
    else if (known(asking.query(0)))
      expand(asking, {&ask, 1}, true);
    else
      state.parked.push_back(g);
  }
}

// Parked nodes go into the next pass of the costly drafters if that is worth its price, else the cheap ones
// go on alone.
void Grower::State::park_or_go_on(int j) {
  JobState& state = jobs[j];
  // A node at or below the floor cannot have a child that is worth having.
  const auto hopeless = [&](int g) { return state.grown[g].value <= state.floor(); };
  state.parked.erase(std::remove_if(state.parked.begin(), state.parked.end(), hopeless), state.parked.end());
  if (state.parked.empty()) return;
  float gain = 0;
  for (const int g : state.parked) gain += state.grown[g].value - state.floor();
  if (gain >= state.job->budget.pass_price) {
    for (const int g : state.parked)
      if (static_cast<int>(next.size()) < capacity()) next.push_back({j, g});
  } else {
    state.cheap_only = true;
    for (const int g : state.parked) {
      const Ask ask{j, g};
      expand(askings[0], {&ask, 1}, false);
    }
    pop_all(askings[0], j);
  }
  state.parked.clear();
}

// By value; equals by depth, then by where their paths part.
bool JobState::before(int a, int b) const {
  const Grown *x = &grown[a], *y = &grown[b];
  if (x->value != y->value) return x->value > y->value;
  if (x->depth != y->depth) return x->depth < y->depth;
  while (x->parent != y->parent) x = &grown[x->parent], y = &grown[y->parent];
  return x->sibling < y->sibling;
}

// The best budget.nodes of what has grown into the caller's tree, best first.
void Grower::State::write(JobState& state) {
  TokenTree& tree = *state.job->tree;
  state.parked.resize(state.grown.size());
  std::iota(state.parked.begin(), state.parked.end(), 0);
  std::sort(state.parked.begin(), state.parked.end(), [&](int a, int b) { return state.before(a, b); });
  int room = state.job->budget.nodes;
  for (const int g : state.parked) {
    Grown& node = state.grown[g];
    if (node.parent == kStart) continue;
    const int parent = state.grown[node.parent].tree_node;
    if (node.tree_node != kNoNode || parent == kNoNode || room == 0) continue;
    node.tree_node = tree.add(parent, node.token, node.chance, node.value, node.sources);
    if (const int drawn = state.grown[node.parent].drawn; drawn >= 0 && node.tree_node != kNoNode)
      ++sequences[state.job->sequence].drawing.node(drawn).kept;
    --room;
  }
  // Below the floor some nodes were asked about because a costly drafter knew them: not so had it not. They
  // are forgotten, so that the mixer learns the same either way.
  if (panel.costly) sequences[state.job->sequence].store.forget_up_to(state.floor());
  state.parked.clear();
}

// --- the public face ---

Grower::Grower(std::vector<std::unique_ptr<Drafter>> drafters, const Options& options)
    : state_(std::make_unique<State>(std::move(drafters))) {
  State& s = *state_;
  COPPICE_CHECK(options.sequences >= 1 && options.max_nodes >= 1 && options.max_nodes <= kMaxTreeNodes);
  s.prior = Mixture::untaught(s.panel.features, s.panel.buckets);
  s.sequences.reserve(options.sequences);
  for (int i = 0; i < options.sequences; ++i)
    s.sequences.emplace_back(s.panel.features, s.panel.buckets, options.max_nodes);
  s.jobs.resize(options.sequences);
  const auto nodes = static_cast<std::size_t>(options.max_nodes);
  for (JobState& job : s.jobs) {
    // A level of costly drafters may overgrow the budget, and starts count too.
    job.grown.reserve(nodes * 3);
    job.heap.reserve(nodes * 3 * kMaxBranches);
    job.best.reserve(nodes + 1);
    job.parked.reserve(nodes * 3);
  }
  s.askings.emplace_back(s.panel, options.sequences * options.max_nodes);
  const auto capacity = static_cast<std::size_t>(s.capacity());
  s.fresh.reserve(capacity);
  s.next.reserve(capacity);
}

Grower::~Grower() = default;

void Grower::use(ThreadPool& pool) {
  State& s = *state_;
  s.pool = &pool;
  while (static_cast<int>(s.askings.size()) < pool.size()) s.askings.emplace_back(s.panel, 1);
}

Status Grower::begin(int sequence, std::span<const Token> tokens, const Sampler& sampler) {
  State& s = *state_;
  COPPICE_CHECK(sequence >= 0 && sequence < static_cast<int>(s.sequences.size()));
  Sequence& q = s.sequences[sequence];
  COPPICE_CHECK(!q.open);
  for (std::size_t d = 0; d < s.panel.drafters.size(); ++d) {
    Status begun = s.panel.drafters[d]->begin(sequence, tokens, sampler);
    if (begun) continue;
    while (d-- > 0) s.panel.drafters[d]->end(sequence);
    return begun;
  }
  q.open = true;
  q.sampler = &sampler;
  q.store.clear();
  q.mixture.start(s.prior, sampler.options().temperature > 0.0f, sampler.noisy());
  q.drawing.start(sampler);
  return {};
}

void Grower::end(int sequence) {
  Sequence& q = state_->sequence(sequence);
  for (auto& drafter : state_->panel.drafters) drafter->end(sequence);
  q.open = false;
  q.sampler = nullptr;
  q.store.clear();
}

// A job that asks the cheap drafters alone, which have a memory for each sequence and share nothing else.
void Grower::State::grow_cheaply(Asking& asking, int j) {
  const int starts = static_cast<int>(jobs[j].grown.size());
  for (int g = 0; g < starts; ++g) {
    const Ask ask{j, g};
    expand(asking, {&ask, 1}, false);
  }
  pop_all(asking, j);
}

void Grower::State::grow_cheap_ones(int n) {
  const auto cheap =
      std::count_if(jobs.begin(), jobs.begin() + n, [](const auto& j) { return j.cheap_only; });
  if (cheap < 2 || askings.size() < 2) {
    for (int j = 0; j < n; ++j)
      if (jobs[j].cheap_only) grow_cheaply(askings[0], j);
    return;
  }
  std::atomic<int> next_job{0};
  pool->run([&](int thread) {
    for (int j = next_job++; j < n; j = next_job++)
      if (jobs[j].cheap_only) grow_cheaply(askings[thread], j);
  });
}

void Grower::grow(std::span<GrowJob> jobs) {
  State& s = *state_;
  COPPICE_CHECK(jobs.size() <= s.jobs.size());
  const int n = static_cast<int>(jobs.size());
  s.next.clear();
  for (int j = 0; j < n; ++j) {
    JobState& state = s.jobs[j];
    s.start(state, jobs[j]);
    const int starts = static_cast<int>(state.grown.size());
    for (int g = 0; g < starts && !state.cheap_only; ++g)
      if (static_cast<int>(s.next.size()) < s.capacity()) s.next.push_back({j, g});
  }
  s.grow_cheap_ones(n);
  while (!s.next.empty()) {
    std::swap(s.fresh, s.next);
    s.next.clear();
    s.expand(s.askings[0], s.fresh, true);
    for (int j = 0; j < n; ++j) {
      s.pop_all(s.askings[0], j);
      s.park_or_go_on(j);
    }
  }
  for (int j = 0; j < n; ++j) {
    s.write(s.jobs[j]);
    jobs[j].rejected = s.jobs[j].rejected;
  }
}

void Grower::observe(int sequence, std::span<const Token> committed, std::span<const Token> accepted) {
  State& s = *state_;
  Sequence& q = s.sequence(sequence);
  Asking& asking = s.askings[0];
  for (std::size_t i = 0; i < accepted.size() && i <= kMaxTreeDepth; ++i) {
    const std::span<const Token> path = accepted.first(i);
    q.drawing.learn(path, accepted[i]);
    if (!teach(sequence, path, accepted[i])) {
      // Visited, but never expanded: what would the cheap drafters have said here?
      Query query;
      query.sequence = sequence;
      query.state = {committed, path};
      query.sampler = q.sampler;
      asking.set(0, query);
      asking.ask(1, false);
      Opinions opinions = asking.gather(0, q.store);
      if (q.mixture.sampled()) {
        std::array<float, kMaxUnion> chances;
        q.mixture.chances(opinions, asking.query(0).state, *q.sampler, chances.data());
      }
      s.learn(q, opinions, accepted[i]);
    }
  }
  accept(sequence, accepted);
}

std::span<const float> Grower::distribution(int sequence, const PathState& at) const {
  const Sequence& s = state_->sequence(sequence);
  const Drawing::Node* node = s.drawing.find(at.path);
  if (node == nullptr) return {};
  Query query;
  query.sequence = sequence;
  query.state = at;
  query.sampler = s.sampler;
  const auto q = state_->panel.drafters[node->drafter]->distribution(query);
  COPPICE_CHECK(!q.empty());  // they are there until observe()
  return q;
}

bool Grower::teach(int sequence, std::span<const Token> path, Token drawn) {
  Sequence& q = state_->sequence(sequence);
  const Opinions* opinions = q.store.find(path);
  if (opinions == nullptr) return false;
  state_->learn(q, *opinions, drawn);
  return true;
}

void Grower::accept(int sequence, std::span<const Token> accepted) {
  state_->sequence(sequence).store.clear();
  state_->sequence(sequence).drawing.forget();
  for (auto& drafter : state_->panel.drafters) drafter->observe(sequence, accepted);
}

std::span<const int> Grower::feature_layers() const { return state_->panel.feature_layers; }

void Grower::see(int sequence, std::span<const Token> committed, const Features& features) {
  for (auto& drafter : state_->panel.drafters)
    if (!drafter->feature_layers().empty()) drafter->see(sequence, committed, features);
}

std::span<const std::unique_ptr<Drafter>> Grower::drafters() const { return state_->panel.drafters; }
int Grower::features() const { return state_->panel.features; }
int Grower::buckets() const { return state_->panel.buckets; }

Status Grower::set_prior(std::span<const float> weights) {
  State& s = *state_;
  const std::size_t noise = Mixture::noise_shape(s.panel.buckets).weights();
  if (weights.size() != s.prior.size() && weights.size() + noise != s.prior.size())
    return fail("the mixer's prior has " + std::to_string(weights.size()) +
                " weights, but this mix of drafters needs " + std::to_string(s.prior.size()) +
                "; fit one for this mix with `coppice train mixer`");
  std::copy(weights.begin(), weights.end(), s.prior.begin());
  return {};
}

std::span<const float> Grower::weights(int sequence) const {
  return state_->sequences[sequence].mixture.weights();
}

void Grower::set_rate(float rate) {
  for (Sequence& sequence : state_->sequences) sequence.mixture.set_rate(rate);
}

void Grower::set_listener(LessonListener* listener) { state_->listener = listener; }

PassCost Grower::take_cost() {
  PassCost sum;
  for (auto& drafter : state_->panel.drafters) sum += drafter->take_cost();
  return sum;
}

}  // namespace coppice::core
