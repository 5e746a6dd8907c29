// Operators as Python has them, but that whole numbers end at 64 bits: beyond, an operation fails.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/check.h"
#include "jinja/print.h"
#include "jinja/runtime.h"

namespace coppice::core::jinja {
namespace {

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "**"};

std::string_view sign_of(Operator op) { return kSigns[static_cast<std::size_t>(op)]; }

tl::unexpected<Error> too_large() { return fail("the result is a whole number of more than 64 bits"); }

Result<Value> power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return fail("0 cannot be raised to a negative power");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) return too_large();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return too_large();
  }
  return Value(result);
}

Result<Value> whole(Operator op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  const bool divides = op == Operator::divide || op == Operator::floor_divide || op == Operator::modulo;
  if (divides && b == 0) return fail("division by zero");
  switch (op) {
    case Operator::add:
      if (__builtin_add_overflow(a, b, &result)) return too_large();
      return Value(result);
    case Operator::subtract:
      if (__builtin_sub_overflow(a, b, &result)) return too_large();
      return Value(result);
    case Operator::multiply:
      if (__builtin_mul_overflow(a, b, &result)) return too_large();
      return Value(result);
    case Operator::divide:
      return Value(static_cast<double>(a) / static_cast<double>(b));
    case Operator::floor_divide:
    case Operator::modulo: {
      if (b == -1) return op == Operator::modulo ? Value(std::int64_t{0}) : whole(Operator::subtract, 0, a);
      const std::int64_t rest = a % b;
      const bool other_sign = rest != 0 && (rest < 0) != (b < 0);
      if (op == Operator::modulo) return Value(other_sign ? rest + b : rest);
      return Value(a / b - (other_sign ? 1 : 0));
    }
    case Operator::power:
      return power(a, b);
  }
  return too_large();
}

double floor_modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

Result<Value> floats(Operator op, double a, double b) {
  const bool divides = op == Operator::divide || op == Operator::floor_divide || op == Operator::modulo;
  if (divides && b == 0) return fail("division by zero");
  switch (op) {
    case Operator::add:
      return Value(a + b);
    case Operator::subtract:
      return Value(a - b);
    case Operator::multiply:
      return Value(a * b);
    case Operator::divide:
      return Value(a / b);
    case Operator::floor_divide: {
      const double quotient = (a - floor_modulo(a, b)) / b;
      const double floor = std::floor(quotient);
      return Value(quotient - floor > 0.5 ? floor + 1 : floor);
    }
    case Operator::modulo:
      return Value(floor_modulo(a, b));
    case Operator::power: {
      if (a == 0 && b < 0) return fail("0.0 cannot be raised to a negative power");
      const double result = std::pow(a, b);
      if (std::isnan(result) && !std::isnan(a) && !std::isnan(b))
        return fail("a negative number to a broken power is no real number");
      if (std::isinf(result) && !std::isinf(a) && !std::isinf(b)) return fail("the result is too large");
      return Value(result);
    }
  }
  return too_large();
}

Result<Value> join_texts(Runtime& runtime, const Text& a, const Text& b) {
  COPPICE_TRY_STATUS(runtime.charge(a.size() + b.size()));
  const bool markup = a.markup || b.markup;
  Text joined = markup && !a.markup ? escape_html(a) : a;
  joined.append(markup && !b.markup ? escape_html(b) : b);
  joined.markup = markup;
  return Value(std::move(joined));
}

Result<Value> join_sequences(Runtime& runtime, const Sequence& a, const Sequence& b) {
  std::vector<Value> items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return runtime.list(a.form, std::move(items));
}

// text * n and list * n.
Result<Value> repeat(Runtime& runtime, const Value& value, std::int64_t times) {
  const auto count = static_cast<std::uint64_t>(std::max<std::int64_t>(times, 0));
  const std::uint64_t size = value.text() ? value.text()->size() : 16 * value.sequence()->items.size();
  if (size > 0 && count > runtime.limits().work / size)
    return fail("the result is longer than a template may make it");
  COPPICE_TRY_STATUS(runtime.charge(size * count));
  if (value.text()) {
    Text text;
    text.markup = value.text()->markup;
    if (size > 0)
      for (std::uint64_t i = 0; i < count; ++i) text.append(*value.text());
    return Value(std::move(text));
  }
  std::vector<Value> items;
  if (size > 0)
    for (std::uint64_t i = 0; i < count; ++i)
      items.insert(items.end(), value.sequence()->items.begin(), value.sequence()->items.end());
  return make_sequence(value.sequence()->form, std::move(items));
}

bool repeats(const Value& value) {
  return value.text() || (value.sequence() && value.sequence()->form <= Sequence::Form::tuple);
}

}  // namespace

Result<Value> arithmetic(Runtime& runtime, Operator op, const Value& left, const Value& right) {
  if (op == Operator::modulo && left.text()) return percent_format(runtime, *left.text(), right);
  for (const Value* value : {&left, &right})
    if (value->is_undefined()) return fail(*value->undefined()->why);
  std::int64_t i = 0, j = 0;
  const bool whole_left = left.to_integer(i), whole_right = right.to_integer(j);
  if (whole_left && whole_right) return whole(op, i, j);
  double x = 0, y = 0;
  if (left.to_number(x) && right.to_number(y)) return floats(op, x, y);
  if (op == Operator::add && left.text() && right.text())
    return join_texts(runtime, *left.text(), *right.text());
  if (op == Operator::add && left.sequence() && right.sequence() && repeats(left) &&
      left.sequence()->form == right.sequence()->form)
    return join_sequences(runtime, *left.sequence(), *right.sequence());
  if (op == Operator::multiply && repeats(left) && whole_right) return repeat(runtime, left, j);
  if (op == Operator::multiply && repeats(right) && whole_left) return repeat(runtime, right, i);
  return fail(fmt::format("{} {} {} is not possible", type_name(left), sign_of(op), type_name(right)));
}

Result<Value> negate(const Value& value) {
  if (value.is_undefined()) return fail(*value.undefined()->why);
  if (value.number()) return Value(-*value.number());
  if (std::int64_t i = 0; value.to_integer(i)) return whole(Operator::subtract, 0, i);
  return fail(fmt::format("- wants a number, not a {}", type_name(value)));
}

Result<Value> concatenate(Runtime& runtime, std::span<const Value> values) {
  Text out;
  for (const Value& value : values) {
    COPPICE_TRY(const Text text, runtime.to_text(value));
    COPPICE_TRY_STATUS(runtime.charge(text.size()));
    out.append(text);
  }
  return Value(std::move(out));
}

Text escape_html(const Text& text) {
  Text out;
  out.markup = true;
  const std::string& bytes = text.bytes();
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const char c = bytes[at];
    const std::string_view escaped = c == '&'    ? "&amp;"
                                     : c == '<'  ? "&lt;"
                                     : c == '>'  ? "&gt;"
                                     : c == '"'  ? "&#34;"
                                     : c == '\'' ? "&#39;"
                                                 : "";
    if (escaped.empty()) {
      out.append(text, at, at + 1);
    } else {
      out.append(escaped, text.any_data(at, at + 1) ? Origin::data : Origin::own);
    }
  }
  return out;
}

}  // namespace coppice::core::jinja
