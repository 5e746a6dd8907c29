#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/check.h"
#include "jinja/filters.h"
#include "jinja/print.h"
#include "jinja/python_text.h"

namespace coppice::core::jinja {
namespace {

std::string stripped(const Text& text) { return strip(text, std::nullopt, Side::both).bytes(); }

// Python allows an underscore between two digits.
bool drop_underscores(std::string& digits) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const auto is_digit = [&](std::size_t at) {
      return at < digits.size() && std::isalnum(static_cast<unsigned char>(digits[at]));
    };
    if (digits[i] != '_') {
      out.push_back(digits[i]);
    } else if (i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) {
      return false;
    }
  }
  digits = out;
  return true;
}

// Python's int(text, base).
std::optional<std::int64_t> parse_whole(const Text& text, int base) {
  std::string digits = stripped(text);
  bool negative = false;
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) {
    negative = digits[0] == '-';
    digits.erase(0, 1);
  }
  const auto prefixed = [&](char letter, int of) {
    return (base == of || base == 0) && digits.size() > 2 && digits[0] == '0' && (digits[1] | 32) == letter;
  };
  for (const auto& [letter, of] : {std::pair('x', 16), std::pair('o', 8), std::pair('b', 2)}) {
    if (!prefixed(letter, of)) continue;
    digits.erase(0, digits[2] == '_' ? 3 : 2);
    base = of;
    break;
  }
  if (base == 0) {
    if (digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of("0_") != std::string::npos)
      return {};
    base = 10;
  }
  if (digits.empty() || !drop_underscores(digits) || digits[0] == '-') return {};
  if (negative) digits.insert(0, "-");
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) return {};
  return value;
}

// Python's float(text).
std::optional<double> parse_broken(const Text& text) {
  std::string digits = stripped(text);
  bool negative = false;
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) {
    negative = digits[0] == '-';
    digits.erase(0, 1);
  }
  if (digits.empty() || digits[0] == '-' || !drop_underscores(digits)) return {};
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || error == std::errc::invalid_argument) return {};
  if (error == std::errc::result_out_of_range) value = std::strtod(digits.c_str(), nullptr);
  return negative ? -value : value;
}

Result<Value> truncated(double value) {
  if (!(std::abs(value) < 9223372036854775808.0))
    return fail("the number has more than 64 bits as a whole number");
  return Value(static_cast<std::int64_t>(value));
}

Result<Value> to_int(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slots[2];
  COPPICE_TRY_STATUS(arguments.bind("int", {"default", "base"}, slots));
  COPPICE_TRY(const std::int64_t base, whole_or(slots[1], 10, "int's base"));
  if (base != 0 && (base < 2 || base > 36)) return slots[0] ? *slots[0] : Value(std::int64_t{0});
  if (self.is_undefined()) return fail(*self.undefined()->why);
  COPPICE_TRY_STATUS(runtime.charge(self.weight()));
  if (std::int64_t whole = 0; self.to_integer(whole)) return Value(whole);
  std::optional<double> number;
  if (self.number()) number = *self.number();
  if (self.text()) {
    if (const auto whole = parse_whole(*self.text(), static_cast<int>(base))) return Value(*whole);
    number = parse_broken(*self.text());
  }
  if (number && std::isfinite(*number)) return truncated(*number);
  if (self.number() && std::isinf(*self.number())) return fail("an infinite number is no whole number");
  return slots[0] ? *slots[0] : Value(std::int64_t{0});
}

Result<Value> to_float(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slot = nullptr;
  COPPICE_TRY_STATUS(arguments.bind("float", {"default"}, &slot));
  if (self.is_undefined()) return fail(*self.undefined()->why);
  COPPICE_TRY_STATUS(runtime.charge(self.weight()));
  if (double number = 0; self.to_number(number)) return Value(number);
  if (const auto number = self.text() ? parse_broken(*self.text()) : std::nullopt) return Value(*number);
  return slot ? *slot : Value(0.0);
}

// Half to even, by the decimal digits the number really has.
double rounded(double value, std::int64_t precision) {
  if (!std::isfinite(value) || precision > 300) return value;
  if (precision < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-precision));
    return std::isinf(unit) ? std::copysign(0.0, value) : std::nearbyint(value / unit) * unit;
  }
  char digits[700];
  std::snprintf(digits, sizeof digits, "%.*f", static_cast<int>(precision), value);
  return std::strtod(digits, nullptr);
}

Result<Value> round(Runtime&, const Value& self, const Arguments& arguments) {
  const Value* slots[2];
  COPPICE_TRY_STATUS(arguments.bind("round", {"precision", "method"}, slots));
  COPPICE_TRY(const std::int64_t precision, whole_or(slots[0], 0, "round's precision"));
  const std::string method = slots[1] && slots[1]->text() ? slots[1]->text()->bytes()
                             : slots[1]                   ? ""
                                                          : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    return fail("round's method is \"common\", \"ceil\" or \"floor\"");
  double number = 0;
  if (!self.to_number(number)) return fail(fmt::format("round wants a number, not a {}", type_name(self)));
  if (method == "common") {
    if (std::int64_t whole = 0; self.to_integer(whole) && precision >= 0) return Value(whole);
    const double result = rounded(number, precision);
    return self.number() ? Value(result) : truncated(result);
  }
  const double unit = std::pow(10.0, static_cast<double>(precision));
  const double scaled = number * unit;
  if (!std::isfinite(scaled) || unit == 0) return fail("round: the number is too large");
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
}

Result<Value> absolute(Runtime&, const Value& self, const Arguments& arguments) {
  COPPICE_TRY_STATUS(arguments.bind("abs", {}, nullptr));
  if (self.number()) return Value(std::abs(*self.number()));
  std::int64_t whole = 0;
  if (!self.to_integer(whole)) return fail(fmt::format("abs wants a number, not a {}", type_name(self)));
  return whole < 0 ? negate(Value(whole)) : Value(whole);
}

Result<Value> sum(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const Value* slots[2];
  COPPICE_TRY_STATUS(arguments.bind("sum", {"attribute", "start"}, slots));
  Value total = slots[1] ? *slots[1] : Value(std::int64_t{0});
  if (total.text()) return fail("sum adds no texts; join does");
  Value all = self;
  if (slots[0] && !slots[0]->is_none()) {
    Arguments by;
    by.named.emplace_back("attribute", *slots[0]);
    COPPICE_TRY(all, runtime.filter("map", self, by));
  }
  COPPICE_TRY(const std::vector<Value> items, runtime.iterate(all));
  for (const Value& item : items) {
    COPPICE_TRY(total, arithmetic(runtime, Operator::add, total, item));
  }
  return total;
}

constexpr FilterRow kRows[] = {
    {"abs", absolute}, {"float", to_float}, {"int", to_int}, {"round", round}, {"sum", sum},
};

}  // namespace

std::span<const FilterRow> number_filters() { return kRows; }

}  // namespace coppice::core::jinja
