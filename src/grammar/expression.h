// What grammars and schemas are translated into: expressions over bytes and calls of rules. A pool of nodes,
// named by their numbers; an expression may be a part of many others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/code_points.h"

namespace coppice::core::grammar {

using ExpressionId = int;
using RuleId = int;

inline constexpr int kForever = -1;

struct Expression {
  enum class Kind : std::uint8_t { bytes, sequence, choice, repeat, call };
  Kind kind = Kind::sequence;
  int a = 0, b = 0;         // bytes: first, last; repeat: least, most (or kForever); call: the rule
  std::uint32_t first = 0;  // its parts in the pool
  std::uint32_t count = 0;
  std::uint32_t size = 0;  // about how many positions it has when it is written out; saturates
};

struct Rule {
  std::string name;
  int line = 0;     // where it is defined, of a text; 0: made up
  std::string why;  // what of it allows no text, as far as that was noticed; empty: nothing
  ExpressionId body = -1;
};

class RuleSet {
 public:
  ExpressionId nothing() { return choice({}); }  // no text at all
  ExpressionId empty() { return sequence({}); }
  ExpressionId bytes(int first, int last);
  ExpressionId text(std::string_view bytes);
  ExpressionId texts(std::vector<std::string> all);  // any of them, common beginnings written once
  ExpressionId points(const CodePoints& set);        // one character
  ExpressionId sequence(const std::vector<ExpressionId>& parts);
  ExpressionId choice(const std::vector<ExpressionId>& parts);
  ExpressionId repeat(ExpressionId part, int least, int most);
  ExpressionId optional(ExpressionId part) { return repeat(part, 0, 1); }
  ExpressionId call(RuleId rule);

  RuleId add_rule(std::string name);
  void define(RuleId rule, ExpressionId body) { rules_[static_cast<std::size_t>(rule)].body = body; }
  void add_why(RuleId rule, std::string_view why);
  void set_line(RuleId rule, int line) { rules_[static_cast<std::size_t>(rule)].line = line; }

  // More nodes than any grammar that could be compiled needs: whoever builds should stop.
  bool full() const { return nodes_.size() + parts_.size() > kMostNodes; }

  const Expression& operator[](ExpressionId e) const { return nodes_[static_cast<std::size_t>(e)]; }
  ExpressionId part(const Expression& e, std::uint32_t i) const { return parts_[e.first + i]; }
  const std::vector<Rule>& rules() const { return rules_; }

 private:
  static constexpr std::size_t kMostNodes = std::size_t{1} << 21;

  ExpressionId add(Expression node, const std::vector<ExpressionId>& parts);
  ExpressionId prefix_tree(const std::vector<std::string>& all, std::size_t begin, std::size_t end,
                           std::size_t depth);

  std::vector<Expression> nodes_;
  std::vector<ExpressionId> parts_;
  std::vector<Rule> rules_;
};

}  // namespace coppice::core::grammar
