// The messages of a conversation, as the two chat APIs send them.
#pragma once

#include <coppice/coppice.h>

#include <vector>

#include "json_fields.h"

namespace coppice::serve {

// OpenAI's. Parts of a content are joined with a newline between them; parts that are no text are refused.
std::vector<ChatMessage> read_messages(Fields& fields);
// Ollama's: a content is a string, a call's arguments are an object, and an answer of a tool names the tool.
std::vector<ChatMessage> read_ollama_messages(Fields& fields);

}  // namespace coppice::serve
