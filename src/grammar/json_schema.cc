#include "grammar/json_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/check.h"
#include "base/json_depth.h"
#include "grammar/json_compiler.h"
#include "grammar/json_keywords.h"
#include "grammar/json_merge.h"

namespace coppice::core::grammar {
namespace {

constexpr std::size_t kMostText = std::size_t{1} << 20;  // bytes
constexpr int kMostNested = 100;                         // schemas in schemas
constexpr std::size_t kMostRules = 50000;

// Which type a keyword is about: a schema that names no type is taken to be of those it speaks about.
constexpr std::pair<std::string_view, std::string_view> kAbout[] = {
    {"properties", "object"},
    {"required", "object"},
    {"additionalProperties", "object"},
    {"patternProperties", "object"},
    {"minProperties", "object"},
    {"maxProperties", "object"},
    {"items", "array"},
    {"prefixItems", "array"},
    {"additionalItems", "array"},
    {"minItems", "array"},
    {"maxItems", "array"},
    {"uniqueItems", "array"},
    {"minLength", "string"},
    {"maxLength", "string"},
    {"pattern", "string"},
    {"format", "string"},
    {"minimum", "number"},
    {"maximum", "number"},
    {"exclusiveMinimum", "number"},
    {"exclusiveMaximum", "number"},
    {"multipleOf", "number"},
};

std::vector<std::string> types_spoken_of(const Json& schema) {
  std::vector<std::string> types = types_of(schema);
  if (find_keyword(schema, "type") == nullptr) {
    types.clear();
    for (const auto& [keyword, type] : kAbout)
      if (find_keyword(schema, keyword) != nullptr &&
          std::find(types.begin(), types.end(), type) == types.end())
        types.emplace_back(type);
  }
  std::vector<std::string> out;
  for (const std::string& type : types) {
    const bool twice = std::find(out.begin(), out.end(), type) != out.end();
    const bool inside = type == "integer" && std::find(types.begin(), types.end(), "number") != types.end();
    if (!twice && !inside) out.push_back(type);
  }
  return out;
}

const char* const_or_enum(const Json& schema) {
  return find_keyword(schema, "const") != nullptr ? "const" : "enum";
}

bool is_of(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "integer")
    return value.is_number_integer() ||
           (value.is_number() && value.get<double>() == static_cast<double>(static_cast<std::int64_t>(
                                                            std::clamp(value.get<double>(), -1e18, 1e18))));
  return value.is_number();
}

}  // namespace

Result<ExpressionId> JsonCompiler::value(const Json& schema, const std::string& where) {
  if (schema.is_boolean())
    return schema.get<bool>() ? json_.any_value() : impossible(fmt::format("{} is false", shortened(where)));
  if (!schema.is_object()) return refuse_schema(where, "a schema is an object, true or false");
  if (const auto there = known_.find(&schema); there != known_.end()) return rules_.call(there->second);
  if (rules_.full() || rules_.rules().size() > kMostRules)
    return refuse_schema(where, "the schema is too large for a grammar");
  if (++depth_ > kMostNested)
    return refuse_schema(where,
                         fmt::format("schemas are nested too deeply; {} levels are possible", kMostNested));
  const RuleId rule = rules_.add_rule(where);
  known_.emplace(&schema, rule);
  const RuleId outer = std::exchange(rule_, rule);
  COPPICE_TRY(const ExpressionId made, body(schema, where));
  rules_.define(rule, made);
  rule_ = outer;
  --depth_;
  return rules_.call(rule);
}

ExpressionId JsonCompiler::impossible(std::string_view why) {
  if (rule_ >= 0) rules_.add_why(rule_, why);
  return rules_.nothing();
}

Result<ExpressionId> JsonCompiler::body(const Json& schema, const std::string& where) {
  COPPICE_TRY_STATUS(check_keywords(schema, where));
  int constraining = 0;
  for (const auto& [name, unused] : schema.items()) constraining += is_annotation(name) ? 0 : 1;
  if (constraining == 1) {
    if (const Json* reference = find_keyword(schema, "$ref")) {
      COPPICE_TRY(const Json* target, resolve(*reference, below(where, "$ref")));
      return value(*target, reference->get<std::string>());
    }
    for (const char* name : {"anyOf", "oneOf"})
      if (const Json* branches = find_keyword(schema, name)) return any_of(*branches, below(where, name));
  }
  bool combined = false;
  for (const char* name : {"$ref", "allOf", "anyOf", "oneOf"})
    combined = combined || find_keyword(schema, name) != nullptr;
  if (!combined) return plain(schema, where);
  COPPICE_TRY(Alternatives all, alternatives(schema, where, 0));
  if (all.empty()) return impossible(unmergeable_);
  std::vector<ExpressionId> choices;
  for (Json& one : all) {
    merged_.push_back(std::move(one));
    COPPICE_TRY(const ExpressionId made, plain(merged_.back(), where));
    choices.push_back(made);
  }
  return rules_.choice(choices);
}

Result<ExpressionId> JsonCompiler::plain(const Json& schema, const std::string& where) {
  if (const Json* value = find_keyword(schema, "const"))
    return one_of(Json::array({*value}), schema, below(where, "const"));
  if (const Json* values = find_keyword(schema, "enum")) return one_of(*values, schema, below(where, "enum"));
  const auto types = types_spoken_of(schema);
  if (types.empty()) return json_.any_value();
  std::vector<ExpressionId> choices;
  for (const std::string& type : types) {
    COPPICE_TRY(const ExpressionId made, of_type(type, schema, where));
    choices.push_back(made);
  }
  return rules_.choice(choices);
}

Result<ExpressionId> JsonCompiler::of_type(const std::string& type, const Json& schema,
                                           const std::string& where) {
  if (type == "object") return object(schema, where);
  if (type == "array") return array(schema, where);
  if (type == "string") return string(schema, where);
  if (type == "integer") return integer(schema, where);
  if (type == "number") return number(schema, where);
  if (type == "boolean") return json_.boolean();
  return json_.null();
}

// Constants, of which those remain that have one of the types.
Result<ExpressionId> JsonCompiler::one_of(const Json& values, const Json& schema, const std::string& where) {
  for (const auto& [name, unused] : schema.items())
    if (name != "enum" && name != "const" && name != "type" && name != "nullable" && !is_annotation(name))
      return refuse_schema(
          where, fmt::format("beside it, {} cannot be kept; leave out the values it forbids", name));
  const auto types = types_of(schema);
  const Json* both = find_keyword(schema, "const") != nullptr ? find_keyword(schema, "enum") : nullptr;
  std::vector<std::string> texts;
  std::vector<ExpressionId> choices;
  for (const Json& value : values) {
    if (both != nullptr && std::find(both->begin(), both->end(), value) == both->end()) continue;
    const auto fits = [&](const std::string& type) { return is_of(value, type); };
    if (!types.empty() && std::none_of(types.begin(), types.end(), fits)) continue;
    if (value.is_structured())
      choices.push_back(json_.constant(value));
    else
      texts.push_back(value.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  if (choices.empty() && texts.empty())
    return impossible(values.empty()    ? "enum has no values"
                      : both != nullptr ? "const is not among enum, or not of its type"
                                        : fmt::format("no value of {} is of type {}", const_or_enum(schema),
                                                      fmt::join(types, " or ")));
  choices.push_back(rules_.texts(std::move(texts)));
  return rules_.choice(choices);
}

Result<RuleId> JsonCompiler::run() {
  COPPICE_TRY(const ExpressionId document, value(document_, "#"));
  const RuleId root = rules_.add_rule("(the document)");
  rules_.define(root, rules_.sequence({json_.space(), document}));
  return root;
}

namespace {

// Looks for a key that is twice in one object, of which a value would keep one in silence.
class KeysOnce final : public Json::json_sax_t {
 public:
  std::optional<std::string> twice;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override { return false; }

  bool start_object(std::size_t) override {
    open_.emplace_back();
    return true;
  }
  bool key(std::string& name) override {
    if (!open_.back().insert(name).second) twice = name;
    return !twice;
  }
  bool end_object() override {
    open_.pop_back();
    return true;
  }

 private:
  std::vector<std::unordered_set<std::string>> open_;  // keys of the objects around
};

Result<Json> parse_json(std::string_view text) {
  if (text.size() > kMostText)
    return fail(fmt::format("a schema of {} bytes is too long; {} are possible", text.size(), kMostText));
  KeysOnce keys;
  Json::sax_parse(text, &keys);
  if (keys.twice)
    return fail(
        fmt::format("the schema has the key {} twice in one object; once is right", shortened(*keys.twice)));
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    const auto line =
        1 + std::count(text.begin(),
                       text.begin() + static_cast<std::ptrdiff_t>(
                                          std::min(text.size(), std::max<std::size_t>(error.byte, 1) - 1)),
                       '\n');
    return fail(
        fmt::format("the schema is no JSON: line {}, byte {} of the text is wrong", line, error.byte));
  } catch (const Json::exception&) {
    return fail("the schema is no JSON that can be read: a number is out of range");
  }
}

}  // namespace

Result<Compiled> compile_json_schema(std::string_view text) {
  constexpr int kMostBrackets =
      1000;  // reading it is safe at any depth; what comes after goes through it recursively
  if (json_deeper_than(text, kMostBrackets)) return fail("the schema is nested too deeply");
  COPPICE_TRY(const Json document, parse_json(text));
  JsonCompiler compiler(document);
  COPPICE_TRY(const RuleId root, compiler.run());
  return Compiled::make(compiler.rules(), root);
}

}  // namespace coppice::core::grammar
