#include "grammar/json_text.h"

#include <algorithm>

namespace coppice::core::grammar {
namespace {

constexpr int kMostIndent = 40;         // spaces
constexpr int kMostTabs = 12;           // the same
constexpr int kMostExponentDigits = 2;  // no number overflows a double

const CodePoints& escaped() {  // what a string must not have as it is
  static const CodePoints kEscaped{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  return kEscaped;
}

// \b, \n and so on, for those that have one; else \u00XX.
std::string escape_of(char32_t point) {
  return json_spelling(std::string(1, static_cast<char>(point))).substr(1, std::string::npos);
}

std::u32string decoded(const std::string& text) {
  std::u32string out;
  for (std::size_t at = 0; at < text.size();) {
    const auto point = next_point(text, at);
    if (!point) break;
    out += *point;
  }
  return out;
}

}  // namespace

std::string json_spelling(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

RuleId JsonText::define(std::string name, ExpressionId body) {
  const RuleId rule = rules_.add_rule(std::move(name));
  rules_.define(rule, body);
  return rule;
}

JsonText::JsonText(RuleSet& rules) : rules_(rules) {
  RuleSet& r = rules_;
  space_ = define("space",
                  r.choice({r.empty(), r.text(" "),
                            r.sequence({r.text("\n"), r.choice({r.repeat(r.text(" "), 0, kMostIndent),
                                                                r.repeat(r.text("\t"), 1, kMostTabs)})})}));
  character_ = define("character", any_character());
  plain_character_ = define("character spelled plainly", character(CodePoints::all()));
  string_ = define("string", quoted(r.repeat(any_character(), 0, kForever)));
  const ExpressionId digit = r.bytes('0', '9'), minus = r.optional(r.text("-"));
  const auto whole = [&](int most) { return r.sequence({r.bytes('1', '9'), r.repeat(digit, 0, most - 1)}); };
  integer_ = define("integer", integers_between(r, -kMostInteger, kMostInteger));
  number_ =
      define("number", r.sequence({minus, r.choice({r.text("0"), whole(kMostDigits)}),
                                   r.optional(r.sequence({r.text("."), r.repeat(digit, 1, kMostDigits)})),
                                   r.optional(r.sequence({r.choice({r.text("e"), r.text("E")}),
                                                          r.optional(r.choice({r.text("+"), r.text("-")})),
                                                          r.repeat(digit, 1, kMostExponentDigits)}))}));
  value_ = r.add_rule("value");
  const ExpressionId value = r.call(value_);
  object_ = define("object", wrapped('{', list(member(r.call(string_), value), 0, kForever), '}'));
  array_ = define("array", wrapped('[', list(value, 0, kForever), ']'));
  r.define(value_,
           r.choice({r.call(object_), r.call(array_), r.call(string_), r.call(number_), boolean(), null()}));
}

ExpressionId JsonText::wrapped(char begin, ExpressionId inside, char end) {
  return rules_.sequence({rules_.bytes(begin, begin), space(), inside, space(), rules_.bytes(end, end)});
}

ExpressionId JsonText::comma() { return rules_.sequence({rules_.text(","), space()}); }

ExpressionId JsonText::member(ExpressionId key, ExpressionId value) {
  return rules_.sequence({key, rules_.text(":"), space(), value});
}

ExpressionId JsonText::list(ExpressionId part, int least, int most) {
  if (most == 0) return rules_.empty();
  const ExpressionId more = rules_.repeat(rules_.sequence({comma(), part}), std::max(least - 1, 0),
                                          most == kForever ? most : most - 1);
  const ExpressionId some = rules_.sequence({part, more});
  return least > 0 ? some : rules_.optional(some);
}

ExpressionId JsonText::constant(const Json& value) {
  if (value.is_array()) {
    std::vector<ExpressionId> parts;
    for (const Json& part : value) {
      if (!parts.empty()) parts.push_back(comma());
      parts.push_back(constant(part));
    }
    return wrapped('[', rules_.sequence(parts), ']');
  }
  if (value.is_object()) {
    std::vector<ExpressionId> parts;
    for (const auto& [name, part] : value.items()) {
      if (!parts.empty()) parts.push_back(comma());
      parts.push_back(member(rules_.text(json_spelling(name)), constant(part)));
    }
    return wrapped('{', rules_.sequence(parts), '}');
  }
  return rules_.text(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// --- strings ---

ExpressionId JsonText::quoted(ExpressionId inside) {
  return rules_.sequence({rules_.text("\""), inside, rules_.text("\"")});
}

// As it is, or by any of the ways to escape it. A surrogate is escaped only with its other half.
ExpressionId JsonText::any_character() {
  RuleSet& r = rules_;
  const ExpressionId hex = r.choice({r.bytes('0', '9'), r.bytes('A', 'F'), r.bytes('a', 'f')});
  const ExpressionId d = r.choice({r.text("d"), r.text("D")});
  const auto letters = [&](std::string_view all) {
    std::vector<ExpressionId> parts;
    for (const char c : all) parts.push_back(r.bytes(c, c));
    return r.choice(parts);
  };
  const ExpressionId other =
      r.choice({r.sequence({r.choice({r.bytes('0', '9'), letters("abcefABCEF")}), hex, hex, hex}),
                r.sequence({d, r.bytes('0', '7'), hex, hex})});
  const ExpressionId pair =
      r.sequence({d, letters("89abAB"), hex, hex, r.text("\\u"), d, letters("cdefCDEF"), hex, hex});
  const ExpressionId escape = r.sequence(
      {r.text("\\"), r.choice({letters("\"\\/bfnrt"), r.sequence({r.text("u"), r.choice({other, pair})})})});
  return r.choice({r.points(CodePoints::all().without(escaped())), escape});
}

ExpressionId JsonText::character(const CodePoints& set) {
  std::vector<ExpressionId> choices = {rules_.points(set.without(escaped()))};
  for (const PointRange& range : escaped().ranges()) {
    for (char32_t point = range.first; point <= range.last; ++point) {
      if (!set.has(point)) continue;
      std::string spelled = escape_of(point);
      spelled.pop_back();  // the quote
      choices.push_back(rules_.text(spelled));
    }
  }
  return rules_.choice(choices);
}

ExpressionId JsonText::string_of(int least, int most) {
  if (least == 0 && most == kForever) return any_string();
  return quoted(rules_.repeat(rules_.call(character_), least, most));
}

ExpressionId JsonText::key_besides(std::vector<std::string> names) {
  if (names.empty()) return any_string();
  std::vector<std::u32string> points;
  for (const std::string& name : names) points.push_back(decoded(name));
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return quoted(besides(points, 0, points.size(), 0));
}

// What follows the first `depth` characters that names begin to end share: nothing, unless that is a name;
// one of their next characters and so on; another character and anything.
ExpressionId JsonText::besides(const std::vector<std::u32string>& names, std::size_t begin, std::size_t end,
                               std::size_t depth) {
  std::vector<ExpressionId> choices;
  if (begin < end && names[begin].size() == depth)
    ++begin;
  else
    choices.push_back(rules_.empty());
  CodePoints next;
  while (begin < end) {
    const char32_t point = names[begin][depth];
    next.add(point, point);
    std::size_t last = begin;
    while (last < end && names[last][depth] == point) ++last;
    choices.push_back(rules_.sequence({character({{point, point}}), besides(names, begin, last, depth + 1)}));
    begin = last;
  }
  choices.push_back(rules_.sequence({character(CodePoints::all().without(next)),
                                     rules_.repeat(rules_.call(plain_character_), 0, kForever)}));
  return rules_.choice(choices);
}

}  // namespace coppice::core::grammar
