// A template's source as tokens: text between tags, and what stands in tags. Whitespace around tags goes as
// jinja2 does it with trim_blocks and lstrip_blocks, which is how transformers renders: a newline behind a
// block's tag is dropped, blanks before a block's tag at the start of a line too; "-" strips all whitespace,
// "+" none.
#pragma once

#include <coppice/error.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::core::jinja {

enum class TokenKind : std::uint8_t {
  data,  // text between tags
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,  // its value, unescaped
  integer,
  number,
  sign,  // an operator or a bracket: its spelling
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::uint32_t at = 0;  // byte of the source
  std::string text;
  std::int64_t integer = 0;
  double number = 0;

  bool is(TokenKind wanted, std::string_view spelled) const { return kind == wanted && text == spelled; }
  bool is_sign(std::string_view spelled) const { return is(TokenKind::sign, spelled); }
  bool is_name(std::string_view spelled) const { return is(TokenKind::name, spelled); }
};

// Newlines of all kinds become \n, and one at the very end is dropped.
std::string normalise_newlines(std::string_view source);
// "line 3, column 14" of a byte of the source.
std::string place_of(std::string_view source, std::uint32_t at);
// "line 3, column 14: what".
tl::unexpected<Error> fail_at(std::string_view source, std::uint32_t at, std::string_view what);

// The last token is `end`.
Result<std::vector<Token>> tokenize(std::string_view source);

}  // namespace coppice::core::jinja
