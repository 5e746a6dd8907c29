#include "engine/grammar_tokens.h"

namespace coppice::core {
namespace {

// Control tokens are no text. The unknown one stands for what could not be read, unused ones for nothing.
bool is_text(const Vocabulary& vocabulary, Token token) {
  const TokenKind kind = vocabulary.kinds[static_cast<std::size_t>(token)];
  return kind == TokenKind::normal || kind == TokenKind::user_defined || kind == TokenKind::byte;
}

}  // namespace

std::shared_ptr<const grammar::TokenTrie> GrammarTokens::get() {
  std::call_once(once_, [&] {
    grammar::TokenBytesList list;
    list.bytes.resize(static_cast<std::size_t>(tokenizer_->size()));
    for (Token token = 0; token < tokenizer_->size(); ++token)
      if (is_text(tokenizer_->vocabulary(), token))
        list.bytes[static_cast<std::size_t>(token)] = tokenizer_->bytes(token);
    list.ends = tokenizer_->vocabulary().end_tokens;
    trie_ = std::make_shared<const grammar::TokenTrie>(list);
  });
  return trie_;
}

}  // namespace coppice::core
