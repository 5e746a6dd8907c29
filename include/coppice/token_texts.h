// An answer's text token by token: what each one adds to it, whole characters only.
#pragma once

#include <coppice/model.h>
#include <coppice/token.h>

#include <memory>
#include <string>
#include <string_view>

namespace coppice {

// Moves, and is not copied. One thread at a time.
class TokenTexts {
 public:
  // `after`: the token before the first one, as a prompt's last; kNoToken: the text begins here.
  // `show_special` as in Tokenizer::decode().
  explicit TokenTexts(const Tokenizer& tokenizer, bool show_special = false, Token after = kNoToken);
  TokenTexts(TokenTexts&&) noexcept;
  TokenTexts& operator=(TokenTexts&&) noexcept;
  ~TokenTexts();

  struct Piece {
    std::string_view bytes;  // the token's own; lives as long as the tokenizer
    std::string text;        // without what may be the beginning of a character, and with what was before
  };
  Piece next(Token token);
  std::string finish();  // U+FFFD where the last character never came to its end; else nothing

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace coppice
