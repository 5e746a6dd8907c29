// From automata with empty steps to the compiled form:
//   which rules may be empty; calls of those get an empty step beside them
//   left recursion is refused
//   empty steps are taken out; what is left is the states that a byte or a call leads to
//   what cannot reach its rule's end is taken out (least_bytes)
//   bytes that no edge tells apart become one class
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <queue>

#include "base/check.h"
#include "grammar/code_points.h"
#include "grammar/compiled.h"
#include "grammar/raw_automaton.h"

namespace coppice::core::grammar {

namespace {

constexpr std::size_t kMostEdges = std::size_t{1} << 21;
constexpr std::size_t kMostNamed = 8;  // rules of a circle that an error names

// A search from each rule's start along empty steps, and over calls of rules that are known to be possibly
// empty; others are waited for.
void find_empty_rules(RawAutomaton& raw) {
  std::vector<std::uint8_t> seen(raw.states.size(), 0);
  std::vector<std::vector<RawState>> waiting(raw.rules.size());
  std::vector<RawState> work;
  const auto reach = [&](RawState state) {
    if (seen[state] == 0) work.push_back(state);
    seen[state] = 1;
  };
  for (const RawAutomaton::Rule& rule : raw.rules) reach(rule.start);
  while (!work.empty()) {
    const RawAutomaton::State& state = raw.states[work.back()];
    work.pop_back();
    if (state.ends != kNone) {
      raw.rules[state.ends].may_be_empty = true;
      for (const RawState to : waiting[state.ends]) reach(to);
      waiting[state.ends].clear();
    }
    for (const RawState to : state.empty) reach(to);
    for (const CallEdge& call : state.calls) {
      if (raw.rules[call.rule].may_be_empty)
        reach(call.to);
      else
        waiting[call.rule].push_back(call.to);
    }
  }
  for (RawAutomaton::State& state : raw.states)
    for (const CallEdge& call : state.calls)
      if (raw.rules[call.rule].may_be_empty) state.empty.push_back(call.to);
}

// The states that empty steps lead to, the first one included.
class Closure {
 public:
  explicit Closure(const RawAutomaton& raw) : raw_(raw), seen_(raw.states.size(), 0) {}
  const std::vector<RawState>& of(RawState from) {
    ++round_;
    reached_.clear();
    reach(from);
    for (std::size_t i = 0; i < reached_.size(); ++i)
      for (const RawState to : raw_.states[reached_[i]].empty) reach(to);
    return reached_;
  }

 private:
  void reach(RawState state) {
    if (seen_[state] == round_) return;
    seen_[state] = round_;
    reached_.push_back(state);
  }
  const RawAutomaton& raw_;
  std::vector<std::uint32_t> seen_;
  std::uint32_t round_ = 0;
  std::vector<RawState> reached_;
};

std::string where(const RawAutomaton::Rule& rule) {
  return rule.line > 0 ? fmt::format("line {}: ", rule.line) : std::string();
}

// A schema's rules are called by their places.
bool of_schema(std::string_view name) { return name.starts_with('#'); }

// The rules by depth first along calls that come before any byte; a circle is left recursion.
class LeftCalls {
 public:
  LeftCalls(const RawAutomaton& raw, std::vector<std::vector<std::uint32_t>> calls)
      : raw_(raw), calls_(std::move(calls)), state_(calls_.size(), kNew), ranks_(calls_.size(), 0) {}

  Result<std::vector<std::uint32_t>> ranks() {
    next_ = static_cast<std::uint32_t>(calls_.size());
    for (std::uint32_t r = 0; r < calls_.size(); ++r)
      if (state_[r] == kNew) COPPICE_TRY_STATUS(visit(r));
    return std::move(ranks_);
  }

 private:
  static constexpr std::uint8_t kNew = 0, kOpen = 1, kDone = 2;
  struct Step {
    std::uint32_t rule;
    std::size_t next;
  };

  Status visit(std::uint32_t first) {
    path_.assign(1, {first, 0});
    state_[first] = kOpen;
    while (!path_.empty()) {
      Step& step = path_.back();
      if (step.next == calls_[step.rule].size()) {
        state_[step.rule] = kDone;
        ranks_[step.rule] = --next_;
        path_.pop_back();
        continue;
      }
      const std::uint32_t callee = calls_[step.rule][step.next++];
      if (state_[callee] == kOpen) return refuse(callee);
      if (state_[callee] == kNew) {
        state_[callee] = kOpen;
        path_.push_back({callee, 0});
      }
    }
    return {};
  }

  tl::unexpected<Error> refuse(std::uint32_t rule) const {
    std::size_t at = 0;
    while (path_[at].rule != rule) ++at;
    std::string circle;
    for (std::size_t i = at; i < path_.size() && i < at + kMostNamed; ++i)
      circle += shortened(raw_.rules[path_[i].rule].name) + " -> ";
    const std::string name = shortened(raw_.rules[rule].name);
    if (of_schema(name))
      return fail(fmt::format(
          "the schema at {} refers to itself ({}{}) with nothing around it, which would never end; refer to "
          "it from inside an object or a list",
          name, circle, name));
    return fail(fmt::format(
        "{}rule {} can begin with itself ({}{}): left recursion would never end; repeat with * or + instead",
        where(raw_.rules[rule]), name, circle, name));
  }

  const RawAutomaton& raw_;
  std::vector<std::vector<std::uint32_t>> calls_;
  std::vector<std::uint8_t> state_;
  std::vector<std::uint32_t> ranks_;
  std::vector<Step> path_;
  std::uint32_t next_ = 0;
};

}  // namespace

class Compiler {
 public:
  explicit Compiler(RawAutomaton raw) : raw_(std::move(raw)) {}

  Result<Compiled> run() {
    find_empty_rules(raw_);
    COPPICE_TRY_STATUS(take_out_empty_steps());
    COPPICE_TRY_STATUS(rank_rules());
    find_least_bytes();
    if (out_.positions_[out_.starts_[out_.root_]].least == kNone) return refuse_all();
    keep_what_can_end();
    classify_bytes();
    return std::move(out_);
  }

 private:
  Status take_out_empty_steps();
  Status rank_rules();
  void find_least_bytes();
  tl::unexpected<Error> refuse_all() const;
  std::optional<std::uint32_t> endless_call(std::uint32_t rule) const;
  void keep_what_can_end();
  void classify_bytes();

  RawAutomaton raw_;
  Compiled out_;
};

Status Compiler::take_out_empty_steps() {
  std::vector<Position> place(raw_.states.size(), kNone);
  std::vector<RawState> kept;
  const auto keep = [&](RawState state) {
    if (place[state] != kNone) return place[state];
    place[state] = static_cast<Position>(kept.size());
    kept.push_back(state);
    return place[state];
  };
  for (const RawAutomaton::Rule& rule : raw_.rules) out_.starts_.push_back(keep(rule.start));
  Closure closure(raw_);
  std::size_t looked_at = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    Compiled::Entry entry;
    entry.bytes = static_cast<std::uint32_t>(out_.byte_edges_.size());
    entry.calls = static_cast<std::uint32_t>(out_.call_edges_.size());
    for (const RawState reached : closure.of(kept[i])) {
      const RawAutomaton::State& state = raw_.states[reached];
      entry.final = entry.final || state.ends != kNone;
      for (const ByteEdge& edge : state.bytes)
        out_.byte_edges_.push_back({edge.first, edge.last, keep(edge.to)});
      for (const CallEdge& edge : state.calls) out_.call_edges_.push_back({edge.rule, keep(edge.to)});
      ++looked_at;
    }
    out_.positions_.push_back(entry);
    if (out_.byte_edges_.size() + out_.call_edges_.size() + looked_at > kMostEdges)
      return fail(fmt::format(
          "the grammar is too large: its parts can follow each other in more than {} ways; nest fewer "
          "repetitions of what may be empty",
          kMostEdges));
  }
  Compiled::Entry end;
  end.bytes = static_cast<std::uint32_t>(out_.byte_edges_.size());
  end.calls = static_cast<std::uint32_t>(out_.call_edges_.size());
  out_.positions_.push_back(end);
  return {};
}

Status Compiler::rank_rules() {
  std::vector<std::vector<std::uint32_t>> left(out_.starts_.size());
  for (std::uint32_t r = 0; r < left.size(); ++r)
    for (const CallEdge& call : out_.calls(out_.starts_[r])) left[r].push_back(call.rule);
  COPPICE_TRY(out_.ranks_, LeftCalls(raw_, std::move(left)).ranks());
  return {};
}

// Shortest ways backwards from the ends of rules (Knuth's generalisation of Dijkstra's algorithm: a call
// costs what the rule's shortest text does). kNone: there is no way.
void Compiler::find_least_bytes() {
  const std::size_t n = out_.positions();
  struct Back {
    Position from;
    std::uint32_t rule;  // kNone: a byte
  };
  std::vector<std::vector<Back>> back(n);
  std::vector<std::vector<std::pair<Position, Position>>> callers(out_.rules());  // from, to
  std::vector<std::vector<std::uint32_t>> rules_at(n);                            // that start there
  for (std::uint32_t r = 0; r < out_.rules(); ++r) rules_at[out_.starts_[r]].push_back(r);
  for (Position p = 0; p < n; ++p) {
    for (const ByteEdge& edge : out_.bytes(p)) back[edge.to].push_back({p, kNone});
    for (const CallEdge& edge : out_.calls(p)) {
      back[edge.to].push_back({p, edge.rule});
      callers[edge.rule].push_back({p, edge.to});
    }
  }
  using Offer = std::pair<std::uint32_t, Position>;
  std::priority_queue<Offer, std::vector<Offer>, std::greater<>> offers;
  const auto known = [&](Position p) { return out_.positions_[p].least; };
  for (Position p = 0; p < n; ++p) {
    out_.positions_[p].least = kNone;
    if (out_.positions_[p].final) offers.push({0, p});
  }
  // Sums stay far below what 32 bits hold: a shortest text longer than that has no chance to be written.
  constexpr std::uint32_t kLongest = 1u << 30;
  const auto offer = [&](std::uint64_t cost, Position p) {
    if (known(p) == kNone)
      offers.push({static_cast<std::uint32_t>(std::min<std::uint64_t>(cost, kLongest)), p});
  };
  while (!offers.empty()) {
    const auto [cost, p] = offers.top();
    offers.pop();
    if (known(p) != kNone) continue;
    out_.positions_[p].least = cost;
    for (const Back& edge : back[p]) {
      if (edge.rule == kNone)
        offer(std::uint64_t{cost} + 1, edge.from);
      else if (const auto inner = known(out_.starts_[edge.rule]); inner != kNone)
        offer(std::uint64_t{cost} + inner, edge.from);
    }
    for (const std::uint32_t rule : rules_at[p])
      for (const auto& [from, to] : callers[rule])
        if (known(to) != kNone) offer(std::uint64_t{cost} + known(to), from);
  }
}

// A call, on the rule's ways, of a rule that no text satisfies.
std::optional<std::uint32_t> Compiler::endless_call(std::uint32_t rule) const {
  std::vector<Position> reached = {out_.starts_[rule]};
  std::vector<bool> seen(out_.positions(), false);
  const auto reach = [&](Position p) {
    if (!seen[p]) reached.push_back(p);
    seen[p] = true;
  };
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const ByteEdge& edge : out_.bytes(reached[i])) reach(edge.to);
    for (const CallEdge& edge : out_.calls(reached[i])) {
      if (out_.positions_[out_.starts_[edge.rule]].least == kNone) return edge.rule;
      reach(edge.to);
    }
  }
  return std::nullopt;
}

// Names the innermost rule that has no text: it calls none, and contradicts itself, or they go round.
tl::unexpected<Error> Compiler::refuse_all() const {
  std::vector<bool> seen(out_.rules(), false);
  std::uint32_t named = out_.root_;
  std::optional<std::uint32_t> next = out_.root_;
  while (next && !seen[*next]) {
    seen[*next] = true;
    if (!raw_.rules[*next].name.starts_with('(')) named = *next;  // else it is a part of the one around it
    next = endless_call(*next);
  }
  const std::string name = shortened(raw_.rules[named].name);
  const std::string& why = raw_.rules[named].why;
  const std::string contradicts = "contradicts itself" + (why.empty() ? why : ": " + why);
  return fail(fmt::format("no text at all is allowed: {}{} {} {}", where(raw_.rules[named]),
                          of_schema(name) ? "the schema at" : "rule", name,
                          next ? "goes on for ever" : contradicts));
}

// Edges into what never ends are dropped. A position that only they led to is never reached; it stays, empty.
void Compiler::keep_what_can_end() {
  const auto ends = [&](Position p) { return out_.positions_[p].least != kNone; };
  std::vector<ByteEdge> byte_edges;
  std::vector<CallEdge> call_edges;
  const Compiled old = out_;
  for (Position p = 0; p <= old.positions(); ++p) {
    out_.positions_[p].bytes = static_cast<std::uint32_t>(byte_edges.size());
    out_.positions_[p].calls = static_cast<std::uint32_t>(call_edges.size());
    if (p == old.positions()) break;
    for (const ByteEdge& edge : old.bytes(p))
      if (ends(edge.to)) byte_edges.push_back(edge);
    for (const CallEdge& edge : old.calls(p))
      if (ends(edge.to) && ends(out_.starts_[edge.rule])) call_edges.push_back(edge);
  }
  out_.byte_edges_ = std::move(byte_edges);
  out_.call_edges_ = std::move(call_edges);
}

// Where some range begins or ends, a new class begins: classes are stretches of bytes.
void Compiler::classify_bytes() {
  std::array<bool, 257> begins{};
  for (const ByteEdge& edge : out_.byte_edges_) {
    begins[edge.first] = true;
    begins[std::size_t{edge.last} + 1] = true;
  }
  int number = 0;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    if (byte > 0 && begins[byte]) ++number;
    out_.class_of_[byte] = static_cast<std::uint8_t>(number);
  }
  out_.classes_ = number + 1;
}

Result<Compiled> Compiled::make(const RuleSet& rules, RuleId root) {
  COPPICE_TRY(RawAutomaton raw, write_out(rules, root));
  return Compiler(std::move(raw)).run();
}

}  // namespace coppice::core::grammar
