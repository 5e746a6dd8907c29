// From a conversation to the tokens that the model goes on from.
#pragma once

#include <coppice/coppice.h>
#include <coppice/tool_calls.h>

#include <string>
#include <vector>

#include "asked.h"
#include "tools.h"

namespace coppice::serve {

struct Conversation {
  std::vector<ChatMessage> messages;
  Tools tools;
  std::string variables;    // of the template, as JSON; empty: none
  bool open_answer = true;  // ready for the assistant's turn
};

// chat_template_kwargs, as `variables` above. The template's own names are refused.
std::string read_template_variables(Fields& fields);

struct ChatPrompt {
  std::vector<Token> tokens;
  OutputFormat format;  // with tools that must be called: what a call looks like; else free
};

ApiResult<ChatPrompt> make_chat_prompt(const Conversation& conversation, const Model& model);
// How this model calls tools. (The generic family where it has no template: then there is no prompt either.)
const ToolFamily& family_of(const Conversation& conversation, const Model& model);

}  // namespace coppice::serve
