// /v1/tokenize: a text, or a conversation in the model's chat template, as tokens.
#include "chat_messages.h"
#include "chat_prompt.h"
#include "json_fields.h"

namespace coppice::serve {
namespace {

// A piece may end inside a character; JSON has no such strings, so its bytes are given then.
Json piece_json(const std::string& piece) {
  const Json text = piece;
  if (const auto back = Json::parse(dump(text), nullptr, false); back.is_string() && back == piece)
    return text;
  Json bytes = Json::array();
  for (const char byte : piece) bytes.push_back(static_cast<unsigned char>(byte));
  return bytes;
}

// The one of content, text and input that is there.
std::optional<std::string> read_text(Fields& fields) {
  std::optional<std::string> text;
  for (const char* name : {"content", "text", "input"}) {
    auto given = fields.maybe_text(name);
    if (given && text) fields.error(name, "content, text and input are the same; give one of them");
    if (given) text = std::move(given);
  }
  return text;
}

}  // namespace

ApiResult<std::string> tokenize(std::string_view body, const Model& model) {
  const auto json = parse_body(body);
  if (!json) return tl::unexpected(json.error());
  Fields fields(*json);
  fields.maybe_text("model");
  const auto text = read_text(fields);
  const bool chats = fields.has("messages");
  Conversation conversation;
  if (chats) {
    conversation.messages = read_messages(fields);
    conversation.tools = read_tools(fields);
    conversation.open_answer = fields.boolean("add_generation_prompt", true);
    conversation.variables = read_template_variables(fields);
    if (text) fields.error("messages", "and a text cannot go together");
  } else if (!text) {
    fields.error("content", "is missing: a text, or messages");
  }
  const bool add_special = fields.boolean("add_special", true);
  const bool parse_special = fields.boolean("parse_special", false);
  const bool with_pieces = fields.boolean("with_pieces", false);
  if (const auto end = fields.finish(); !end) return tl::unexpected(end.error());
  std::vector<Token> tokens;
  if (chats) {
    auto prompt = make_chat_prompt(conversation, model);
    if (!prompt) return tl::unexpected(prompt.error());
    tokens = std::move(prompt->tokens);
  } else {
    tokens = model.tokenizer().encode(*text, parse_special, add_special);
  }
  Json answer = {{"tokens", tokens}, {"count", tokens.size()}};
  if (!with_pieces) return dump(answer);
  Json& pieces = answer["pieces"] = Json::array();
  for (const Token token : tokens) pieces.push_back(piece_json(model.tokenizer().piece(token)));
  return dump(answer);
}

}  // namespace coppice::serve
