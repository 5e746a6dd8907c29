// SentencePiece's unigram model (Kudo, arXiv:1804.10959), the tokenizer of T5: of all ways to cut a text into
// pieces the one whose scores (log-probabilities) have the largest sum.
#pragma once

#include "text/piece_trie.h"
#include "text/sentencepiece.h"

namespace coppice::core {

class Unigram final : public SentencePiece {
 public:
  static Result<std::shared_ptr<const Tokenizer>> make(Vocabulary vocabulary);

 private:
  explicit Unigram(Vocabulary vocabulary) : SentencePiece(std::move(vocabulary)) {}
  Status read_scores();
  void encode_plain(std::string_view text, std::vector<Token>& out) const override;
  float score_of(Token token, std::size_t bytes) const;

  PieceTrie trie_;
  float least_ = 0, most_ = 0;  // of the scores of normal pieces
};

}  // namespace coppice::core
