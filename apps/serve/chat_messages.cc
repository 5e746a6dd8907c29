#include "chat_messages.h"

#include <fmt/format.h>

namespace coppice::serve {
namespace {

constexpr std::size_t kMostMessages = 10000;

// One part of a content: its text.
std::string read_part(const Json& json, const std::string& path, Fields& fields) {
  if (!json.is_object() || !json.contains("type") || !json["type"].is_string()) {
    fields.error(
        invalid(path, path + ": must be an object with a type, {\"type\": \"text\", \"text\": \"...\"}"));
    return "";
  }
  const auto type = json["type"].get<std::string>();
  if (type != "text" && type != "refusal") {
    fields.error(invalid(
        path, fmt::format("{}: parts of type {} are not possible, only text", path, show(json["type"]))));
    return "";
  }
  Fields own(json, path);
  own.ignore({"type"});
  const auto text = own.maybe_text(type);
  if (!text) own.error(type, "is missing");
  if (const auto end = own.finish(); !end) fields.error(end.error());
  return text.value_or("");
}

// nothing: null or absent.
std::optional<std::string> read_content(Fields& own) {
  const Json* json = own.find("content");
  if (!json) return std::nullopt;
  if (json->is_string()) return json->get<std::string>();
  if (!json->is_array()) {
    own.error("content", fmt::format("must be a string or a list of parts, not {}", show(*json)));
    return std::nullopt;
  }
  std::string text;
  for (std::size_t i = 0; i < json->size() && own.ok(); ++i) {
    if (i > 0) text += '\n';
    text += read_part((*json)[i], fmt::format("{}[{}]", own.path_of("content"), i), own);
  }
  return text;
}

// Arguments as JSON text of an object; Ollama has the object itself.
std::string read_arguments(Fields& function) {
  const Json* json = function.find("arguments");
  if (!json) return "{}";
  if (json->is_object()) return dump(*json);
  if (json->is_string()) {
    const auto text = json->get<std::string>();
    const auto arguments = parse_bounded(text);
    if (arguments && arguments->is_object()) return text;
  }
  function.error("arguments", "must be the JSON text of an object");
  return "{}";
}

ToolCall read_call(const Json& json, const std::string& path, Fields& fields) {
  Fields own(json, path);
  ToolCall call;
  call.id = own.text("id");
  own.choice("type", {"function"});
  own.ignore({"index"});
  const Json* function = own.object("function");
  if (!function) own.error("function", "is missing: an object with name and arguments");
  if (function) {
    Fields inner(*function, path + ".function");
    inner.ignore({"index"});
    call.name = inner.text("name");
    call.arguments = read_arguments(inner);
    if (call.name.empty()) inner.error("name", "is missing");
    if (const auto end = inner.finish(); !end) own.error(end.error());
  }
  if (const auto end = own.finish(); !end) fields.error(end.error());
  return call;
}

void read_calls(Fields& own, ChatMessage& message) {
  const Json* calls = own.array("tool_calls");
  if (!calls) return;
  if (message.role != "assistant") own.error("tool_calls", "only messages of the role assistant call tools");
  for (std::size_t i = 0; i < calls->size() && own.ok(); ++i)
    message.tool_calls.push_back(
        read_call((*calls)[i], fmt::format("{}[{}]", own.path_of("tool_calls"), i), own));
}

// Templates often want the name of the tool that answers; the call it answers has it.
void name_answer(ChatMessage& answer, const std::vector<ChatMessage>& before) {
  for (auto message = before.rbegin(); message != before.rend() && answer.name.empty(); ++message)
    for (const ToolCall& call : message->tool_calls)
      if (call.id == answer.tool_call_id) answer.name = call.name;
}

ChatMessage read_message(const Json& json, const std::string& path, Fields& fields,
                         const std::vector<ChatMessage>& before) {
  Fields own(json, path);
  ChatMessage message;
  message.role = own.choice("role", {"user", "system", "developer", "assistant", "tool", "function"});
  if (!own.has("role")) own.error("role", "is missing");
  const auto content = read_content(own);
  message.content = content.value_or("");
  message.name = own.text("name");
  read_calls(own, message);
  own.refuse("audio", "audio is not possible, only text");
  own.refuse("function_call", "is what came before tool_calls; use tool_calls");
  if (const auto refusal = own.maybe_text("refusal"); refusal && !content)
    message.content = *refusal;
  else if (!content && message.tool_calls.empty())
    own.error("content", "is missing");
  if (message.role == "function")
    message.role = "tool";
  else if (message.role == "tool") {
    message.tool_call_id = own.text("tool_call_id");
    if (message.tool_call_id.empty())
      own.error("tool_call_id", "is missing: the id of the call that this answers");
    name_answer(message, before);
  }
  if (const auto end = own.finish(); !end) fields.error(end.error());
  return message;
}

ChatMessage read_ollama_message(const Json& json, const std::string& path, Fields& fields) {
  Fields own(json, path);
  ChatMessage message;
  message.role = own.choice("role", {"user", "system", "assistant", "tool"});
  if (!own.has("role")) own.error("role", "is missing");
  message.content = own.text("content");
  message.name = own.text("tool_name");
  if (!own.has("tool_name"))
    message.name = own.text("name");
  else
    own.ignore({"name"});
  message.tool_call_id = own.text("tool_call_id");
  read_calls(own, message);
  own.refuse("images", "images are not possible, only text");
  own.refuse("thinking", "thoughts of earlier answers are not taken; leave them out");
  if (const auto end = own.finish(); !end) fields.error(end.error());
  return message;
}

template <class Read>
std::vector<ChatMessage> read_list(Fields& fields, Read read) {
  std::vector<ChatMessage> messages;
  const Json* list = fields.array("messages");
  if (!list || list->empty()) fields.error("messages", "at least one message is needed");
  if (!list) return messages;
  if (list->size() > kMostMessages)
    fields.error("messages", fmt::format("at most {} are possible", kMostMessages));
  for (std::size_t i = 0; i < list->size() && fields.ok(); ++i)
    messages.push_back(read((*list)[i], fmt::format("messages[{}]", i), messages));
  return messages;
}

}  // namespace

std::vector<ChatMessage> read_messages(Fields& fields) {
  return read_list(fields,
                   [&](const Json& json, const std::string& path, const std::vector<ChatMessage>& before) {
                     return read_message(json, path, fields, before);
                   });
}

std::vector<ChatMessage> read_ollama_messages(Fields& fields) {
  return read_list(fields, [&](const Json& json, const std::string& path, const std::vector<ChatMessage>&) {
    return read_ollama_message(json, path, fields);
  });
}

}  // namespace coppice::serve
