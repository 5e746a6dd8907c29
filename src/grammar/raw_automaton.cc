#include "grammar/raw_automaton.h"

#include <fmt/format.h>

#include <string>

#include "base/check.h"
#include "grammar/code_points.h"

namespace coppice::core::grammar {
namespace {

constexpr std::size_t kMostStates = std::size_t{1} << 19;
constexpr std::uint32_t kSmall = 6;  // positions of an expression that is written out again for each repeat

class Writer {
 public:
  Writer(const RuleSet& rules, RuleId root) : rules_(rules), numbers_(rules.rules().size(), kNone) {
    number(root);
  }

  Result<RawAutomaton> run() {
    for (std::size_t r = 0; r < bodies_.size(); ++r) {
      const RawState start = state(), end = state();
      out_.rules[r].start = start;
      out_.rules[r].end = end;
      out_.states[end].ends = static_cast<std::uint32_t>(r);
      write(bodies_[r], start, end);
      if (full_)
        return fail(fmt::format(
            "rule {} makes the grammar too large: more than {} positions; repeat less or less deeply",
            shortened(out_.rules[r].name), kMostStates));
    }
    return std::move(out_);
  }

 private:
  RawState state() {
    full_ = full_ || out_.states.size() >= kMostStates;
    out_.states.emplace_back();
    return static_cast<RawState>(out_.states.size()) - 1;
  }

  std::uint32_t new_rule(const Rule& from) {
    RawAutomaton::Rule rule;
    rule.name = from.name;
    rule.why = from.why;
    rule.line = from.line;
    out_.rules.push_back(std::move(rule));
    bodies_.push_back(from.body);
    return static_cast<std::uint32_t>(bodies_.size()) - 1;
  }

  std::uint32_t number(RuleId rule) {
    std::uint32_t& known = numbers_[static_cast<std::size_t>(rule)];
    if (known == kNone) {
      const Rule& from = rules_.rules()[static_cast<std::size_t>(rule)];
      COPPICE_CHECK(from.body >= 0);
      known = new_rule(from);
    }
    return known;
  }

  // Adds edges that leave `from` and edges that reach `to`; nothing else of them changes, so both may be
  // shared.
  void write(ExpressionId e, RawState from, RawState to) {
    if (full_) return;
    const Expression node = rules_[e];
    switch (node.kind) {
      case Expression::Kind::bytes:
        out_.states[from].bytes.push_back(
            {static_cast<std::uint8_t>(node.a), static_cast<std::uint8_t>(node.b), to});
        return;
      case Expression::Kind::call:
        call(number(node.a), from, to);
        return;
      case Expression::Kind::choice:
        for (std::uint32_t i = 0; i < node.count; ++i) write(rules_.part(node, i), from, to);
        return;
      case Expression::Kind::sequence:
        write_sequence(node, from, to);
        return;
      case Expression::Kind::repeat:
        write_repeat(node, from, to);
        return;
    }
  }

  void call(std::uint32_t rule, RawState from, RawState to) { out_.states[from].calls.push_back({rule, to}); }
  void step(RawState from, RawState to) { out_.states[from].empty.push_back(to); }

  void write_sequence(const Expression& node, RawState from, RawState to) {
    if (node.count == 0) step(from, to);
    for (std::uint32_t i = 0; i < node.count && !full_; ++i) {
      const RawState next = i + 1 == node.count ? to : state();
      write(rules_.part(node, i), from, next);
      from = next;
    }
  }

  void write_repeat(const Expression& node, RawState from, RawState to) {
    const ExpressionId part = rules_.part(node, 0);
    const int copies = node.b == kForever ? node.a + 1 : node.b;
    std::uint32_t rule = kNone;
    // What is large and repeated often becomes a rule, so that its size and the count add up and do not
    // multiply.
    if (rules_[part].size > kSmall && copies > 2) rule = new_rule({"(a repeated part)", 0, "", part});
    const auto once = [&](RawState a, RawState b) {
      if (rule == kNone)
        write(part, a, b);
      else
        call(rule, a, b);
    };
    RawState at = from;
    for (int i = 0; i < node.a && !full_; ++i) {
      const RawState next = state();
      once(at, next);
      at = next;
    }
    if (node.b == kForever) {
      const RawState loop = state();
      step(at, loop);
      once(loop, loop);
      step(loop, to);
      return;
    }
    for (int i = node.a; i < node.b && !full_; ++i) {
      const RawState next = state();
      once(at, next);
      step(at, to);
      at = next;
    }
    step(at, to);
  }

  const RuleSet& rules_;
  std::vector<std::uint32_t> numbers_;  // of the rules, in the automaton
  std::vector<ExpressionId> bodies_;    // of the automaton's rules
  RawAutomaton out_;
  bool full_ = false;
};

}  // namespace

Result<RawAutomaton> write_out(const RuleSet& rules, RuleId root) { return Writer(rules, root).run(); }

}  // namespace coppice::core::grammar
