#include "output_format.h"

#include <fmt/format.h>

namespace coppice::serve {
namespace {

using Kind = OutputFormat::Kind;

void take(OutputFormat& format, OutputFormat other, Fields& fields) {
  if (format.kind == Kind::free) {
    format = std::move(other);
    return;
  }
  fields.error(other.param,
               fmt::format("cannot go together with {}; one says what an answer looks like", format.param));
}

OutputFormat from_response_format(Fields& fields) {
  const Json* json = fields.object("response_format");
  if (!json) return {};
  Fields own(*json, "response_format");
  OutputFormat format;
  const std::string type = own.choice("type", {"text", "json_object", "json_schema"});
  if (!own.has("type")) own.error("type", "is missing; it must be one of text, json_object, json_schema");
  if (type == "json_object") format = {Kind::json_object, "", "response_format"};
  const Json* wrapped = type == "json_schema" ? own.object("json_schema") : nullptr;
  if (type == "json_schema" && !wrapped) own.error("json_schema", "is missing");
  if (wrapped) {
    Fields inner(*wrapped, "response_format.json_schema");
    for (const char* name : {"name", "description"}) inner.maybe_text(name);
    inner.boolean("strict", false);
    // Without a schema OpenAI allows any object.
    format = {Kind::json_object, "", "response_format"};
    if (const Json* schema = inner.object("schema"))
      format = {Kind::json_schema, dump(*schema), "response_format.json_schema.schema"};
    if (const auto end = inner.finish(); !end) own.error(end.error());
  }
  if (const auto end = own.finish(); !end) fields.error(end.error());
  return format;
}

// The schema's sentence. What is wrong in a part is said of that part's field, with places inside it.
ApiError wrong_format(const OutputFormat& format, std::string message) {
  for (const auto& [place, param] : format.parts) {
    const std::size_t begin = message.find(place), end = begin + place.size();
    if (begin == std::string::npos || (message.substr(end, 1) != "/" && message.substr(end, 1) != ":"))
      continue;
    for (std::size_t at = begin; at != std::string::npos; at = message.find(place, at + 1))
      message.replace(at, place.size(), "#");
    return invalid(param, fmt::format("{}: {}", param, message));
  }
  return invalid(format.param, fmt::format("{}: {}", format.param, message));
}

}  // namespace

OutputFormat read_own_format(Fields& fields) {
  OutputFormat format;
  if (const auto grammar = fields.maybe_text("grammar"))
    take(format, {Kind::grammar, *grammar, "grammar"}, fields);
  if (const Json* schema = fields.object("json_schema"))
    take(format, {Kind::json_schema, dump(*schema), "json_schema"}, fields);
  return format;
}

OutputFormat read_format(Fields& fields) {
  OutputFormat format = read_own_format(fields);
  OutputFormat asked = from_response_format(fields);
  if (asked.kind != Kind::free) take(format, std::move(asked), fields);
  return format;
}

OutputFormat read_ollama_format(Fields& fields) {
  const Json* json = fields.find("format");
  if (!json) return {};
  if (json->is_object()) return {Kind::json_schema, dump(*json), "format"};
  if (json->is_string() && *json == "json") return {Kind::json_object, "", "format"};
  if (json->is_string() && json->get_ref<const std::string&>().empty()) return {};
  fields.error("format", fmt::format("must be \"json\" or a JSON Schema, not {}", show(*json)));
  return {};
}

tl::expected<void, ApiError> constrain(Sampling& sampling, const OutputFormat& format) {
  const auto made = [&]() -> Result<Grammar> {
    if (format.kind == Kind::grammar) return Grammar::parse(format.text);
    if (format.kind == Kind::json_schema) return Grammar::json_schema(format.text);
    return Grammar::json_object();
  };
  if (format.kind == Kind::free) return {};
  auto grammar = made();
  if (!grammar) return tl::unexpected(wrong_format(format, grammar.error().message));
  sampling.grammar = *grammar;
  return {};
}

}  // namespace coppice::serve
