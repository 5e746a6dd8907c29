// SentencePiece's BPE with byte fallback, the tokenizer of Llama 2, Mistral, Gemma and Phi-3: of all
// neighbouring pairs that together are a piece, the one with the highest score is joined, the leftmost first
// among equals, until none is left.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstdint>

#include "text/sentencepiece.h"

namespace coppice::core {

class SentencePieceBpe final : public SentencePiece {
 public:
  static Result<std::shared_ptr<const Tokenizer>> make(Vocabulary vocabulary);

 private:
  // A part of a word: text[begin, end) and its piece, or -1 for a character without one.
  struct Symbol {
    std::uint32_t begin, end;
    Token token;
  };
  struct Split;
  struct Neighbours;
  struct Candidate;
  struct Work;

  explicit SentencePieceBpe(Vocabulary vocabulary) : SentencePiece(std::move(vocabulary)) {}
  void find_crossings();
  void encode_plain(std::string_view text, std::vector<Token>& out) const override;
  void encode_words(std::string_view text, Work& work) const;
  std::size_t word_end(std::string_view text, std::size_t begin) const;
  Token whole_word(std::string_view word) const;
  void encode_word(std::string_view word, Work& work) const;
  void encode_and_remember(std::string_view word, Work& work) const;
  Token join(std::string_view word, const Symbol& left, const Symbol& right, Work& work) const;
  void join_short(std::string_view word, Work& work) const;
  void join_long(std::string_view word, Work& work) const;
  void emit(std::string_view text, Token token, Work& work) const;

  // [last byte of a character][first byte of the next one]: some piece has such characters side by side.
  // Where none has, a word ends: no piece can be joined across. The same of a space behind another character.
  std::array<std::bitset<256>, 256> crosses_{};
  std::array<bool, 256> crosses_to_space_{};
  // [tokens]: the piece that a word of this spelling becomes, kNoToken if it becomes several, or not asked
  // yet. Always the same answer, so threads need no order.
  mutable std::vector<std::atomic<Token>> whole_;
};

}  // namespace coppice::core
