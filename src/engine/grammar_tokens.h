// A tokenizer's vocabulary as grammars walk it. Made when the first request with a grammar comes; all engines
// of a model share one.
#pragma once

#include <memory>
#include <mutex>

#include "grammar/token_trie.h"
#include "text/tokenizer.h"

namespace coppice::core {

class GrammarTokens {
 public:
  explicit GrammarTokens(std::shared_ptr<const Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}
  std::shared_ptr<const grammar::TokenTrie> get();  // thread-safe

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::once_flag once_;
  std::shared_ptr<const grammar::TokenTrie> trie_;
};

}  // namespace coppice::core
