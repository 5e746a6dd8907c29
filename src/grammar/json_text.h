// How JSON is spelled: the parts that schemas are put together from. One object for one grammar.
//
// White space: none, one space, or a line's end with an indentation, and only where people and programs put
// it (after {, [, ":" and "," and before } and ]). It is bounded, so that a model cannot write spaces for
// ever; numbers are bounded for the same reason.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/expression.h"

namespace coppice::core::grammar {

using Json = nlohmann::ordered_json;

inline constexpr int kMostDigits = 15;  // before the point and behind it: what a double holds exactly

class JsonText {
 public:
  explicit JsonText(RuleSet& rules);

  ExpressionId space() { return rules_.call(space_); }
  // `begin` part (, part)* `end`; the parts bring their commas with comma().
  ExpressionId wrapped(char begin, ExpressionId inside, char end);
  ExpressionId comma();
  ExpressionId member(ExpressionId key, ExpressionId value);
  // An array or an object of any number of these, least to most.
  ExpressionId list(ExpressionId part, int least, int most);

  ExpressionId any_value() { return rules_.call(value_); }
  ExpressionId any_object() { return rules_.call(object_); }
  ExpressionId any_array() { return rules_.call(array_); }
  ExpressionId any_string() { return rules_.call(string_); }
  ExpressionId any_number() { return rules_.call(number_); }
  ExpressionId any_integer() { return rules_.call(integer_); }
  ExpressionId boolean() { return rules_.choice({rules_.text("true"), rules_.text("false")}); }
  ExpressionId null() { return rules_.text("null"); }
  // This value and no other, written as programs write it.
  ExpressionId constant(const Json& value);

  ExpressionId string_of(int least, int most);  // characters; most may be kForever
  ExpressionId quoted(ExpressionId inside);
  // Any string but these, as a key: characters spelled plainly, so that each string has one spelling.
  ExpressionId key_besides(std::vector<std::string> names);
  // One character of the set inside a string, spelled plainly: escaped only where it must be.
  ExpressionId character(const CodePoints& set);

  RuleSet& rules() { return rules_; }

 private:
  RuleId define(std::string name, ExpressionId body);
  ExpressionId any_character();
  ExpressionId besides(const std::vector<std::u32string>& names, std::size_t begin, std::size_t end,
                       std::size_t depth);

  RuleSet& rules_;
  RuleId space_, character_, plain_character_, string_, number_, integer_, value_, object_, array_;
};

// A string's value as JSON, quotes included, non-ASCII characters as they are.
std::string json_spelling(const std::string& text);

// Whole numbers from least to most (docs/grammar.md: at most 18 digits).
ExpressionId integers_between(RuleSet& rules, std::int64_t least, std::int64_t most);
inline constexpr std::int64_t kMostInteger = 999'999'999'999'999'999;

// An end of a range of numbers, by its decimal digits, at most kMostDigits of them.
struct Bound {
  bool there = false;
  bool negative = false;
  bool exclusive = false;
  std::string whole = "0";  // digits before the point, none of them a leading 0
  std::string part;         // behind it, without zeros at the end
};
// Empty where it has more digits than that.
std::optional<Bound> bound_of(const Json& number, bool exclusive);
// Decimal numbers without exponents between two ends.
ExpressionId numbers_between(RuleSet& rules, const Bound& least, const Bound& most);

}  // namespace coppice::core::grammar
