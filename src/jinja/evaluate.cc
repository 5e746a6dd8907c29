#include <fmt/format.h>

#include "base/check.h"
#include "jinja/interpreter.h"
#include "jinja/print.h"

namespace coppice::core::jinja {

Result<Value> Interpreter::name(const Expression& expression) const {
  if (const Value* value = scope_->find(expression.symbol)) return *value;
  return Value(undefined(fmt::format("{} is not defined", in_quotes(program_.names[expression.symbol]))));
}

Result<Value> Interpreter::evaluate(const Expression& expression) {
  ++depth_;
  Result<Value> value = Value();
  if (Status deep = check_depth(expression.at); !deep) {
    value = tl::unexpected(std::move(deep).error());
  } else if (Status paid = located(expression.at, runtime_.charge(kStep)); !paid) {
    value = tl::unexpected(std::move(paid).error());
  } else {
    value = evaluate_parts(expression);
  }
  --depth_;
  return value;
}

Result<Value> Interpreter::evaluate_parts(const Expression& expression) {
  using Kind = Expression::Kind;
  switch (expression.kind) {
    case Kind::constant:
      return expression.value;
    case Kind::name:
      return name(expression);
    case Kind::dict:
      return evaluate_dict(expression);
    case Kind::compare:
      return compare_chain(expression);
    case Kind::slice:
      return slice(expression);
    case Kind::call:
      return call(expression, nullptr);
    case Kind::filter:
      return filter(expression, nullptr);
    case Kind::test:
      return test(expression);
    case Kind::both:
    case Kind::either: {
      COPPICE_TRY(Value left, evaluate(*expression.parts[0]));
      if (truth(left) == (expression.kind == Kind::either)) return left;
      return evaluate(*expression.parts[1]);
    }
    case Kind::choose: {
      COPPICE_TRY(const Value condition, evaluate(*expression.parts[0]));
      if (truth(condition)) return evaluate(*expression.parts[1]);
      if (expression.parts[2]) return evaluate(*expression.parts[2]);
      return Value(undefined("the condition of an if without else is false"));
    }
    default:
      break;
  }
  std::vector<Value> parts;
  parts.reserve(expression.parts.size());
  for (const ExpressionPtr& part : expression.parts) {
    COPPICE_TRY(parts.emplace_back(), evaluate(*part));
  }
  switch (expression.kind) {
    case Kind::list:
      return located(expression.at, runtime_.list(Sequence::Form::list, std::move(parts)));
    case Kind::tuple:
      return located(expression.at, runtime_.list(Sequence::Form::tuple, std::move(parts)));
    case Kind::negate:
      return located(expression.at, negate(parts[0]));
    case Kind::plus:  // twice, for it wants the same and makes a bool a number
      return located(expression.at, negate(parts[0]).and_then([](const Value& v) { return negate(v); }));
    case Kind::invert:
      return Value(!truth(parts[0]));
    case Kind::arithmetic:
      return located(expression.at, arithmetic(runtime_, expression.op, parts[0], parts[1]));
    case Kind::concatenate:
      return located(expression.at, concatenate(runtime_, parts));
    case Kind::attribute:
      return located(expression.at, runtime_.attribute(parts[0], expression.text));
    default:
      return located(expression.at, runtime_.item(parts[0], parts[1]));
  }
}

Result<Value> Interpreter::evaluate_dict(const Expression& expression) {
  std::vector<std::pair<Value, Value>> entries;
  for (std::size_t i = 0; i < expression.parts.size(); i += 2) {
    COPPICE_TRY(Value key, evaluate(*expression.parts[i]));
    COPPICE_TRY(Value value, evaluate(*expression.parts[i + 1]));
    if (!hashable(key))
      return fail_at(program_.source, expression.parts[i]->at,
                     fmt::format("a {} cannot be a dict's key", type_name(key)));
    COPPICE_TRY_STATUS(located(expression.at, runtime_.charge(16 + 4 * entries.size())));
    bool known = false;
    for (auto& entry : entries) {
      if (!equal(entry.first, key)) continue;
      entry.second = value;
      known = true;
    }
    if (!known) entries.emplace_back(std::move(key), std::move(value));
  }
  return located(expression.at, make_dict(std::move(entries)));
}

Result<bool> Interpreter::compare_two(Comparison comparison, const Value& left, const Value& right) {
  if (comparison == Comparison::in || comparison == Comparison::not_in) {
    COPPICE_TRY(const bool inside, runtime_.contains(right, left));
    return inside == (comparison == Comparison::in);
  }
  COPPICE_TRY_STATUS(runtime_.charge(std::min(left.weight(), right.weight())));
  if (comparison == Comparison::equal) return equal(left, right);
  if (comparison == Comparison::not_equal) return !equal(left, right);
  COPPICE_TRY(const int order, compare(left, right));
  switch (comparison) {
    case Comparison::less:
      return order == -1;
    case Comparison::more:
      return order == 1;
    case Comparison::less_equal:
      return order == -1 || order == 0;
    default:
      return order == 1 || order == 0;
  }
}

Result<Value> Interpreter::compare_chain(const Expression& expression) {
  COPPICE_TRY(Value left, evaluate(*expression.parts[0]));
  for (std::size_t i = 0; i < expression.comparisons.size(); ++i) {
    COPPICE_TRY(Value right, evaluate(*expression.parts[i + 1]));
    COPPICE_TRY(const bool holds,
                located(expression.at, compare_two(expression.comparisons[i], left, right)));
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Result<Value> Interpreter::slice(const Expression& expression) {
  Value parts[4];  // none where one was left out
  for (std::size_t i = 0; i < 4; ++i) {
    if (!expression.parts[i]) continue;
    COPPICE_TRY(parts[i], evaluate(*expression.parts[i]));
  }
  return located(expression.at, runtime_.slice(parts[0], parts[1], parts[2], parts[3]));
}

Result<Arguments> Interpreter::arguments(const CallArguments& given) {
  Arguments out;
  for (const ExpressionPtr& part : given.positional) {
    COPPICE_TRY(out.positional.emplace_back(), evaluate(*part));
  }
  if (given.more_positional) {
    COPPICE_TRY(const Value more, evaluate(*given.more_positional));
    COPPICE_TRY(const std::vector<Value> items, located(given.more_positional->at, runtime_.iterate(more)));
    out.positional.insert(out.positional.end(), items.begin(), items.end());
  }
  const auto name = [&](std::string_view called, std::uint32_t at, Value value) -> Status {
    for (const auto& [known, held] : out.named)
      if (known == called)
        return fail_at(program_.source, at, fmt::format("the argument {} comes twice", called));
    out.named.emplace_back(called, std::move(value));
    return {};
  };
  for (const auto& [called, part] : given.named) {
    COPPICE_TRY(Value value, evaluate(*part));
    COPPICE_TRY_STATUS(name(called, part->at, std::move(value)));
  }
  if (!given.more_named) return out;
  const std::uint32_t at = given.more_named->at;
  COPPICE_TRY(const Value more, evaluate(*given.more_named));
  if (!more.dict())
    return fail_at(program_.source, at, fmt::format("** wants a dict, not a {}", type_name(more)));
  for (const auto& [key, value] : more.dict()->entries) {
    COPPICE_TRY_STATUS(located(at, runtime_.charge(kStep + 8 * out.named.size())));
    if (!key.text()) return fail_at(program_.source, at, "the names of arguments are str");
    COPPICE_TRY_STATUS(name(key.text()->bytes(), at, value));
  }
  return out;
}

Result<Value> Interpreter::call(const Expression& expression, const Value* caller) {
  COPPICE_TRY(const Value callee, evaluate(*expression.parts[0]));
  COPPICE_TRY(Arguments given, arguments(expression.arguments));
  if (caller) given.named.emplace_back("caller", *caller);
  const Object* object = callee.object();
  if (!object || object->kind != Object::Kind::macro)
    return located(expression.at, runtime_.call(callee, given));
  const auto& macro = static_cast<const Macro&>(*object);
  auto result = call_macro(macro, std::move(given));
  const bool has_place = !result && result.error().message.starts_with("line ");
  return has_place ? result : located(expression.at, std::move(result));
}

Result<Value> Interpreter::filter(const Expression& expression, const Value* base) {
  Value self;
  if (!expression.parts[0]) {
    self = *base;
  } else if (base && expression.parts[0]->kind == Expression::Kind::filter) {
    COPPICE_TRY(self, filter(*expression.parts[0], base));
  } else {
    COPPICE_TRY(self, evaluate(*expression.parts[0]));
  }
  COPPICE_TRY(const Arguments given, arguments(expression.arguments));
  return located(expression.at, runtime_.filter(expression.text, self, given));
}

Result<Value> Interpreter::test(const Expression& expression) {
  COPPICE_TRY(const Value self, evaluate(*expression.parts[0]));
  COPPICE_TRY(const Arguments given, arguments(expression.arguments));
  COPPICE_TRY(const bool holds, located(expression.at, runtime_.test(expression.text, self, given)));
  return Value(holds);
}

}  // namespace coppice::core::jinja
