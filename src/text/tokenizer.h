// Text to tokens and back. One instance serves any number of threads.
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/special_tokens.h"
#include "text/vocabulary.h"

namespace coppice::core {

// A part of a text. In a part with `parse_special` the spellings of control tokens become those tokens; in
// others they stay text.
struct TextPart {
  std::string_view text;
  bool parse_special = false;
};

class Tokenizer {
 public:
  // An unknown model or splitting rule is refused by name with the nearest choices.
  static Result<std::shared_ptr<const Tokenizer>> make(Vocabulary vocabulary);
  virtual ~Tokenizer() = default;

  // The tokens of the parts as one text: where a part ends and the next begins makes no difference but to
  // what becomes a control token, which is never made of two parts. Any bytes are accepted, valid UTF-8 or
  // not. Adds no begin-of-text token.
  std::vector<Token> encode(std::span<const TextPart> parts) const;
  std::vector<Token> encode(std::string_view text, bool parse_special = false) const;

  // The bytes a token stands for; empty for control tokens unless `show_special`. Where a text begins with
  // this token, TokenBytes says what it adds to it.
  virtual std::string_view bytes(Token token, bool show_special = false) const = 0;
  // The text of tokens that begin one.
  std::string decode(std::span<const Token> tokens, bool show_special = false) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  int size() const { return static_cast<int>(vocabulary_.tokens.size()); }
  bool ends_text(Token token) const;   // end of text, of turn, ...
  bool is_control(Token token) const;  // false for what is no token

  // Encoding puts a space before a text, and before what follows a control token; decoding takes it away.
  bool adds_space() const { return adds_space_; }
  // Every byte string comes back from its tokens as it was: the text is not brought into another form first,
  // and every byte has a token.
  virtual bool gives_back() const = 0;

 protected:
  explicit Tokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  // The tokens of a text without special ones, which begins a text or follows a special token.
  virtual void encode_plain(std::string_view text, std::vector<Token>& out) const = 0;

  Vocabulary vocabulary_;
  SpecialTokens special_;
  bool adds_space_ = false;
};

// The bytes of tokens one after the other: together they are what decode() gives.
class TokenBytes {
 public:
  // `begins`: the first token begins a text or follows a control token; else it goes on with one.
  explicit TokenBytes(const Tokenizer& tokenizer, bool show_special = false, bool begins = true)
      : tokenizer_(tokenizer), show_special_(show_special), begins_(begins) {}
  std::string_view next(Token token);  // valid while the tokenizer lives

 private:
  const Tokenizer& tokenizer_;
  bool show_special_, begins_;
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
