// A model file carries its conversation format as a Jinja program. Running such programs is a language of its
// own; instead the families are recognised. ChatML, for every message:
//     <|im_start|>role\ncontent<|im_end|>\n
// Templates of this family differ in the system message they add when the conversation has none, which is a
// literal in the program: '<|im_start|>system\nYou are ...<|im_end|>\n'.
#include "text/chat_template.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "text/show_token.h"

namespace coppice::core {
namespace {

constexpr std::string_view kStart = "<|im_start|>";
constexpr std::string_view kEnd = "<|im_end|>";
constexpr std::string_view kAnswer = "assistant\n";

// A Jinja string literal's escapes, as far as templates use them.
std::string unescape(std::string_view literal) {
  std::string text;
  for (std::size_t i = 0; i < literal.size(); ++i) {
    if (literal[i] != '\\' || i + 1 == literal.size()) {
      text.push_back(literal[i]);
      continue;
    }
    const char escaped = literal[++i];
    if (escaped == 'n') {
      text.push_back('\n');
    } else if (escaped == 't') {
      text.push_back('\t');
    } else {
      text.push_back(escaped);
    }
  }
  return text;
}

// Where the string literal that `begin` is in ends: at its closing quote, or at the end of the text.
std::size_t literal_end(std::string_view text, std::size_t begin, char quote) {
  while (begin < text.size() && text[begin] != quote) begin += text[begin] == '\\' ? 2 : 1;
  return std::min(begin, text.size());
}

// The default system message: a literal that holds a whole system turn.
std::string find_default_system(std::string_view program) {
  constexpr std::string_view kTurn = "<|im_start|>system";
  for (std::size_t at = program.find(kTurn); at != std::string_view::npos; at = program.find(kTurn, at + 1)) {
    if (at == 0) continue;
    const char quote = program[at - 1];
    if (quote != '\'' && quote != '"') continue;
    const std::size_t begin = at + kTurn.size();
    const std::string turn = unescape(program.substr(begin, literal_end(program, begin, quote) - begin));
    const std::size_t end = turn.find(kEnd);
    if (end == std::string::npos || turn[0] != '\n') continue;
    return turn.substr(1, end - 1);
  }
  return {};
}

Token find_control(const Vocabulary& vocabulary, std::string_view spelling) {
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    const bool special =
        vocabulary.kinds[i] == TokenKind::control || vocabulary.kinds[i] == TokenKind::user_defined;
    if (special && vocabulary.tokens[i] == spelling) return static_cast<Token>(i);
  }
  return kNoToken;
}

}  // namespace

Result<ChatTemplate> ChatTemplate::make(const Vocabulary& vocabulary) {
  const std::string& program = vocabulary.chat_template;
  if (program.empty()) {
    return fail(
        "the model has no chat template (tokenizer.chat_template): it continues text and does not converse; "
        "use generate instead of chat, or an instruct model");
  }
  if (program.find(kStart) == std::string::npos || program.find(kEnd) == std::string::npos) {
    return fail(fmt::format(
        "tokenizer.chat_template is of a family Coppice does not know (it knows ChatML, with {} and "
        "{}); it begins: {}",
        kStart, kEnd, show_token(std::string_view(program).substr(0, program.find('\n')))));
  }
  ChatTemplate chat;
  chat.default_system_ = find_default_system(program);
  chat.start_ = find_control(vocabulary, kStart);
  chat.end_ = find_control(vocabulary, kEnd);
  if (chat.start_ == kNoToken || chat.end_ == kNoToken) {
    return fail(
        fmt::format("tokenizer.chat_template uses {} and {}, but the vocabulary has no control token {}",
                    kStart, kEnd, chat.start_ == kNoToken ? kStart : kEnd));
  }
  return chat;
}

bool ChatTemplate::adds_system(std::span<const ChatMessage> messages) const {
  return !default_system_.empty() && !messages.empty() && messages[0].role != "system";
}

Status ChatTemplate::check(std::span<const ChatMessage> messages) const {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    const bool known = role == "system" || role == "user" || role == "assistant" || role == "tool";
    if (!known) {
      return fail(fmt::format("message {} has the role {}; roles are system, user, assistant and tool", i,
                              show_token(role)));
    }
  }
  return {};
}

Status ChatTemplate::check(const Tokenizer& tokenizer) const {
  const std::vector<std::string>& vocabulary = tokenizer.vocabulary().tokens;
  const auto spells = [&](Token token, std::string_view text) {
    return token >= 0 && token < tokenizer.size() && vocabulary[static_cast<std::size_t>(token)] == text;
  };
  if (!spells(start_, kStart) || !spells(end_, kEnd)) {
    return fail("the chat template and the tokenizer are of different models; both must come from one file");
  }
  return {};
}

// Every part is encoded as tokens() encodes it, which cuts a text at its control tokens.
Result<std::vector<Token>> ChatTemplate::before_message(const Tokenizer& tokenizer) const {
  COPPICE_TRY_STATUS(check(tokenizer));
  std::vector<Token> out;
  if (!default_system_.empty()) {
    const ChatMessage system{"system", default_system_};
    COPPICE_TRY(out, tokens(tokenizer, {&system, 1}, false));
  }
  out.push_back(start_);
  const std::vector<Token> role = tokenizer.encode("user\n");
  out.insert(out.end(), role.begin(), role.end());
  return out;
}

Result<std::vector<Token>> ChatTemplate::before_answer(const Tokenizer& tokenizer) const {
  COPPICE_TRY_STATUS(check(tokenizer));
  std::vector<Token> out = {end_};
  const std::vector<Token> line = tokenizer.encode("\n"), role = tokenizer.encode(kAnswer);
  out.insert(out.end(), line.begin(), line.end());
  out.push_back(start_);
  out.insert(out.end(), role.begin(), role.end());
  return out;
}

Result<std::vector<Token>> ChatTemplate::tokens(const Tokenizer& tokenizer,
                                                std::span<const ChatMessage> messages,
                                                bool open_answer) const {
  COPPICE_TRY_STATUS(check(messages));
  COPPICE_TRY_STATUS(check(tokenizer));
  std::vector<Token> out;
  // Without parse_special, so what a message says stays text.
  const auto append = [&](std::string_view text) {
    const std::vector<Token> tokens = tokenizer.encode(text);
    out.insert(out.end(), tokens.begin(), tokens.end());
  };
  const auto turn = [&](std::string_view role, std::string_view content) {
    out.push_back(start_);
    append(fmt::format("{}\n{}", role, content));
    out.push_back(end_);
    append("\n");
  };
  if (adds_system(messages)) turn("system", default_system_);
  for (const ChatMessage& message : messages) turn(message.role, message.content);
  if (open_answer) {
    out.push_back(start_);
    append(kAnswer);
  }
  return out;
}

Result<std::string> ChatTemplate::text(std::span<const ChatMessage> messages, bool open_answer) const {
  COPPICE_TRY_STATUS(check(messages));
  std::string out;
  const auto turn = [&](std::string_view role, std::string_view content) {
    out += fmt::format("{}{}\n{}{}\n", kStart, role, content, kEnd);
  };
  if (adds_system(messages)) turn("system", default_system_);
  for (const ChatMessage& message : messages) turn(message.role, message.content);
  if (open_answer) out += fmt::format("{}{}", kStart, kAnswer);
  return out;
}

}  // namespace coppice::core
