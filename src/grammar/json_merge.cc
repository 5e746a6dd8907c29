#include "grammar/json_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "grammar/code_points.h"

namespace coppice::core::grammar {

tl::unexpected<Error> refuse_schema(const std::string& where, const std::string& what) {
  return fail(fmt::format("the schema at {}: {}", shortened(where), what));
}

std::vector<std::string> types_of(const Json& schema) {
  std::vector<std::string> out;
  const auto type = schema.find("type");
  if (type == schema.end()) return out;
  if (type->is_string()) out.push_back(type->get<std::string>());
  if (type->is_array())
    for (const Json& one : *type)
      if (one.is_string()) out.push_back(one.get<std::string>());
  const auto nullable = schema.find("nullable");
  if (nullable != schema.end() && nullable->is_boolean() && nullable->get<bool>()) out.push_back("null");
  return out;
}

namespace {

enum class Merge { larger, smaller, equal, both, types, names, values, ignored };

struct Keyword {
  std::string_view name;
  Merge rule;
};

// properties and additionalProperties are merged together.
constexpr Keyword kKeywords[] = {
    {"minimum", Merge::larger},
    {"exclusiveMinimum", Merge::larger},
    {"minLength", Merge::larger},
    {"minItems", Merge::larger},
    {"minProperties", Merge::larger},
    {"maximum", Merge::smaller},
    {"exclusiveMaximum", Merge::smaller},
    {"maxLength", Merge::smaller},
    {"maxItems", Merge::smaller},
    {"maxProperties", Merge::smaller},
    {"pattern", Merge::equal},
    {"format", Merge::equal},
    {"multipleOf", Merge::equal},
    {"patternProperties", Merge::equal},
    {"prefixItems", Merge::equal},
    {"additionalItems", Merge::equal},
    {"uniqueItems", Merge::equal},
    {"items", Merge::both},
    {"type", Merge::types},
    {"nullable", Merge::ignored},
    {"required", Merge::names},
    {"enum", Merge::values},
    {"properties", Merge::ignored},
    {"additionalProperties", Merge::ignored},
};

const Json* find(const Json& schema, std::string_view key) {
  const auto there = schema.find(std::string(key));
  return there == schema.end() ? nullptr : &*there;
}

Json both(const Json& a, const Json& b) {
  if (a == b) return a;
  Json out = Json::object();
  out["allOf"] = Json::array({a, b});
  return out;
}

bool has(const std::vector<std::string>& list, std::string_view what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

// A number that is an integer is of both types.
Json shared_types(const Json& a, const Json& b) {
  const auto x = types_of(a), y = types_of(b);
  Json out = Json::array();
  const auto add = [&](const std::string& type) {
    if (std::find(out.begin(), out.end(), Json(type)) == out.end()) out.push_back(type);
  };
  for (const std::string& type : x) {
    if (has(y, type))
      add(type);
    else if ((type == "integer" && has(y, "number")) || (type == "number" && has(y, "integer")))
      add("integer");
  }
  return out;
}

// What a schema says of a member that it does not name.
void restrict_member(Json& properties, const std::string& name, const Json& value, const Json& other) {
  const Json* additional = find(other, "additionalProperties");
  if (additional == nullptr || *additional == Json(true)) {
    properties[name] = value;
  } else {
    properties[name] = *additional == Json(false) ? Json(false) : both(value, *additional);
  }
}

void merge_properties(const Json& a, const Json& b, Json& out) {
  const Json none = Json::object();
  const Json* pa = find(a, "properties");
  const Json* pb = find(b, "properties");
  if (pa != nullptr || pb != nullptr) {
    const Json& x = pa != nullptr ? *pa : none;
    const Json& y = pb != nullptr ? *pb : none;
    Json properties = Json::object();
    for (const auto& [name, value] : x.items()) {
      if (const Json* too = find(y, name))
        properties[name] = both(value, *too);
      else
        restrict_member(properties, name, value, b);
    }
    for (const auto& [name, value] : y.items())
      if (find(x, name) == nullptr) restrict_member(properties, name, value, a);
    out["properties"] = std::move(properties);
  }
  const Json* ma = find(a, "additionalProperties");
  const Json* mb = find(b, "additionalProperties");
  if (ma != nullptr && mb != nullptr)
    out["additionalProperties"] = *ma == Json(false) || *mb == Json(false) ? Json(false) : both(*ma, *mb);
  else if (ma != nullptr || mb != nullptr)
    out["additionalProperties"] = ma != nullptr ? *ma : *mb;
}

// Of a keyword that both have. False: nothing is valid.
Result<bool> merge_keyword(const Keyword& keyword, const Json& a, const Json& b, Json& out,
                           const std::string& where) {
  const std::string name(keyword.name);
  const Json &x = *find(a, name), &y = *find(b, name);
  switch (keyword.rule) {
    case Merge::larger:
    case Merge::smaller:
      if (!x.is_number() || !y.is_number())
        return refuse_schema(where, fmt::format("{} is said twice and is not a number", name));
      out[name] = (x < y) == (keyword.rule == Merge::larger) ? y : x;
      return true;
    case Merge::equal:
      if (x != y)
        return refuse_schema(where, fmt::format("{} is said twice, differently, of the same value: a grammar "
                                                "cannot keep both",
                                                name));
      out[name] = x;
      return true;
    case Merge::both:
      out[name] = both(x, y);
      return true;
    case Merge::names:
      out[name] = x;
      for (const Json& one : y)
        if (std::find(x.begin(), x.end(), one) == x.end()) out[name].push_back(one);
      return true;
    case Merge::values:
      out[name] = Json::array();
      for (const Json& one : x)
        if (std::find(y.begin(), y.end(), one) != y.end()) out[name].push_back(one);
      return !out[name].empty();
    case Merge::types:
      out[name] = shared_types(a, b);
      return !out[name].empty();
    case Merge::ignored:
      return true;
  }
  return true;
}

// Of a keyword that both have, and whose values exclude each other.
std::string nothing_common(const Keyword& keyword, const Json& a, const Json& b) {
  if (keyword.rule != Merge::types)
    return fmt::format("{} is said twice, and no value is in both", keyword.name);
  return fmt::format("{} is said twice: {} and {} have nothing in common", keyword.name,
                     fmt::join(types_of(a), " or "), fmt::join(types_of(b), " or "));
}

// A const is an enum of one; nullable is part of the types.
Json simplified(Json schema) {
  if (const Json* one = find(schema, "const")) {
    const Json* values = find(schema, "enum");
    const bool there = values == nullptr || std::find(values->begin(), values->end(), *one) != values->end();
    schema["enum"] = there ? Json::array({*one}) : Json::array();
    schema.erase("const");
  }
  const auto types = types_of(schema);
  if (!types.empty()) schema["type"] = types;
  schema.erase("nullable");
  return schema;
}

}  // namespace

Result<Merged> merge_schemas(const Json& first, const Json& second, const std::string& where) {
  const Json a = simplified(first), b = simplified(second);
  Json out = Json::object();
  for (const Keyword& keyword : kKeywords) {
    const Json* x = find(a, keyword.name);
    const Json* y = find(b, keyword.name);
    if (keyword.rule == Merge::ignored || (x == nullptr && y == nullptr)) continue;
    if (x != nullptr && y != nullptr) {
      COPPICE_TRY(const bool possible, merge_keyword(keyword, a, b, out, where));
      if (!possible) return Merged{std::nullopt, nothing_common(keyword, a, b)};
    } else {
      out[std::string(keyword.name)] = x != nullptr ? *x : *y;
    }
  }
  if ((find(a, "patternProperties") != nullptr && find(b, "properties") != nullptr) ||
      (find(b, "patternProperties") != nullptr && find(a, "properties") != nullptr))
    return refuse_schema(where, "patternProperties and properties of one object cannot both be kept");
  merge_properties(a, b, out);
  return Merged{std::move(out), ""};
}

}  // namespace coppice::core::grammar
