// References, and schemas that combine others.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "grammar/json_compiler.h"
#include "grammar/json_keywords.h"
#include "grammar/json_merge.h"

namespace coppice::core::grammar {
namespace {

constexpr std::size_t kMostAlternatives = 256;  // of one schema, multiplied out
constexpr int kMostCombined = 60;               // references and combinations inside each other
constexpr int kMostWork = 20000;                // schemas combined, in all

bool combines(std::string_view keyword) {
  return keyword == "$ref" || keyword == "allOf" || keyword == "anyOf" || keyword == "oneOf";
}

// A step of a JSON pointer: ~1 is /, ~0 is ~, and as a part of a URI it may have %XX.
std::string unescaped(std::string_view step) {
  std::string plain;
  for (std::size_t i = 0; i < step.size(); ++i) {
    unsigned byte = 0;
    const char* hex = step.data() + i + 1;
    if (step[i] == '%' && i + 2 < step.size() && std::from_chars(hex, hex + 2, byte, 16).ptr == hex + 2) {
      plain += static_cast<char>(static_cast<unsigned char>(byte));
      i += 2;
    } else {
      plain += step[i];
    }
  }
  std::string out;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (plain[i] == '~' && i + 1 < plain.size() && (plain[i + 1] == '0' || plain[i + 1] == '1'))
      out += plain[++i] == '0' ? '~' : '/';
    else
      out += plain[i];
  }
  return out;
}

}  // namespace

Result<const Json*> JsonCompiler::resolve(const Json& reference, const std::string& where) const {
  const std::string text = reference.get<std::string>();
  const auto refuse = [&](std::string_view why) {
    return refuse_schema(where, fmt::format("{} {}", shortened(text), why));
  };
  if (text.empty() || text[0] != '#' || (text.size() > 1 && text[1] != '/'))
    return refuse("is no place in this schema; references are # or #/...");
  const Json* at = &document_;
  for (std::size_t begin = 1; begin < text.size();) {
    const std::size_t end = std::min(text.find('/', begin + 1), text.size());
    const std::string step = unescaped(std::string_view(text).substr(begin + 1, end - begin - 1));
    if (at->is_object() && at->contains(step)) {
      at = &(*at)[step];
    } else if (std::size_t index = 0; at->is_array() && !step.empty() &&
                                      std::from_chars(step.data(), step.data() + step.size(), index).ptr ==
                                          step.data() + step.size() &&
                                      index < at->size()) {
      at = &(*at)[index];
    } else {
      return refuse("is not there");
    }
    begin = end;
  }
  return at;
}

// oneOf too: that only one branch may hold is not kept, and no matter where the branches differ in type or in
// a constant.
Result<ExpressionId> JsonCompiler::any_of(const Json& branches, const std::string& where) {
  std::vector<ExpressionId> choices;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    COPPICE_TRY(const ExpressionId one, value(branches[i], below(where, std::to_string(i))));
    choices.push_back(one);
  }
  return rules_.choice(choices);
}

Result<JsonCompiler::Alternatives> JsonCompiler::all_of_both(const Alternatives& a, const Alternatives& b,
                                                             const std::string& where) {
  Alternatives out;
  if (a.size() * b.size() > kMostAlternatives)
    return refuse_schema(
        where, fmt::format("the combinations multiply to more than {} alternatives", kMostAlternatives));
  for (const Json& x : a) {
    for (const Json& y : b) {
      COPPICE_TRY(Merged both, merge_schemas(x, y, where));
      if (both.schema)
        out.push_back(std::move(*both.schema));
      else
        unmergeable_ = std::move(both.why);
    }
  }
  return out;
}

Result<JsonCompiler::Alternatives> JsonCompiler::alternatives(const Json& schema, const std::string& where,
                                                              int depth) {
  if (schema.is_boolean()) {
    if (schema.get<bool>()) return Alternatives{Json::object()};
    unmergeable_ = fmt::format("{} is false", shortened(where));
    return Alternatives{};
  }
  if (!schema.is_object()) return refuse_schema(where, "a schema is an object, true or false");
  if (depth > kMostCombined || ++combined_ > kMostWork)
    return refuse_schema(where, "combined schemas are nested too deeply, or refer to themselves");
  COPPICE_TRY_STATUS(check_keywords(schema, where));
  Json plain = Json::object();
  for (const auto& [name, part] : schema.items())
    if (!is_annotation(name) && !combines(name)) plain[name] = part;
  // In the order in which it is written, so that members are too.
  bool has_plain = false;
  Alternatives out = {Json::object()};
  for (const auto& [name, part] : schema.items()) {
    const std::string place = below(where, name);
    if (name == "$ref") {
      COPPICE_TRY(const Json* target, resolve(part, place));
      COPPICE_TRY(const Alternatives more, alternatives(*target, part.get<std::string>(), depth + 1));
      COPPICE_TRY(out, all_of_both(out, more, where));
    } else if (name == "allOf") {
      for (std::size_t i = 0; i < part.size(); ++i) {
        COPPICE_TRY(const Alternatives more,
                    alternatives(part[i], below(place, std::to_string(i)), depth + 1));
        COPPICE_TRY(out, all_of_both(out, more, where));
      }
    } else if (name == "anyOf" || name == "oneOf") {
      COPPICE_TRY(const Alternatives some, any_alternative(part, place, depth + 1));
      COPPICE_TRY(out, all_of_both(out, some, where));
    } else if (name == "properties") {
      COPPICE_TRY(out, all_of_both(out, {plain}, where));
      has_plain = true;
    }
  }
  if (has_plain) return out;
  return all_of_both(out, {std::move(plain)}, where);
}

Result<JsonCompiler::Alternatives> JsonCompiler::any_alternative(const Json& branches,
                                                                 const std::string& where, int depth) {
  Alternatives out;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    COPPICE_TRY(Alternatives more, alternatives(branches[i], below(where, std::to_string(i)), depth));
    for (Json& one : more) out.push_back(std::move(one));
    if (out.size() > kMostAlternatives)
      return refuse_schema(where, fmt::format("there are more than {} alternatives", kMostAlternatives));
  }
  return out;
}

}  // namespace coppice::core::grammar
