// The tokenizer of GPT-2 and of most models since: bytes, splitting rule, merges.
#pragma once

#include <array>
#include <atomic>

#include "text/flat_map.h"
#include "text/merges.h"
#include "text/split_rules.h"
#include "text/tokenizer.h"

namespace coppice::core {

class ByteLevelBpe final : public Tokenizer {
 public:
  static Result<std::shared_ptr<const Tokenizer>> make(Vocabulary vocabulary);

  std::string_view bytes(Token token, bool show_special) const override;
  bool gives_back() const override;

 private:
  ByteLevelBpe(Vocabulary vocabulary, const SplitRule& rule);
  void spell_tokens();
  Status read_merges();
  void collect_words();
  Token whole_word(std::string_view word) const;
  void encode_plain(std::string_view text, std::vector<Token>& out) const override;
  void encode_word(std::string_view word, std::vector<Token>& symbols, std::vector<Token>& out) const;

  // Can bytes and merges make it, or does only its spelling as a whole stand for it?
  bool is_ordinary(Token token) const;

  const SplitRule& rule_;
  std::string pool_;                   // the bytes of all tokens, one after the other
  std::vector<std::size_t> offsets_;   // [tokens + 1], into pool_
  std::vector<bool> in_alphabet_;      // [tokens]: spelled in the byte alphabet
  std::array<Token, 256> byte_token_;  // kNoToken where the vocabulary has none
  Token missing_byte_ = kNoToken;      // what stands for a byte that has none; kNoToken: nothing does
  Merges merges_;
  WordMap words_;  // bytes -> the first token of those bytes that text can become
  // [tokens], by what words_ says: the one token that the word becomes, kNoToken where it becomes several, or
  // kNotAsked. Found out when a word is met, always with the same answer, so threads need no order.
  mutable std::vector<std::atomic<Token>> whole_;
};

}  // namespace coppice::core
