#include "grammar/machine.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "grammar/testing.h"

namespace coppice::core::grammar {
namespace {

std::uint64_t mix(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// A random grammar over a and b whose rule r calls only what was defined before it, or itself behind a byte.
std::pair<RuleSet, RuleId> random_grammar(std::uint64_t seed) {
  RuleSet rules;
  const int count = 1 + static_cast<int>(mix(seed) % 4);
  for (int r = 0; r < count; ++r) rules.add_rule("r" + std::to_string(r));
  std::function<ExpressionId(int, int)> any = [&](int rule, int depth) -> ExpressionId {
    switch (depth > 3 ? mix(seed) % 2 : mix(seed) % 8) {
      case 0:
        return rules.text("a");
      case 1:
        return rules.bytes('a', 'b');
      case 2:
        return rules.sequence({any(rule, depth + 1), any(rule, depth + 1)});
      case 3:
        return rules.choice({any(rule, depth + 1), any(rule, depth + 1)});
      case 4:
        return rules.repeat(any(rule, depth + 1), static_cast<int>(mix(seed) % 2),
                            mix(seed) % 2 ? kForever : 1 + static_cast<int>(mix(seed) % 3));
      case 5:
        return rule > 0 ? rules.call(static_cast<int>(mix(seed) % static_cast<std::uint64_t>(rule)))
                        : rules.empty();
      case 6:
        return rules.sequence({rules.text("b"), rules.call(rule)});
      default:
        return rules.optional(any(rule, depth + 1));
    }
  };
  // So that something always ends.
  for (int r = 0; r < count; ++r) rules.define(r, rules.choice({any(r, 0), rules.text("b")}));
  return {std::move(rules), count - 1};
}

// Where an expression that begins at `at` may end: by definition, set by set.
class ByDefinition {
 public:
  ByDefinition(const RuleSet& rules, std::string text) : rules_(rules), text_(std::move(text)) {}
  bool accepts(RuleId root) {
    const auto& ends = rule(root, 0);
    return ends.count(text_.size()) > 0;
  }

 private:
  using Ends = std::set<std::size_t>;
  const Ends& rule(RuleId r, std::size_t at) {
    const auto key = std::make_pair(r, at);
    const auto there = known_.find(key);
    if (there != known_.end()) return there->second;
    Ends ends = expression(rules_.rules()[static_cast<std::size_t>(r)].body, at);
    return known_.emplace(key, std::move(ends)).first->second;
  }
  Ends expression(ExpressionId e, std::size_t at) {
    const Expression node = rules_[e];
    Ends out;
    switch (node.kind) {
      case Expression::Kind::bytes:
        if (at < text_.size() && node.a <= text_[at] && text_[at] <= node.b) out.insert(at + 1);
        return out;
      case Expression::Kind::call:
        return rule(node.a, at);
      case Expression::Kind::choice:
        for (std::uint32_t i = 0; i < node.count; ++i) out.merge(expression(rules_.part(node, i), at));
        return out;
      case Expression::Kind::sequence:
        out.insert(at);
        for (std::uint32_t i = 0; i < node.count; ++i) out = each(rules_.part(node, i), out);
        return out;
      case Expression::Kind::repeat: {
        Ends now = {at};
        for (int i = 0; i < node.a; ++i) now = each(rules_.part(node, 0), now);
        for (int i = node.a; node.b == kForever || i < node.b; ++i) {
          const std::size_t before = out.size();
          out.insert(now.begin(), now.end());
          if (node.b == kForever && out.size() == before && i > node.a) break;
          now = each(rules_.part(node, 0), now);
        }
        out.insert(now.begin(), now.end());
        return out;
      }
    }
    return out;
  }
  Ends each(ExpressionId e, const Ends& from) {
    Ends out;
    for (const std::size_t at : from) out.merge(expression(e, at));
    return out;
  }

  const RuleSet& rules_;
  std::string text_;
  std::map<std::pair<RuleId, std::size_t>, Ends> known_;
};

TEST(Machine, RandomGrammarsAcceptWhatTheirDefinitionDoes) {
  int accepted = 0, refused = 0, left_recursive = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto [rules, root] = random_grammar(seed);
    auto compiled = Compiled::make(rules, root);
    if (!compiled) {  // rule r behind something empty: left recursion
      ++left_recursive;
      continue;
    }
    Machine machine(std::make_shared<const Compiled>(std::move(*compiled)));
    for (int length = 0; length <= 6; ++length) {
      for (int bits = 0; bits < 1 << length; ++bits) {
        std::string text;
        for (int i = 0; i < length; ++i) text += bits >> i & 1 ? 'b' : 'a';
        const bool wanted = ByDefinition(rules, text).accepts(root);
        ASSERT_EQ(machine.may_end(machine.walk(machine.start(), text)), wanted) << seed << " " << text;
        ++(wanted ? accepted : refused);
      }
    }
  }
  EXPECT_GT(accepted, 2000);
  EXPECT_GT(refused, 2000);
  EXPECT_LT(left_recursive, 100);
}

TEST(Machine, TheLeastToTheEndIsTheShortestText) {
  Machine machine(gbnf("root ::= \"(\" root \")\" | \"[\" root \"]\" root | \"..\" \".\"*"));
  EXPECT_EQ(machine.least(machine.start()), 2u);
  EXPECT_EQ(machine.least(machine.walk(machine.start(), "((")), 4u);
  EXPECT_EQ(machine.least(machine.walk(machine.start(), "([")), 6u);
  EXPECT_EQ(machine.least(machine.walk(machine.start(), "(..")), 1u);
  const StateId done = machine.walk(machine.start(), "(..)");
  EXPECT_EQ(machine.least(done), 0u);
  EXPECT_TRUE(machine.must_end(done));
  const StateId dots = machine.walk(machine.start(), "..");
  EXPECT_TRUE(machine.may_end(dots));
  EXPECT_FALSE(machine.must_end(dots));
  EXPECT_EQ(machine.walk(machine.start(), "()"), kDead);
}

TEST(Machine, ALongListGrowsNoStackAndReturnsToTheSameState) {
  Machine machine(gbnf("root ::= \"x\" | \"x\" \",\" root"));
  const StateId after = machine.walk(machine.start(), "x,");
  EXPECT_EQ(machine.walk(after, "x,x,x,x,"), after);
}

// Every reading of n times "a" as a sum: there are more than 4^n / n of them.
TEST(Machine, ManyReadingsShareTheirPlaces) {
  Machine machine(gbnf("root ::= \"a\" root | \"a\" root root | \"a\""));
  StateId state = machine.start();
  for (int i = 0; i < 200; ++i) {
    state = machine.step(state, 'a');
    ASSERT_NE(state, kDead);
    ASSERT_NE(state, kTooMany);
  }
  EXPECT_TRUE(machine.may_end(state));
  EXPECT_LT(machine.work(), 2000000u);  // n^3 / 6, not 4^n
}

TEST(Machine, ForgettingTheOthersChangesNothing) {
  const auto grammar =
      schema(R"({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"type": "string"}}})");
  Machine machine(grammar), forgetful(grammar);
  const std::string text = R"({"a": {"a": {"b": "x"}, "b": "yy"}, "b": "z"})";
  StateId a = machine.start(), b = forgetful.start();
  for (const char c : text) {
    a = machine.step(a, static_cast<std::uint8_t>(c));
    b = forgetful.forget_others(forgetful.step(b, static_cast<std::uint8_t>(c)));
    ASSERT_EQ(machine.least(a), forgetful.least(b)) << c;
    ASSERT_EQ(machine.may_end(a), forgetful.may_end(b)) << c;
  }
  EXPECT_TRUE(forgetful.must_end(b));
}

TEST(Machine, TooManyReadingsAtOnceAreSaidToBeTooMany) {
  // At each "a" a place more in each of many counted repetitions.
  std::string text = "root ::= ";
  for (int i = 0; i < 6; ++i)
    text += (i > 0 ? " | " : "") + std::string("(\"a\"* \"a\"{3000} \"") + static_cast<char>('p' + i) + "\")";
  Machine machine(gbnf(text));
  StateId state = machine.start();
  int steps = 0;
  while (state != kTooMany && steps < 3000) {
    state = machine.step(state, 'a');
    ++steps;
  }
  EXPECT_EQ(state, kTooMany);
  EXPECT_EQ(machine.step(state, 'a'), kTooMany);
  EXPECT_FALSE(machine.may_end(state));
}

}  // namespace
}  // namespace coppice::core::grammar
