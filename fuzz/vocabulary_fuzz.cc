// Any GGUF file: its vocabulary is refused with a sentence, or it makes a tokenizer (or is refused then) that
// takes any text, gives ids in range and, if every byte has a token, gives the text back.
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

bool every_byte_returns(const Tokenizer& tokenizer) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    if (tokenizer.decode(encode(tokenizer, text, false)) != text) return false;
  }
  return true;
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
  if (every_byte_returns(tokenizer)) COPPICE_CHECK(tokenizer.decode(tokens) == text);
  Utf8Stream stream;
  for (const Token token : encode(tokenizer, text, true)) stream.push(tokenizer.bytes(token, true));
  stream.finish();
  for (const Token token : vocabulary.end_tokens) COPPICE_CHECK(tokenizer.ends_text(token));

  const auto chat = ChatTemplate::make(vocabulary);
  if (!chat) return;
  const std::vector<ChatMessage> messages = {{"user", text}, {"assistant", ""}};
  COPPICE_CHECK(chat->tokens(tokenizer, messages));
  COPPICE_CHECK(chat->text(messages));
}

}  // namespace
}  // namespace coppice::core

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  namespace core = coppice::core;
  const auto file = core::gguf::File::parse({reinterpret_cast<const std::byte*>(data), size}, "input");
  if (!file) return 0;
  auto vocabulary = core::Vocabulary::read(**file);
  if (!vocabulary) {
    COPPICE_CHECK(vocabulary.error().message.find("tokenizer.") != std::string::npos);
    return 0;
  }
  COPPICE_CHECK(core::same_vocabulary(*vocabulary, *vocabulary));
  const auto tokenizer = core::Tokenizer::make(*std::move(vocabulary));
  if (tokenizer) core::use(**tokenizer);
  return 0;
}
