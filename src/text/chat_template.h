// Conversations as the model was trained to see them: the Jinja program in its file, rendered (src/jinja) and
// then tokenised so that only what the program wrote itself may become control tokens.
#pragma once

#include <coppice/error.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/template.h"
#include "text/tokenizer.h"

namespace coppice::core {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant", "tool"
  std::string content;
};

struct ChatOptions {
  std::string program;  // a template to use instead of the file's; empty: the file's
  std::string name;     // what errors call it
  // What else a template may look at, as transformers hands it over. null: there is none.
  nlohmann::ordered_json tools, documents;
  nlohmann::ordered_json variables =
      nlohmann::ordered_json::object();  // chat_template_kwargs: enable_thinking, ...
  jinja::Limits limits;
};

class ChatTemplate {
 public:
  // Of a file's templates: with tools the one named tool_use, with documents the one named rag, if there is
  // such; else the one without a name. Fails if there is none, or with what is wrong in it, by line and
  // column.
  static Result<ChatTemplate> make(const Vocabulary& vocabulary, const ChatOptions& options = {});

  // The conversation as tokens, ready for the assistant's turn if `open_answer`. What a user typed is text:
  // the spellings of control tokens inside it never become control tokens. Begins with the begin-of-text
  // token, once, if the vocabulary asks for one.
  Result<std::vector<Token>> tokens(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                                    bool open_answer = true) const;
  // Messages as a server gets them: objects with "role", "content" (a text, null or a list of parts),
  // "tool_calls", ...
  Result<std::vector<Token>> tokens(const Tokenizer& tokenizer, const nlohmann::ordered_json& messages,
                                    bool open_answer = true) const;
  // For a model that is to write the user's message itself: the conversation up to where the first one
  // begins; what stands between the end of a message, end_of_turn() included, and the answer to it.
  Result<std::vector<Token>> before_message(const Tokenizer& tokenizer) const;
  Result<std::vector<Token>> before_answer(const Tokenizer& tokenizer) const;
  // What follows a user's message; the vocabulary's end of text if no control token does.
  Token end_of_turn() const { return end_; }
  // The same as text (for people to look at).
  Result<std::string> text(std::span<const ChatMessage> messages, bool open_answer = true) const;
  Result<std::string> text(const nlohmann::ordered_json& messages, bool open_answer = true) const;

  const std::string& source() const { return source_; }
  bool mentions(std::string_view variable) const { return program_.mentions(variable); }

 private:
  ChatTemplate(jinja::Template program, std::string name, const Vocabulary& vocabulary)
      : program_(std::move(program)), name_(std::move(name)), bos_(vocabulary.bos), eos_(vocabulary.eos) {}
  Result<jinja::Text> render(const nlohmann::ordered_json& messages, bool open_answer) const;
  Result<std::vector<Token>> encode(const Tokenizer& tokenizer, const jinja::Text& text) const;
  Result<jinja::Text> with_message(bool before) const;
  Result<std::vector<Token>> beside_message(const Tokenizer& tokenizer, bool before) const;
  Status check(const Tokenizer& tokenizer) const;
  friend void add_end_of_turn(Vocabulary& vocabulary);

  jinja::Template program_;
  std::string source_, name_;
  jinja::Variables variables_;  // all but the messages
  jinja::Limits limits_;
  Token bos_, eos_;
  std::string bos_text_, eos_text_;  // how the vocabulary spells them
  Token end_ = kNoToken;
};

// If a control token follows an assistant's message in the vocabulary's template, it ends a text too.
void add_end_of_turn(Vocabulary& vocabulary);

}  // namespace coppice::core
