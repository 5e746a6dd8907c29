#include "chat_prompt.h"

#include <algorithm>

namespace coppice::serve {
namespace {

// The library names the model's file in its errors, and an answer names no file of this machine.
std::string without_path(std::string message, const Model& model) {
  const std::string& path = model.info().path;
  for (std::size_t at = message.find(path); !path.empty() && at != std::string::npos; at = message.find(path))
    message.replace(at, path.size(), "the model");
  return message;
}

Result<ChatTemplate> chat_template(const Conversation& conversation, const Model& model) {
  ChatTemplateOptions options;
  options.tools = conversation.tools.json;
  options.variables = conversation.variables;
  return model.chat_template(options);
}

// Templates rarely know the newer name of the system's role.
void call_developers_system(std::vector<ChatMessage>& messages, const ChatTemplate& chat) {
  if (chat.program().find("developer") != std::string::npos) return;
  for (ChatMessage& message : messages)
    if (message.role == "developer") message.role = "system";
}

void tell_about_tools(std::vector<ChatMessage>& messages, const Tools& tools) {
  const std::string text = describe_tools(tools);
  if (!messages.empty() && messages.front().role == "system")
    messages.front().content += "\n\n" + text;
  else
    messages.insert(messages.begin(), ChatMessage{"system", text});
}

}  // namespace

ApiResult<ChatPrompt> make_chat_prompt(const Conversation& conversation, const Model& model) {
  const auto refuse = [&](const Error& error) {
    return tl::unexpected(invalid("messages", without_path(error.message, model)));
  };
  const auto chat = chat_template(conversation, model);
  if (!chat) return refuse(chat.error());
  const Tools& tools = conversation.tools;
  std::vector<ChatMessage> messages = conversation.messages;
  call_developers_system(messages, *chat);
  if (tools.offered() && !chat->mentions("tools")) tell_about_tools(messages, tools);
  auto tokens = chat->tokens(messages, conversation.open_answer);
  if (!tokens) return refuse(tokens.error());
  ChatPrompt prompt;
  prompt.tokens = std::move(*tokens);
  if (!tools.forced()) return prompt;
  const ToolFamily& family = tool_family(chat->program());
  const auto opening = model.tokenizer().encode(family.forced_open, true, false);
  prompt.tokens.insert(prompt.tokens.end(), opening.begin(), opening.end());
  prompt.format = {OutputFormat::Kind::json_schema,
                   forced_call_schema(tools, family.name_key, family.arguments_key), "tools"};
  return prompt;
}

const ToolFamily& family_of(const Conversation& conversation, const Model& model) {
  const auto chat = chat_template(conversation, model);
  return tool_family(chat ? std::string_view(chat->program()) : std::string_view());
}

}  // namespace coppice::serve
