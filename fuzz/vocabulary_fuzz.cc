// Any GGUF file: its vocabulary is refused with a sentence, or it makes a tokenizer (or is refused then) that
// takes any text, gives ids in range and, if it says so, gives the text back.
#include <algorithm>

#include "base/check.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace coppice::core {
namespace {

std::vector<Token> encode(const Tokenizer& tokenizer, std::string_view text, bool parse_special) {
  std::vector<Token> tokens = tokenizer.encode(text, parse_special);
  for (const Token token : tokens) COPPICE_CHECK(token >= 0 && token < tokenizer.size());
  return tokens;
}

// SentencePiece writes a space as U+2581, so that one in a text comes back as a space.
std::string with_spaces(const Tokenizer& tokenizer, std::string text) {
  constexpr std::string_view kPieceSpace = "\u2581";
  if (tokenizer.vocabulary().model == "gpt2") return text;
  for (std::size_t at = text.find(kPieceSpace); at != std::string::npos; at = text.find(kPieceSpace, at))
    text.replace(at, kPieceSpace.size(), " ");
  return text;
}

// What a file says is also what texts are made of: its tokens one after the other, as they are spelled and as
// bytes.
std::string text_of(const Tokenizer& tokenizer) {
  constexpr std::size_t kEnough = 4096;
  std::string text = tokenizer.vocabulary().chat_template;
  for (Token token = 0; token < tokenizer.size() && text.size() < kEnough; ++token) {
    text += tokenizer.vocabulary().tokens[static_cast<std::size_t>(token)];
    text += tokenizer.bytes(token);
    text += tokenizer.bytes(token, true);
  }
  text.resize(std::min(text.size(), kEnough));
  return text;
}

void use(const Tokenizer& tokenizer) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  const std::string text = text_of(tokenizer);
  const std::vector<Token> tokens = encode(tokenizer, text, false);
  for (const Token token : tokens) {
    COPPICE_CHECK(vocabulary.kinds[static_cast<std::size_t>(token)] != TokenKind::control);
  }
  if (tokenizer.gives_back())
    COPPICE_CHECK(with_spaces(tokenizer, tokenizer.decode(tokens)) == with_spaces(tokenizer, text));
  const std::string_view all = text;
  const TextPart parts[] = {{all.substr(0, all.size() / 3), false}, {all.substr(all.size() / 3), false}};
  COPPICE_CHECK(tokenizer.encode(parts) == tokens);
  Utf8Stream stream;
  TokenBytes bytes(tokenizer, true);
  std::string joined;
  const std::vector<Token> special = encode(tokenizer, text, true);
  for (const Token token : special) {
    joined += bytes.next(token);
    stream.push(tokenizer.bytes(token, true));
  }
  stream.finish();
  COPPICE_CHECK(joined == tokenizer.decode(special, true));
  for (const Token token : vocabulary.end_tokens) COPPICE_CHECK(tokenizer.ends_text(token));

  ChatOptions options;
  options.limits.work = 4'000'000;
  const auto chat = ChatTemplate::make(vocabulary, options);
  if (!chat) return;
  const std::vector<ChatMessage> messages = {{"user", text}, {"assistant", ""}};
  const auto rendered = chat->text(messages);
  const auto prompt = chat->tokens(tokenizer, messages);  // a template may refuse; then both fail
  COPPICE_CHECK(rendered.has_value() == prompt.has_value());
  for (const auto& beside : {chat->before_message(tokenizer), chat->before_answer(tokenizer)})
    for (std::size_t i = 0; beside && i < beside->size(); ++i)
      COPPICE_CHECK((*beside)[i] >= 0 && (*beside)[i] < tokenizer.size());
}

}  // namespace
}  // namespace coppice::core

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace core = coppice::core;
  const auto file = core::gguf::File::parse({reinterpret_cast<const std::byte*>(data), size}, "input");
  if (!file) return 0;
  auto vocabulary = core::Vocabulary::read(**file);
  if (!vocabulary) {
    const std::string& what = vocabulary.error().message;
    COPPICE_CHECK(what.find("tokenizer.") != std::string::npos ||
                  what.find("coppice.vocabulary_hash") != std::string::npos);
    return 0;
  }
  // A target has its tokens; a draft may have their hash alone.
  COPPICE_CHECK(vocabulary->hash || core::same_vocabulary(*vocabulary, *vocabulary));
  const auto tokenizer = core::Tokenizer::make(*std::move(vocabulary));
  if (tokenizer) core::use(**tokenizer);
  return 0;
}
