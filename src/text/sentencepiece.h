// What the tokenizers of SentencePiece (Kudo and Richardson, arXiv:1808.06226) share: a text is normalized,
// its spaces become U+2581, and it is cut into pieces of the vocabulary; how, the model says
// (sentencepiece_bpe.h, unigram.h). Characters without a piece become their bytes, or the unknown token.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "text/character_map.h"
#include "text/flat_map.h"
#include "text/tokenizer.h"

namespace coppice::core {

class SentencePiece : public Tokenizer {
 public:
  std::string_view bytes(Token token, bool show_special) const override;
  // But for U+2581, which comes back as a space.
  bool gives_back() const override;

 protected:
  explicit SentencePiece(Vocabulary vocabulary) : Tokenizer(std::move(vocabulary)) {}
  // Before anything else. Fails where the vocabulary contradicts itself.
  Status read_vocabulary();

  // The text as pieces spell it.
  std::string normalize(std::string_view text) const;
  // The piece of this spelling (normal, user-defined or unused), or -1.
  Token piece(std::string_view spelling) const;
  std::string_view spelling(Token token) const;
  bool is(Token token, TokenKind kind) const {
    return vocabulary_.kinds[static_cast<std::size_t>(token)] == kind;
  }
  std::size_t longest_piece() const { return longest_piece_; }

  // Tokens go out one after the other; characters without a piece that follow each other are one unknown
  // token.
  struct Output {
    std::vector<Token>& tokens;
    bool after_unknown = false;

    void add(Token token) {
      tokens.push_back(token);
      after_unknown = false;
    }
  };
  void add_unknown(std::string_view bytes, Output& out) const;

  SpecialTokens user_defined_;  // in what normalize() gives

 private:
  Status spell_tokens();
  std::string squeeze(std::string_view text) const;

  CharacterMap map_;
  std::string spellings_, pool_;                        // of all tokens, one after the other
  std::vector<std::size_t> spelling_ends_, pool_ends_;  // [tokens + 1]
  WordMap pieces_;
  std::size_t longest_piece_ = 0;  // bytes
  std::array<Token, 256> byte_token_{};
  Token unknown_ = kNoToken;  // what stands for a character without a piece; kNoToken: nothing does
  SpecialTokens raw_user_defined_;
};

inline constexpr std::string_view kPieceSpace = "\xE2\x96\x81";  // U+2581

}  // namespace coppice::core
