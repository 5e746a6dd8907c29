#include "grammar/json_keywords.h"

#include <fmt/format.h>

#include <algorithm>

#include "grammar/json_merge.h"

namespace coppice::core::grammar {
namespace {

enum class Kind {
  annotation,
  schema,
  schemas,
  named_schemas,
  items,
  count,
  number,
  limit,
  boolean,
  text,
  texts,
  list,
  any,
  type
};

struct Keyword {
  std::string_view name;
  Kind kind;
};

constexpr Keyword kKeywords[] = {
    {"title", Kind::annotation},
    {"description", Kind::annotation},
    {"default", Kind::annotation},
    {"examples", Kind::annotation},
    {"example", Kind::annotation},
    {"deprecated", Kind::annotation},
    {"readOnly", Kind::annotation},
    {"writeOnly", Kind::annotation},
    {"$schema", Kind::annotation},
    {"$id", Kind::annotation},
    {"$comment", Kind::annotation},
    {"$defs", Kind::annotation},
    {"definitions", Kind::annotation},
    {"strict", Kind::annotation},
    {"type", Kind::type},
    {"nullable", Kind::boolean},
    {"enum", Kind::list},
    {"const", Kind::any},
    {"properties", Kind::named_schemas},
    {"patternProperties", Kind::named_schemas},
    {"additionalProperties", Kind::schema},
    {"required", Kind::texts},
    {"minProperties", Kind::count},
    {"maxProperties", Kind::count},
    {"items", Kind::items},
    {"prefixItems", Kind::schemas},
    {"additionalItems", Kind::schema},
    {"minItems", Kind::count},
    {"maxItems", Kind::count},
    {"uniqueItems", Kind::boolean},
    {"minLength", Kind::count},
    {"maxLength", Kind::count},
    {"pattern", Kind::text},
    {"format", Kind::text},
    {"minimum", Kind::number},
    {"maximum", Kind::number},
    {"exclusiveMinimum", Kind::limit},
    {"exclusiveMaximum", Kind::limit},
    {"multipleOf", Kind::number},
    {"$ref", Kind::text},
    {"allOf", Kind::schemas},
    {"anyOf", Kind::schemas},
    {"oneOf", Kind::schemas},
};

constexpr std::string_view kTypes[] = {"object", "array", "string", "number", "integer", "boolean", "null"};

bool is_schema(const Json& value) { return value.is_object() || value.is_boolean(); }

template <class Test>
bool all_of(const Json& value, const Test& test) {
  return std::all_of(value.begin(), value.end(), test);
}

bool is_type(const Json& value) {
  return value.is_string() &&
         std::find(std::begin(kTypes), std::end(kTypes), value.get<std::string>()) != std::end(kTypes);
}

// What a value of this kind is; empty: `value` is one.
std::string_view wrong(Kind kind, const Json& value) {
  const auto unless = [](bool right, std::string_view what) { return right ? std::string_view() : what; };
  switch (kind) {
    case Kind::annotation:
    case Kind::any:
      return {};
    case Kind::schema:
      return unless(is_schema(value), "a schema, true or false");
    case Kind::schemas:
      return unless(value.is_array() && !value.empty() && all_of(value, is_schema), "a list of schemas");
    case Kind::items:
      return unless(is_schema(value) || (value.is_array() && all_of(value, is_schema)),
                    "a schema or a list of schemas");
    case Kind::named_schemas:
      return unless(value.is_object() && all_of(value, is_schema), "an object of schemas");
    case Kind::count:
      return unless(value.is_number() && value.get<double>() >= 0 &&
                        value.get<double>() == static_cast<double>(static_cast<std::int64_t>(
                                                   std::min(value.get<double>(), 1e18))),
                    "a whole number, 0 or more");
    case Kind::number:
      return unless(value.is_number(), "a number");
    case Kind::limit:
      return unless(value.is_number() || value.is_boolean(), "a number");
    case Kind::boolean:
      return unless(value.is_boolean(), "true or false");
    case Kind::text:
      return unless(value.is_string(), "a text");
    case Kind::texts:
      return unless(value.is_array() && all_of(value, [](const Json& v) { return v.is_string(); }),
                    "a list of texts");
    case Kind::list:
      return unless(value.is_array(), "a list of values");
    case Kind::type:
      return unless(is_type(value) || (value.is_array() && !value.empty() && all_of(value, is_type)),
                    "one of object, array, string, number, integer, boolean and null, or a list of them");
  }
  return {};
}

const Keyword* keyword_of(std::string_view name) {
  const auto there = std::find_if(std::begin(kKeywords), std::end(kKeywords),
                                  [&](const Keyword& k) { return k.name == name; });
  return there == std::end(kKeywords) ? nullptr : &*there;
}

}  // namespace

bool is_annotation(std::string_view name) {
  const Keyword* keyword = keyword_of(name);
  return name.starts_with("x-") || (keyword != nullptr && keyword->kind == Kind::annotation);
}

Status check_keywords(const Json& schema, const std::string& where) {
  for (const auto& [name, value] : schema.items()) {
    if (is_annotation(name)) continue;
    const Keyword* keyword = keyword_of(name);
    if (keyword == nullptr)
      return refuse_schema(
          below(where, name),
          fmt::format("the keyword {} cannot be kept by a grammar; leave it out", shortened(name)));
    if (const auto right = wrong(keyword->kind, value); !right.empty())
      return refuse_schema(below(where, name), fmt::format("{} should be {}", name, right));
  }
  return {};
}

const Json* find_keyword(const Json& schema, std::string_view keyword) {
  const auto there = schema.find(std::string(keyword));
  return there == schema.end() ? nullptr : &*there;
}

int count_of(const Json& schema, std::string_view keyword, int otherwise) {
  const Json* value = find_keyword(schema, keyword);
  if (value == nullptr) return otherwise;
  return static_cast<int>(std::min(value->get<double>(), double{kMostCount}));
}

std::string crossed(const Json& schema, std::string_view least, std::string_view most) {
  return fmt::format("{} {} is more than {} {}", least, find_keyword(schema, least)->dump(), most,
                     find_keyword(schema, most)->dump());
}

std::string below(const std::string& where, std::string_view key) {
  std::string out = where + "/";
  for (const char c : key) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

}  // namespace coppice::core::grammar
