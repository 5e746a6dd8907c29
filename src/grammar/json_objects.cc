// Objects and arrays: how many of what, and where the commas are.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "grammar/json_compiler.h"
#include "grammar/json_keywords.h"
#include "grammar/json_merge.h"
#include "grammar/regex.h"

namespace coppice::core::grammar {
namespace {

constexpr std::size_t kLongestName = 200;  // bytes of a property's name, beside additional ones
constexpr std::size_t kMostPrefix = 200;   // items with a schema of their own

// A member that is not named takes its schema from additionalProperties, and stands under `required`.
std::string forbidden_by(const std::string& place) {
  return place.ends_with("/required") ? "additionalProperties" : shortened(place);
}

}  // namespace

// The members of an object: those that are named, in order, then any number of others.
struct JsonCompiler::Members {
  struct Named {
    ExpressionId member = -1;
    bool required = false;
  };
  std::vector<Named> named;
  std::vector<std::string> names;
  std::optional<ExpressionId> other;  // none: it is closed
  std::string impossible;             // why a required one cannot be; empty: all can
  int required() const {
    return static_cast<int>(
        std::count_if(named.begin(), named.end(), [](const Named& n) { return n.required; }));
  }
};

Result<ExpressionId> JsonCompiler::object(const Json& schema, const std::string& where) {
  if (find_keyword(schema, "patternProperties") != nullptr) return pattern_members(schema, where);
  COPPICE_TRY(const Members members, members_of(schema, where));
  if (!members.impossible.empty()) return impossible(members.impossible);
  if (members.named.empty()) {
    const int least = count_of(schema, "minProperties", 0);
    const int most = count_of(schema, "maxProperties", kForever);
    if (most != kForever && most < least)
      return impossible(crossed(schema, "minProperties", "maxProperties"));
    if (least > 1)
      return refuse_schema(below(where, "minProperties"),
                           "of members without names a grammar can ask for one at most, for it cannot see "
                           "that two have the same name");
    if (!members.other && least > 0)
      return impossible("minProperties wants members, and additionalProperties and properties allow none");
    if (!members.other) return json_.wrapped('{', rules_.empty(), '}');
    return json_.wrapped('{', json_.list(*members.other, least, most), '}');
  }
  COPPICE_TRY_STATUS(check_member_counts(schema, where, members));
  return json_.wrapped('{', in_order(members), '}');
}

// Counts are kept where they follow from what is required and what there is.
Status JsonCompiler::check_member_counts(const Json& schema, const std::string& where,
                                         const Members& members) {
  if (count_of(schema, "minProperties", 0) > std::max(members.required(), 0))
    return refuse_schema(below(where, "minProperties"),
                         "more members than are required cannot be asked for; name them in required");
  const int all = members.other ? kMostCount : static_cast<int>(members.named.size());
  if (count_of(schema, "maxProperties", kMostCount) < all)
    return refuse_schema(below(where, "maxProperties"),
                         "fewer members than there are properties cannot be asked for; leave it out");
  return {};
}

Result<JsonCompiler::Members> JsonCompiler::members_of(const Json& schema, const std::string& where) {
  Members out;
  std::vector<std::string> required;
  if (const Json* names = find_keyword(schema, "required")) required = names->get<std::vector<std::string>>();
  const auto is_required = [&](const std::string& name) {
    return std::find(required.begin(), required.end(), name) != required.end();
  };
  const auto add = [&](const std::string& name, const Json& of, const std::string& place) -> Status {
    out.names.push_back(name);
    if (of == Json(false)) {
      if (is_required(name))
        out.impossible =
            fmt::format("required names {}, which {} forbids", shortened(name), forbidden_by(place));
      return {};
    }
    COPPICE_TRY(const ExpressionId made, value(of, place));
    out.named.push_back({json_.member(rules_.text(json_spelling(name)), made), is_required(name)});
    return {};
  };
  if (const Json* properties = find_keyword(schema, "properties"))
    for (const auto& [name, of] : properties->items())
      COPPICE_TRY_STATUS(add(name, of, below(below(where, "properties"), name)));
  static const Json kAnything(true);
  const Json* additional = find_keyword(schema, "additionalProperties");
  for (const std::string& name : required) {
    if (std::find(out.names.begin(), out.names.end(), name) != out.names.end()) continue;
    COPPICE_TRY_STATUS(add(name, additional != nullptr ? *additional : kAnything, below(where, "required")));
  }
  COPPICE_TRY_STATUS(add_additional(schema, where, out));
  return out;
}

// An object that names its properties and says nothing of others has no others: a model that is asked for
// these fields should write these.
Status JsonCompiler::add_additional(const Json& schema, const std::string& where, Members& out) {
  const Json* additional = find_keyword(schema, "additionalProperties");
  const bool closed =
      additional != nullptr ? *additional == Json(false) : find_keyword(schema, "properties") != nullptr;
  if (closed) return {};
  for (const std::string& name : out.names)
    if (name.size() > kLongestName)
      return refuse_schema(
          where,
          fmt::format("beside additional ones, names of properties have at most {} bytes", kLongestName));
  ExpressionId other = json_.any_value();
  if (additional != nullptr) {
    COPPICE_TRY(other, value(*additional, below(where, "additionalProperties")));
  }
  out.other = json_.member(json_.key_besides(out.names), other);
  return {};
}

Result<ExpressionId> JsonCompiler::pattern_members(const Json& schema, const std::string& where) {
  const Json& patterns = *find_keyword(schema, "patternProperties");
  const std::string place = below(where, "patternProperties");
  const Json* additional = find_keyword(schema, "additionalProperties");
  const bool alone = patterns.size() == 1 && find_keyword(schema, "properties") == nullptr &&
                     find_keyword(schema, "required") == nullptr &&
                     (additional == nullptr || *additional == Json(false));
  if (!alone)
    return refuse_schema(
        place, "it can be kept with one pattern and without properties, required and additional ones");
  const int least = count_of(schema, "minProperties", 0);
  if (least > 1)
    return refuse_schema(below(where, "minProperties"),
                         "with patternProperties, one at most can be asked for");
  const std::string& text = patterns.begin().key();
  const auto pattern = parse_pattern(json_, text);
  if (!pattern) return refuse_schema(below(place, text), pattern.error().message);
  COPPICE_TRY(const ExpressionId inner, value(patterns.begin().value(), below(place, text)));
  const ExpressionId member = json_.member(json_.quoted(pattern->inside), inner);
  const int most = count_of(schema, "maxProperties", kForever);
  if (most != kForever && most < least) return impossible(crossed(schema, "minProperties", "maxProperties"));
  return json_.wrapped('{', json_.list(member, least, most), '}');
}

// A rule for what may follow each member makes what comes first, which may be any up to the first required
// one, cost no copies of the rest.
ExpressionId JsonCompiler::in_order(const Members& members) {
  const std::size_t n = members.named.size();
  std::vector<ExpressionId> after(n + 1);  // [i]: after some member, from the i-th on
  after[n] = members.other ? rules_.repeat(rules_.sequence({json_.comma(), *members.other}), 0, kForever)
                           : rules_.empty();
  for (std::size_t i = n; i-- > 0;) {
    const ExpressionId next = rules_.sequence({json_.comma(), members.named[i].member});
    const RuleId rule = rules_.add_rule("(further members)");
    rules_.define(rule,
                  rules_.sequence({members.named[i].required ? next : rules_.optional(next), after[i + 1]}));
    after[i] = rules_.call(rule);
  }
  std::vector<ExpressionId> first;
  std::size_t i = 0;
  for (; i < n; ++i) {
    first.push_back(rules_.sequence({members.named[i].member, after[i + 1]}));
    if (members.named[i].required) break;
  }
  if (i == n) {
    if (members.other) first.push_back(rules_.sequence({*members.other, after[n]}));
    first.push_back(rules_.empty());
  }
  return rules_.choice(first);
}

Result<ExpressionId> JsonCompiler::array(const Json& schema, const std::string& where) {
  if (const Json* unique = find_keyword(schema, "uniqueItems"); unique != nullptr && *unique == Json(true))
    return refuse_schema(below(where, "uniqueItems"),
                         "uniqueItems cannot be kept by a grammar; leave it out");
  const Json* items = find_keyword(schema, "items");
  const Json* prefix = find_keyword(schema, "prefixItems");
  std::string prefix_at = below(where, "prefixItems"), rest_at = below(where, "items");
  if (items != nullptr && items->is_array()) {  // as it was written before 2020
    prefix = items;
    items = find_keyword(schema, "additionalItems");
    std::swap(prefix_at, rest_at);
    rest_at = below(where, "additionalItems");
  }
  const std::size_t named = prefix != nullptr ? prefix->size() : 0;
  if (named > kMostPrefix)
    return refuse_schema(prefix_at,
                         fmt::format("at most {} items can have schemas of their own", kMostPrefix));
  const int least = count_of(schema, "minItems", 0);
  int most = count_of(schema, "maxItems", kForever);
  if (items != nullptr && *items == Json(false))
    most = most == kForever ? static_cast<int>(named) : std::min(most, static_cast<int>(named));
  if (most != kForever && most < least)
    return impossible(
        most == count_of(schema, "maxItems", kForever)
            ? crossed(schema, "minItems", "maxItems")
            : fmt::format("minItems {} is more than the {} items there are schemas for", least, most));
  ExpressionId rest = json_.any_value();
  if (items != nullptr && !items->is_boolean()) {
    COPPICE_TRY(rest, value(*items, rest_at));
  }
  if (named == 0) return json_.wrapped('[', json_.list(rest, least, most), ']');
  // From the last item to the first: what follows it is inside what may be left out.
  const int behind = static_cast<int>(named);
  const int more = most == kForever ? kForever : std::max(most - behind, 0);
  ExpressionId tail =
      rules_.repeat(rules_.sequence({json_.comma(), rest}), std::max(least - behind, 0), more);
  for (int i = behind; i-- > 0;) {
    if (most != kForever && i >= most) {
      tail = rules_.empty();
      continue;
    }
    COPPICE_TRY(const ExpressionId item,
                value((*prefix)[static_cast<std::size_t>(i)], below(prefix_at, std::to_string(i))));
    const ExpressionId from_here =
        i == 0 ? rules_.sequence({item, tail}) : rules_.sequence({json_.comma(), item, tail});
    tail = i < least ? from_here : rules_.optional(from_here);
  }
  return json_.wrapped('[', tail, ']');
}

}  // namespace coppice::core::grammar
