#include "chat_prompt.h"

#include <fmt/format.h>

#include <algorithm>

namespace coppice::serve {
namespace {

// What a template is given by the request and the model's file.
constexpr std::string_view kOwnVariables[] = {"messages",  "tools",     "documents", "add_generation_prompt",
                                              "bos_token", "eos_token", "unk_token", "pad_token"};

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

std::string read_template_variables(Fields& fields) {
  const Json* variables = fields.object("chat_template_kwargs");
  if (!variables) return "";
  for (const std::string_view name : kOwnVariables)
    if (variables->contains(std::string(name)))
      fields.error(fmt::format("chat_template_kwargs.{}", name),
                   "is what the request and the model say it is; leave it out");
  return dump(*variables);
}

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
  prompt.format = forced_call_format(tools, family.name_key, family.arguments_key);
  return prompt;
}

const ToolFamily& family_of(const Conversation& conversation, const Model& model) {
  const auto chat = chat_template(conversation, model);
  return tool_family(chat ? std::string_view(chat->program()) : std::string_view());
}

}  // namespace coppice::serve
