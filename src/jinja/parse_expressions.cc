#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "jinja/parser.h"
#include "jinja/print.h"

namespace coppice::core::jinja {
namespace {

using Kind = Expression::Kind;

ExpressionPtr make(Kind kind, std::uint32_t at) {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->at = at;
  return made;
}

std::vector<ExpressionPtr> two(ExpressionPtr a, ExpressionPtr b) {
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(a));
  parts.push_back(std::move(b));
  return parts;
}

std::vector<ExpressionPtr> one(ExpressionPtr a) {
  std::vector<ExpressionPtr> parts;
  parts.push_back(std::move(a));
  return parts;
}

}  // namespace

// Its depth is known from here on, and is not too large.
Result<ExpressionPtr> Parser::finish(ExpressionPtr made) const {
  int depth = 0;
  const auto see = [&](const ExpressionPtr& part) {
    if (part) depth = std::max(depth, part->depth);
  };
  for (const ExpressionPtr& part : made->parts) see(part);
  for (const ExpressionPtr& part : made->arguments.positional) see(part);
  for (const auto& [name, part] : made->arguments.named) see(part);
  see(made->arguments.more_positional);
  see(made->arguments.more_named);
  made->depth = depth + 1;
  if (made->depth > kTallest)
    return wrong(made->at, fmt::format("this expression has more than {} steps in a row, which is the limit",
                                       kTallest));
  return made;
}

Result<ExpressionPtr> Parser::node(Kind kind, std::uint32_t at, std::vector<ExpressionPtr> parts) const {
  ExpressionPtr made = make(kind, at);
  made->parts = std::move(parts);
  return finish(std::move(made));
}

Result<ExpressionPtr> Parser::expression(bool with_choice) {
  const Level level(depth_);
  COPPICE_TRY_STATUS(check_depth());
  return with_choice ? choice() : either();
}

bool Parser::tuple_ends() const {
  return now().kind == TokenKind::variable_end || now().kind == TokenKind::block_end || now().is_sign(")") ||
         now().is_name("recursive");
}

Result<ExpressionPtr> Parser::tuple(bool with_choice, bool parentheses) {
  const std::uint32_t at = now().at;
  std::vector<ExpressionPtr> parts;
  bool is_tuple = false;
  while (!tuple_ends()) {
    COPPICE_TRY(parts.emplace_back(), expression(with_choice));
    if (!skip_sign(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !parts.empty()) return std::move(parts[0]);
  if (!is_tuple && !parentheses) return unexpected("an expression");
  return node(Kind::tuple, at, std::move(parts));
}

Result<ExpressionPtr> Parser::choice() {
  const std::size_t unknown = unknown_.size();
  COPPICE_TRY(ExpressionPtr value, either());
  while (now().is_name("if")) {
    const std::uint32_t at = take().at;
    std::vector<ExpressionPtr> parts(3);
    COPPICE_TRY(parts[0], either());
    parts[1] = std::move(value);
    if (skip_name("else")) {
      const Level level(depth_);
      COPPICE_TRY_STATUS(check_depth());
      COPPICE_TRY(parts[2], choice());
    }
    COPPICE_TRY(value, node(Kind::choose, at, std::move(parts)));
    forgive(unknown);
  }
  return value;
}

Result<ExpressionPtr> Parser::either() {
  COPPICE_TRY(ExpressionPtr left, both());
  while (now().is_name("or")) {
    const std::uint32_t at = take().at;
    COPPICE_TRY(ExpressionPtr right, both());
    COPPICE_TRY(left, node(Kind::either, at, two(std::move(left), std::move(right))));
  }
  return left;
}

Result<ExpressionPtr> Parser::both() {
  COPPICE_TRY(ExpressionPtr left, inverted());
  while (now().is_name("and")) {
    const std::uint32_t at = take().at;
    COPPICE_TRY(ExpressionPtr right, inverted());
    COPPICE_TRY(left, node(Kind::both, at, two(std::move(left), std::move(right))));
  }
  return left;
}

Result<ExpressionPtr> Parser::inverted() {
  if (!now().is_name("not")) return comparison();
  const Level level(depth_);
  COPPICE_TRY_STATUS(check_depth());
  const std::uint32_t at = take().at;
  COPPICE_TRY(ExpressionPtr value, inverted());
  return node(Kind::invert, at, one(std::move(value)));
}

Result<ExpressionPtr> Parser::comparison() {
  constexpr std::pair<std::string_view, Comparison> kSigns[] = {
      {"==", Comparison::equal}, {"!=", Comparison::not_equal},  {"<", Comparison::less},
      {">", Comparison::more},   {"<=", Comparison::less_equal}, {">=", Comparison::more_equal}};
  COPPICE_TRY(ExpressionPtr first, sum());
  ExpressionPtr made;
  while (true) {
    const std::uint32_t at = now().at;
    std::optional<Comparison> found;
    for (const auto& [sign, means] : kSigns)
      if (now().is_sign(sign)) found = means;
    if (now().is_name("in")) found = Comparison::in;
    if (now().is_name("not") && ahead().is_name("in")) {
      found = Comparison::not_in;
      take();
    }
    if (!found) break;
    take();
    if (!made) {
      made = make(Kind::compare, at);
      made->parts.push_back(std::move(first));
    }
    made->comparisons.push_back(*found);
    COPPICE_TRY(made->parts.emplace_back(), sum());
  }
  if (!made) return first;
  return finish(std::move(made));
}

Result<ExpressionPtr> Parser::sum() {
  COPPICE_TRY(ExpressionPtr left, concatenation());
  while (now().is_sign("+") || now().is_sign("-")) {
    const Token& sign = take();
    ExpressionPtr made = make(Kind::arithmetic, sign.at);
    made->op = sign.text == "+" ? Operator::add : Operator::subtract;
    COPPICE_TRY(ExpressionPtr right, concatenation());
    made->parts = two(std::move(left), std::move(right));
    COPPICE_TRY(left, finish(std::move(made)));
  }
  return left;
}

Result<ExpressionPtr> Parser::concatenation() {
  const std::uint32_t at = now().at;
  std::vector<ExpressionPtr> parts;
  COPPICE_TRY(parts.emplace_back(), product());
  while (skip_sign("~")) {
    COPPICE_TRY(parts.emplace_back(), product());
  }
  if (parts.size() == 1) return std::move(parts[0]);
  return node(Kind::concatenate, at, std::move(parts));
}

Result<ExpressionPtr> Parser::product() {
  constexpr std::pair<std::string_view, Operator> kSigns[] = {{"*", Operator::multiply},
                                                              {"/", Operator::divide},
                                                              {"//", Operator::floor_divide},
                                                              {"%", Operator::modulo}};
  COPPICE_TRY(ExpressionPtr left, power());
  while (true) {
    std::optional<Operator> op;
    for (const auto& [sign, means] : kSigns)
      if (now().is_sign(sign)) op = means;
    if (!op) return left;
    ExpressionPtr made = make(Kind::arithmetic, take().at);
    made->op = *op;
    COPPICE_TRY(ExpressionPtr right, power());
    made->parts = two(std::move(left), std::move(right));
    COPPICE_TRY(left, finish(std::move(made)));
  }
}

// jinja2's groups from the left.
Result<ExpressionPtr> Parser::power() {
  COPPICE_TRY(ExpressionPtr left, unary(true));
  while (now().is_sign("**")) {
    ExpressionPtr made = make(Kind::arithmetic, take().at);
    made->op = Operator::power;
    COPPICE_TRY(ExpressionPtr right, unary(true));
    made->parts = two(std::move(left), std::move(right));
    COPPICE_TRY(left, finish(std::move(made)));
  }
  return left;
}

Result<ExpressionPtr> Parser::unary(bool with_filter) {
  ExpressionPtr value;
  if (now().is_sign("-") || now().is_sign("+")) {
    const Level level(depth_);
    COPPICE_TRY_STATUS(check_depth());
    const Token& sign = take();
    const Kind kind = sign.text == "-" ? Kind::negate : Kind::plus;
    COPPICE_TRY(ExpressionPtr inside, unary(false));
    COPPICE_TRY(value, node(kind, sign.at, one(std::move(inside))));
  } else {
    COPPICE_TRY(value, primary());
  }
  COPPICE_TRY(value, postfix(std::move(value)));
  if (with_filter) return filters(std::move(value));
  return value;
}

Result<ExpressionPtr> Parser::primary() {
  const Token& token = now();
  ExpressionPtr made = make(Kind::constant, token.at);
  switch (token.kind) {
    case TokenKind::name:
      take();
      if (token.text == "true" || token.text == "True") {
        made->value = Value(true);
      } else if (token.text == "false" || token.text == "False") {
        made->value = Value(false);
      } else if (token.text != "none" && token.text != "None") {
        made->kind = Kind::name;
        made->symbol = symbol(token.text);
        ++uses_[made->symbol];
      }
      return made;
    case TokenKind::string: {
      std::string text;
      while (now().kind == TokenKind::string) text += take().text;
      made->value = Value(Text(std::move(text)));
      return made;
    }
    case TokenKind::integer:
      made->value = Value(take().integer);
      return made;
    case TokenKind::number:
      made->value = Value(take().number);
      return made;
    default:
      break;
  }
  if (token.is_sign("[")) return list();
  if (token.is_sign("{")) return dict();
  if (!token.is_sign("(")) return unexpected("a value");
  take();
  COPPICE_TRY(ExpressionPtr inside, tuple(true, true));
  COPPICE_TRY_STATUS(expect_sign(")"));
  return inside;
}

Result<ExpressionPtr> Parser::list() {
  const std::uint32_t at = take().at;
  std::vector<ExpressionPtr> parts;
  while (!now().is_sign("]")) {
    if (!parts.empty()) COPPICE_TRY_STATUS(expect_sign(","));
    if (now().is_sign("]")) break;
    COPPICE_TRY(parts.emplace_back(), expression());
  }
  take();
  return node(Kind::list, at, std::move(parts));
}

Result<ExpressionPtr> Parser::dict() {
  const std::uint32_t at = take().at;
  std::vector<ExpressionPtr> parts;
  while (!now().is_sign("}")) {
    if (!parts.empty()) COPPICE_TRY_STATUS(expect_sign(","));
    if (now().is_sign("}")) break;
    COPPICE_TRY(parts.emplace_back(), expression());
    COPPICE_TRY_STATUS(expect_sign(":"));
    COPPICE_TRY(parts.emplace_back(), expression());
  }
  take();
  return node(Kind::dict, at, std::move(parts));
}

Result<ExpressionPtr> Parser::postfix(ExpressionPtr value) {
  while (true) {
    if (now().is_sign(".") || now().is_sign("[")) {
      COPPICE_TRY(value, subscript(std::move(value)));
    } else if (now().is_sign("(")) {
      COPPICE_TRY(value, call(std::move(value)));
    } else {
      return value;
    }
  }
}

Result<ExpressionPtr> Parser::filters(ExpressionPtr value) {
  while (true) {
    if (skip_sign("|")) {
      COPPICE_TRY(value, filter(std::move(value)));
    } else if (now().is_name("is")) {
      COPPICE_TRY(value, test(std::move(value)));
    } else if (now().is_sign("(")) {
      COPPICE_TRY(value, call(std::move(value)));
    } else {
      return value;
    }
  }
}

Result<ExpressionPtr> Parser::subscript(ExpressionPtr value) {
  const Token& sign = take();
  if (sign.text == "[") return in_brackets(std::move(value), sign.at);
  const Token& name = now();
  if (name.kind == TokenKind::integer) {
    ExpressionPtr index = make(Kind::constant, name.at);
    index->value = Value(take().integer);
    return node(Kind::item, sign.at, two(std::move(value), std::move(index)));
  }
  if (name.kind != TokenKind::name) return unexpected("the name of an attribute");
  ExpressionPtr made = make(Kind::attribute, name.at);
  made->text = take().text;
  made->parts = one(std::move(value));
  return finish(std::move(made));
}

Result<ExpressionPtr> Parser::in_brackets(ExpressionPtr value, std::uint32_t at) {
  std::vector<ExpressionPtr> parts(4);
  parts[0] = std::move(value);
  std::size_t place = 1;
  bool is_slice = false;
  while (!now().is_sign("]")) {
    if (now().is_sign(":")) {
      if (++place > 3) return unexpected("]");
      is_slice = true;
      take();
      continue;
    }
    if (parts[place]) return unexpected("]");
    COPPICE_TRY(parts[place], expression());
  }
  if (!is_slice && !parts[1]) return unexpected("a key");
  take();
  if (!is_slice) parts.resize(2);
  return node(is_slice ? Kind::slice : Kind::item, at, std::move(parts));
}

Result<ExpressionPtr> Parser::call(ExpressionPtr value) {
  ExpressionPtr made = make(Kind::call, value->at);
  made->parts = one(std::move(value));
  COPPICE_TRY_STATUS(arguments(made->arguments));
  return finish(std::move(made));
}

Result<std::string> Parser::dotted_name(std::string_view what) {
  COPPICE_TRY(std::string name, expect_name(what));
  while (skip_sign(".")) {
    COPPICE_TRY(const std::string more, expect_name(what));
    name += "." + more;
  }
  return name;
}

Result<ExpressionPtr> Parser::filter(ExpressionPtr value) {
  ExpressionPtr made = make(Kind::filter, now().at);
  COPPICE_TRY(made->text, dotted_name("the name of a filter"));
  if (!filter_exists(made->text))
    unknown_.push_back({made->at, fmt::format("there is no filter {}", in_quotes(made->text)), false});
  made->parts = one(std::move(value));
  if (now().is_sign("(")) COPPICE_TRY_STATUS(arguments(made->arguments));
  return finish(std::move(made));
}

Result<ExpressionPtr> Parser::test(ExpressionPtr value) {
  take();  // is
  const bool negated = skip_name("not");
  ExpressionPtr made = make(Kind::test, now().at);
  COPPICE_TRY(made->text, dotted_name("the name of a test"));
  if (!test_exists(made->text))
    unknown_.push_back({made->at, fmt::format("there is no test {}", in_quotes(made->text)), false});
  made->parts = one(std::move(value));
  const Token& next = now();
  const bool operand =
      next.kind == TokenKind::string || next.kind == TokenKind::integer || next.kind == TokenKind::number ||
      next.is_sign("[") || next.is_sign("{") ||
      (next.kind == TokenKind::name && next.text != "else" && next.text != "or" && next.text != "and");
  if (next.is_sign("(")) {
    COPPICE_TRY_STATUS(arguments(made->arguments));
  } else if (next.is_name("is")) {
    return wrong(next.at, "a test cannot follow a test: put the first into parentheses");
  } else if (operand) {
    COPPICE_TRY(ExpressionPtr other, primary());
    COPPICE_TRY(made->arguments.positional.emplace_back(), postfix(std::move(other)));
  }
  const std::uint32_t at = made->at;
  COPPICE_TRY(ExpressionPtr whole, finish(std::move(made)));
  if (!negated) return whole;
  return node(Kind::invert, at, one(std::move(whole)));
}

Status Parser::arguments(CallArguments& out) {
  take();  // (
  bool first = true;
  while (!now().is_sign(")")) {
    if (!first) {
      COPPICE_TRY_STATUS(expect_sign(","));
      if (now().is_sign(")")) break;
    }
    first = false;
    const std::uint32_t at = now().at;
    const auto refuse = [&](bool wrong_order) -> Status {
      if (wrong_order) return wrong(at, "arguments come in the order: by place, *list, by name, **dict");
      return {};
    };
    if (skip_sign("*")) {
      COPPICE_TRY_STATUS(refuse(out.more_positional || out.more_named));
      COPPICE_TRY(out.more_positional, expression());
    } else if (skip_sign("**")) {
      COPPICE_TRY_STATUS(refuse(out.more_named != nullptr));
      COPPICE_TRY(out.more_named, expression());
    } else if (now().kind == TokenKind::name && ahead().is_sign("=")) {
      COPPICE_TRY_STATUS(refuse(out.more_named != nullptr));
      const std::string name = take().text;
      take();
      COPPICE_TRY(ExpressionPtr value, expression());
      out.named.emplace_back(name, std::move(value));
    } else {
      COPPICE_TRY_STATUS(refuse(out.more_positional || out.more_named || !out.named.empty()));
      COPPICE_TRY(out.positional.emplace_back(), expression());
    }
  }
  take();
  return {};
}

}  // namespace coppice::core::jinja
