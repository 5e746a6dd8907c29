// Conversations as the model was trained to see them.
#pragma once

#include <coppice/error.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace coppice::core {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

class ChatTemplate {
 public:
  // ChatML is recognised by its markers; a template of another family is refused with its first line.
  static Result<ChatTemplate> make(const Vocabulary& vocabulary);

  // The conversation as tokens, ready for the assistant's turn if `open_answer`. What a user typed is text:
  // the spellings of control tokens inside it never become control tokens.
  Result<std::vector<Token>> tokens(const Tokenizer& tokenizer, std::span<const ChatMessage> messages,
                                    bool open_answer = true) const;
  // For a model that is to write the user's message itself: the conversation up to where the first one
  // begins; what stands between the end of a message, end_of_turn() included, and the answer to it.
  Result<std::vector<Token>> before_message(const Tokenizer& tokenizer) const;
  Result<std::vector<Token>> before_answer(const Tokenizer& tokenizer) const;
  Token end_of_turn() const { return end_; }
  // The same as text (for people to look at).
  Result<std::string> text(std::span<const ChatMessage> messages, bool open_answer = true) const;

 private:
  Status check(std::span<const ChatMessage> messages) const;
  Status check(const Tokenizer& tokenizer) const;
  bool adds_system(std::span<const ChatMessage> messages) const;

  std::string default_system_;  // what the template says first when the messages do not; empty: nothing
  Token start_ = kNoToken, end_ = kNoToken;  // <|im_start|>, <|im_end|>
};

}  // namespace coppice::core
