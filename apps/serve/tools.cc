#include "tools.h"

#include <fmt/format.h>

#include <algorithm>

namespace coppice::serve {
namespace {

constexpr std::size_t kMostTools = 128;
constexpr std::size_t kLongestName = 64;

bool right_name(const std::string& name) {
  const auto right = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  return !name.empty() && name.size() <= kLongestName && std::all_of(name.begin(), name.end(), right);
}

// Whether a schema may be one of an object: arguments are nothing else.
bool describes_object(const Json& schema) {
  const auto type = schema.find("type");
  return type == schema.end() || *type == "object" || *type == Json::array({"object"});
}

Json any_object() { return {{"type", "object"}, {"properties", Json::object()}}; }

// One tool; `strict` is set if it asks for that.
Tool read_tool(const Json& json, const std::string& path, Fields& fields, bool& strict) {
  Fields own(json, path);
  Tool tool;
  own.choice("type", {"function"});
  const Json* function = own.object("function");
  if (!function) own.error("function", "is missing: an object with name and parameters");
  if (function) {
    Fields inner(*function, path + ".function");
    tool.name = inner.text("name");
    tool.description = inner.text("description");
    strict = inner.boolean("strict", false) || strict;
    const Json* parameters = inner.object("parameters");
    tool.parameters = parameters ? *parameters : any_object();
    if (!describes_object(tool.parameters))
      inner.error("parameters", "must describe an object, \"type\": \"object\"");
    if (inner.ok() && !right_name(tool.name))
      inner.error("name", fmt::format("must have 1 to {} letters, digits, _, - or .", kLongestName));
    if (const auto end = inner.finish(); !end) own.error(end.error());
  }
  if (const auto end = own.finish(); !end) fields.error(end.error());
  return tool;
}

// Whether any tool asks for `strict`.
bool read_list(Fields& fields, Tools& tools) {
  bool strict = false;
  const Json* list = fields.array("tools");
  if (!list) return false;
  if (list->size() > kMostTools)
    fields.error("tools", fmt::format("there are {}; at most {} are possible", list->size(), kMostTools));
  for (std::size_t i = 0; i < list->size() && fields.ok(); ++i) {
    Tool tool = read_tool((*list)[i], fmt::format("tools[{}]", i), fields, strict);
    if (tools.knows(tool.name)) fields.error("tools", fmt::format("two of them are called {}", tool.name));
    tools.list.push_back(std::move(tool));
  }
  if (!list->empty()) tools.json = dump(*list);
  return strict;
}

void read_choice(Fields& fields, Tools& tools) {
  const Json* json = fields.find("tool_choice");
  if (!json) return;
  if (json->is_object()) {
    Fields own(*json, "tool_choice");
    own.choice("type", {"function"});
    const Json* function = own.object("function");
    if (!function) own.error("function", "is missing: an object with the name of a tool");
    if (function) {
      Fields inner(*function, "tool_choice.function");
      tools.named = inner.text("name");
      if (inner.ok() && !tools.knows(tools.named))
        inner.error("name", "no tool of this request has this name");
      if (const auto end = inner.finish(); !end) own.error(end.error());
    }
    if (const auto end = own.finish(); !end) fields.error(end.error());
    tools.choice = Tools::Choice::named;
    return;
  }
  const std::string said = fields.choice("tool_choice", {"auto", "none", "required"});
  if (said != "none" && tools.list.empty()) fields.error("tool_choice", "there are no tools to choose from");
  if (said == "none") tools.choice = Tools::Choice::none;
  if (said == "required") tools.choice = Tools::Choice::required;
}

// A schema moved to another place of a document: what it refers to inside itself is there too.
void move_references(Json& schema, const std::string& place) {
  if (schema.is_structured())
    for (Json& element : schema) move_references(element, place);
  if (!schema.is_object()) return;
  const auto at = schema.find("$ref");
  if (at == schema.end() || !at->is_string()) return;
  const auto target = at->get<std::string>();
  if (target.starts_with('#')) *at = "#" + place + target.substr(1);
}

}  // namespace

bool Tools::knows(std::string_view name) const {
  return std::any_of(list.begin(), list.end(), [&](const Tool& tool) { return tool.name == name; });
}

Tools read_tool_list(Fields& fields) {
  Tools tools;
  if (read_list(fields, tools))
    fields.error("tools",
                 "strict: a call's arguments are held to its schema only where the call is required");
  return tools;
}

Tools read_tools(Fields& fields) {
  Tools tools;
  const bool strict = read_list(fields, tools);
  read_choice(fields, tools);
  tools.parallel = fields.boolean("parallel_tool_calls", true);
  fields.refuse("functions", "is what came before tools; use tools");
  fields.refuse("function_call", "is what came before tool_choice; use tool_choice");
  if (strict && tools.choice == Tools::Choice::automatic)
    fields.error("tools",
                 "strict: arguments are held to the schema only where a call is required; set tool_choice to "
                 "\"required\" or a function, or leave strict out");
  if (!tools.offered()) tools.json.clear();
  return tools;
}

OutputFormat forced_call_format(const Tools& tools, std::string_view name_key,
                                std::string_view arguments_key) {
  OutputFormat format{OutputFormat::Kind::json_schema, "", "tools"};
  Json calls = Json::array(), definitions = Json::object();
  for (std::size_t i = 0; i < tools.list.size(); ++i) {
    const Tool& tool = tools.list[i];
    if (tools.choice == Tools::Choice::named && tool.name != tools.named) continue;
    const std::string place = fmt::format("tool{}", i);
    format.parts.push_back({"#/$defs/" + place, fmt::format("tools[{}].function.parameters", i)});
    Json parameters = tool.parameters;
    if (!parameters.contains("type")) parameters["type"] = "object";
    move_references(parameters, "/$defs/" + place);
    definitions[place] = std::move(parameters);
    Json properties;
    properties[std::string(name_key)] = {{"const", tool.name}};
    properties[std::string(arguments_key)] = {{"$ref", "#/$defs/" + place}};
    calls.push_back({{"type", "object"},
                     {"properties", std::move(properties)},
                     {"required", {std::string(name_key), std::string(arguments_key)}},
                     {"additionalProperties", false}});
  }
  format.text = dump({{"anyOf", std::move(calls)}, {"$defs", std::move(definitions)}});
  return format;
}

std::string describe_tools(const Tools& tools) {
  std::string text =
      "You can call these functions. To call one, answer with nothing but a JSON object of its name and its "
      "arguments: {\"name\": \"...\", \"arguments\": {...}}\n";
  for (const Tool& tool : tools.list) {
    text += dump({{"name", tool.name}, {"description", tool.description}, {"parameters", tool.parameters}});
    text += '\n';
  }
  return text;
}

}  // namespace coppice::serve
