// Text to tokens and back. One instance serves any number of threads.
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace coppice::core {

class Tokenizer {
 public:
  // An unknown model or splitting rule is refused by name with the choices there are.
  static Result<std::shared_ptr<const Tokenizer>> make(Vocabulary vocabulary);
  virtual ~Tokenizer() = default;

  // `parse_special`: the spellings of control tokens in `text` become those tokens; without it they stay
  // text. Any bytes are accepted, valid UTF-8 or not.
  virtual std::vector<Token> encode(std::string_view text, bool parse_special = false) const = 0;
  // The bytes a token stands for; empty for control tokens unless `show_special`.
  virtual std::string_view bytes(Token token, bool show_special = false) const = 0;

  std::string decode(std::span<const Token> tokens, bool show_special = false) const;
  const Vocabulary& vocabulary() const { return vocabulary_; }
  int size() const { return static_cast<int>(vocabulary_.tokens.size()); }
  bool ends_text(Token token) const;  // end of text, of turn, ...

 protected:
  explicit Tokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  Vocabulary vocabulary_;
};

// Streams the bytes of tokens as text: holds back the bytes of a character until it is complete (a character
// may be split over tokens); bytes that can never become a character come out as U+FFFD.
class Utf8Stream {
 public:
  void push(std::string_view bytes, std::string& out);  // appends to `out`
  std::string push(std::string_view bytes);
  std::string finish();

 private:
  std::string held_;
};

}  // namespace coppice::core
