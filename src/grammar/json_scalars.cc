// Strings and numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "grammar/json_compiler.h"
#include "grammar/json_formats.h"
#include "grammar/json_keywords.h"
#include "grammar/json_merge.h"
#include "grammar/regex.h"

namespace coppice::core::grammar {
namespace {

// minimum, which an older spelling of exclusiveMinimum makes exclusive, and the newer exclusiveMinimum; or
// the same of maxima.
struct Limits {
  const Json* inclusive = nullptr;
  const Json* exclusive = nullptr;
};

Limits limits_of(const Json& schema, std::string_view inclusive, std::string_view exclusive) {
  Limits out{find_keyword(schema, inclusive), find_keyword(schema, exclusive)};
  if (out.exclusive != nullptr && out.exclusive->is_boolean()) {
    const bool holds = out.exclusive->get<bool>();
    out.exclusive = holds ? out.inclusive : nullptr;
    if (holds) out.inclusive = nullptr;
  }
  return out;
}

// No number is between them.
bool crossed(const Limits& low, const Limits& high) {
  for (const Json* from : {low.inclusive, low.exclusive}) {
    for (const Json* to : {high.inclusive, high.exclusive}) {
      if (from == nullptr || to == nullptr) continue;
      const bool open = from == low.exclusive || to == high.exclusive;
      if (*from > *to || (open && *from == *to)) return true;
    }
  }
  return false;
}

// "minimum 3 and maximum 1": the ends of a range, as the schema says them.
std::string ends_said(const Json& schema, bool whole) {
  std::string out;
  for (const char* name : {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "format"}) {
    const Json* there = find_keyword(schema, name);
    if (there == nullptr || (name == std::string_view("format") && !whole)) continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : " and ", name, shortened(there->dump()));
  }
  return out;
}

// An end that no integer reaches which can be kept; `end`: "Minimum" or "Maximum".
tl::unexpected<Error> too_long(const Json& schema, const Limits& limits, const std::string& end,
                               const std::string& where) {
  const std::string inclusive = end == "Minimum" ? "minimum" : "maximum";
  const bool newer =
      limits.exclusive != nullptr && limits.exclusive == find_keyword(schema, "exclusive" + end);
  return refuse_schema(below(where, newer ? "exclusive" + end : inclusive),
                       "beyond it all whole numbers have more than 18 digits, which cannot be kept");
}

// The least whole number that is at least (or above) a limit, within what integers can be.
std::int64_t from_below(const Json& limit, bool exclusive) {
  constexpr double kMost = static_cast<double>(kMostInteger);
  if (limit.is_number_unsigned() && limit.get<std::uint64_t>() > std::uint64_t{kMostInteger})
    return kMostInteger + 1;
  if (limit.is_number_integer())
    return std::clamp<std::int64_t>(limit.get<std::int64_t>(), -kMostInteger - 1, kMostInteger) +
           (exclusive ? 1 : 0);
  const double value = limit.get<double>();
  const double whole = std::ceil(value) + (exclusive && std::ceil(value) == value ? 1 : 0);
  if (whole > kMost) return kMostInteger + 1;
  return whole < -kMost ? -kMostInteger : static_cast<std::int64_t>(whole);
}

std::int64_t from_above(const Json& limit, bool exclusive) {
  if (limit.is_number_float()) return -from_below(Json(-limit.get<double>()), exclusive);
  if (limit.is_number_unsigned() && limit.get<std::uint64_t>() > std::uint64_t{kMostInteger})
    return kMostInteger;
  const std::int64_t value =
      std::clamp<std::int64_t>(limit.get<std::int64_t>(), -kMostInteger - 1, kMostInteger);
  return value - (exclusive ? 1 : 0);
}

}  // namespace

Result<ExpressionId> JsonCompiler::string(const Json& schema, const std::string& where) {
  const int least = count_of(schema, "minLength", 0), most = count_of(schema, "maxLength", kForever);
  if (most != kForever && most < least) return impossible(crossed(schema, "minLength", "maxLength"));
  const Json* pattern = find_keyword(schema, "pattern");
  const Json* format = find_keyword(schema, "format");
  if (format != nullptr && *format == Json("password")) format = nullptr;  // how it is shown
  if (pattern == nullptr && format == nullptr) return json_.string_of(least, most);
  const std::string place = below(where, pattern != nullptr ? "pattern" : "format");
  if (pattern != nullptr && format != nullptr)
    return refuse_schema(below(where, "format"), "pattern and format of one string cannot both be kept");
  std::string text;
  if (pattern != nullptr) {
    text = pattern->get<std::string>();
  } else {
    const auto known = pattern_of_format(format->get<std::string>());
    if (!known)
      return refuse_schema(place, fmt::format("the format {} is not known; there are {}",
                                              shortened(format->get<std::string>()), known_formats()));
    text = *known;
  }
  const auto parsed = parse_pattern(json_, text);
  if (!parsed) return refuse_schema(place, parsed.error().message);
  const bool long_enough = parsed->least >= least;
  const bool short_enough = most == kForever || (parsed->most != kForever && parsed->most <= most);
  if (!long_enough || !short_enough)
    return refuse_schema(
        below(where, long_enough ? "maxLength" : "minLength"),
        fmt::format("it cannot be kept beside {}; count with {{n,m}} in the pattern instead",
                    pattern != nullptr ? "a pattern whose texts may break it" : "this format"));
  return json_.quoted(parsed->inside);
}

Result<ExpressionId> JsonCompiler::integer(const Json& schema, const std::string& where) {
  if (const Json* step = find_keyword(schema, "multipleOf"); step != nullptr && *step != Json(1))
    return refuse_schema(below(where, "multipleOf"),
                         "only multiples of 1 can be kept by a grammar; leave it out");
  std::int64_t least = -kMostInteger, most = kMostInteger;
  const Limits low = limits_of(schema, "minimum", "exclusiveMinimum");
  const Limits high = limits_of(schema, "maximum", "exclusiveMaximum");
  if (low.inclusive != nullptr) least = std::max(least, from_below(*low.inclusive, false));
  if (low.exclusive != nullptr) least = std::max(least, from_below(*low.exclusive, true));
  if (high.inclusive != nullptr) most = std::min(most, from_above(*high.inclusive, false));
  if (high.exclusive != nullptr) most = std::min(most, from_above(*high.exclusive, true));
  if (const Json* format = find_keyword(schema, "format"); format != nullptr && *format == Json("int32")) {
    least = std::max<std::int64_t>(least, -2147483648);
    most = std::min<std::int64_t>(most, 2147483647);
  }
  if (least > kMostInteger) return too_long(schema, low, "Minimum", where);
  if (most < -kMostInteger) return too_long(schema, high, "Maximum", where);
  if (least > most) return impossible(ends_said(schema, true) + " leave no whole number");
  if (least == -kMostInteger && most == kMostInteger) return json_.any_integer();
  return integers_between(rules_, least, most);
}

Result<ExpressionId> JsonCompiler::number(const Json& schema, const std::string& where) {
  if (find_keyword(schema, "multipleOf") != nullptr)
    return refuse_schema(below(where, "multipleOf"), "multiples cannot be kept by a grammar; leave it out");
  Bound least, most;
  // Of two ends, the one that excludes more.
  const auto take = [&](Bound& bound, const Json* limit, bool exclusive, bool larger,
                        const char* name) -> Status {
    if (limit == nullptr) return {};
    const auto read = bound_of(*limit, exclusive);
    if (!read)
      return refuse_schema(below(where, name), fmt::format("{} has more than {} digits, which cannot be kept",
                                                           limit->dump(), kMostDigits));
    const Json* other = larger ? find_keyword(schema, "minimum") : find_keyword(schema, "maximum");
    const bool stays =
        bound.there && other != nullptr && limit != other && (larger ? *other > *limit : *other < *limit);
    if (!stays) bound = *read;
    return {};
  };
  const Limits low = limits_of(schema, "minimum", "exclusiveMinimum");
  const Limits high = limits_of(schema, "maximum", "exclusiveMaximum");
  COPPICE_TRY_STATUS(take(least, low.inclusive, false, true, "minimum"));
  COPPICE_TRY_STATUS(take(least, low.exclusive, true, true, "exclusiveMinimum"));
  COPPICE_TRY_STATUS(take(most, high.inclusive, false, false, "maximum"));
  COPPICE_TRY_STATUS(take(most, high.exclusive, true, false, "exclusiveMaximum"));
  if (!least.there && !most.there) return json_.any_number();
  if (crossed(low, high)) return impossible(ends_said(schema, false) + " leave no number");
  return numbers_between(rules_, least, most);
}

}  // namespace coppice::core::grammar
