#include "jinja/lexer.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "base/check.h"
#include "jinja/print.h"
#include "jinja/unicode.h"

namespace coppice::core::jinja {
namespace {

constexpr auto npos = std::string_view::npos;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_byte(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_space_at(std::string_view text, std::size_t at) {
  return (character_flags(character_at(text, at).code) & kSpace) != 0;
}

std::size_t skip_spaces(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space_at(text, at)) at += character_at(text, at).bytes;
  return at;
}

std::size_t without_trailing_spaces(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t begin = character_before(text, end);
    if (!is_space_at(text, begin)) break;
    end = begin;
  }
  return end;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) {
      const std::size_t tag = next_tag(at_);
      if (tag == npos) {
        add_data(source_.substr(at_));
        break;
      }
      COPPICE_TRY_STATUS(one_tag(tag));
    }
    add(TokenKind::end, source_.size());
    return std::move(tokens_);
  }

 private:
  tl::unexpected<Error> wrong(std::size_t at, std::string_view what) const {
    return fail_at(source_, static_cast<std::uint32_t>(at), what);
  }

  Token& add(TokenKind kind, std::size_t at) {
    Token& token = tokens_.emplace_back();
    token.kind = kind;
    token.at = static_cast<std::uint32_t>(at);
    return token;
  }

  void add_data(std::string_view text) {
    if (!text.empty())
      add(TokenKind::data, static_cast<std::size_t>(text.data() - source_.data())).text = text;
  }

  std::size_t next_tag(std::size_t from) const {
    for (std::size_t at = from; (at = source_.find('{', at)) != npos; ++at)
      if (at + 1 < source_.size() && std::string_view("%{#").find(source_[at + 1]) != npos) return at;
    return npos;
  }

  bool has(std::size_t at, std::string_view text) const { return source_.substr(at, text.size()) == text; }
  char sign_at(std::size_t at) const {
    return at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : '\0';
  }

  // What of source_[at_, tag) is left before a tag with this sign.
  std::string_view text_before(std::size_t tag, char sign, bool variable) const {
    const std::string_view text = source_.substr(at_, tag - at_);
    if (sign == '-') return text.substr(0, without_trailing_spaces(text));
    if (sign == '+' || variable) return text;
    const std::size_t newline = text.rfind('\n');
    const std::size_t line = newline == npos ? 0 : newline + 1;
    const bool starts_line = line > 0 || line_starting_;
    return starts_line && skip_spaces(text, line) == text.size() ? text.substr(0, line) : text;
  }

  void move_to(std::size_t at) {
    at_ = at;
    line_starting_ = at > 0 && source_[at - 1] == '\n';
  }

  // The end of a comment's, raw block's or block's tag at `at`: behind "+%}", "-%}" with whitespace, or "%}"
  // with a newline; npos if none of these is there.
  std::size_t tag_end(std::size_t at, std::string_view closing) const {
    const char sign = sign_at(at);
    if (sign != '\0' && has(at + 1, closing)) {
      const std::size_t end = at + 1 + closing.size();
      return sign == '-' ? skip_spaces(source_, end) : end;
    }
    if (!has(at, closing)) return npos;
    const std::size_t end = at + closing.size();
    return end < source_.size() && source_[end] == '\n' ? end + 1 : end;
  }

  Status one_tag(std::size_t tag) {
    const char kind = source_[tag + 1];
    const char sign = sign_at(tag + 2);
    const std::size_t inside = tag + 2 + (sign == '\0' ? 0 : 1);
    if (kind == '%') {
      if (const std::size_t end = raw_begin(inside); end != npos) {
        add_data(text_before(tag, sign, false));
        return raw(tag, end);
      }
    }
    add_data(text_before(tag, sign, kind == '{'));
    move_to(inside);
    if (kind == '#') return comment(tag);
    const bool variable = kind == '{';
    add(variable ? TokenKind::variable_begin : TokenKind::block_begin, tag);
    return tag_body(tag, variable);
  }

  // Behind "raw %}" if that is here.
  std::size_t raw_begin(std::size_t at) const {
    at = skip_spaces(source_, at);
    if (!has(at, "raw")) return npos;
    at = skip_spaces(source_, at + 3);
    if (has(at, "-%}")) return skip_spaces(source_, at + 3);
    return has(at, "%}") ? at + 2 : npos;
  }

  Status raw(std::size_t tag, std::size_t begin) {
    move_to(begin);
    for (std::size_t at = begin; (at = source_.find("{%", at)) != npos; at += 2) {
      const char sign = sign_at(at + 2);
      const std::size_t name = skip_spaces(source_, at + 2 + (sign == '\0' ? 0 : 1));
      if (!has(name, "endraw")) continue;
      const std::size_t end = tag_end(skip_spaces(source_, name + 6), "%}");
      if (end == npos) continue;
      add_data(text_before(at, sign, false));
      move_to(end);
      return {};
    }
    if (begin == source_.size()) return {};  // as jinja2 lets it be
    return wrong(tag, "this raw block has no {% endraw %}");
  }

  Status comment(std::size_t tag) {
    for (std::size_t at = at_; (at = source_.find("#}", at)) != npos; ++at) {
      // A sign before it belongs to the end, unless it is the one behind "{#".
      const std::size_t end = at > at_ && sign_at(at - 1) != '\0' ? tag_end(at - 1, "#}") : tag_end(at, "#}");
      move_to(end);
      return {};
    }
    if (at_ == source_.size()) return {};  // as jinja2 lets it be
    return wrong(tag, "this comment has no #}");
  }

  Status tag_body(std::size_t tag, bool variable) {
    std::string open;  // brackets
    while (true) {
      if (at_ >= source_.size()) return wrong(tag, variable ? "this {{ has no }}" : "this {% has no %}");
      if (open.empty()) {
        const std::size_t end = variable ? variable_end() : tag_end(at_, "%}");
        if (end != npos) {
          add(variable ? TokenKind::variable_end : TokenKind::block_end, at_);
          move_to(end);
          return {};
        }
      }
      if (is_space_at(source_, at_)) {
        at_ = skip_spaces(source_, at_);
        continue;
      }
      COPPICE_TRY_STATUS(one_token(open));
    }
  }

  std::size_t variable_end() const {
    if (has(at_, "-}}")) return skip_spaces(source_, at_ + 3);
    return has(at_, "}}") ? at_ + 2 : npos;
  }

  Status one_token(std::string& open) {
    const char c = source_[at_];
    if (is_digit(c)) return number();
    if (const std::size_t begin = at_, end = name_end(at_); end > begin) {
      at_ = end;
      add(TokenKind::name, begin).text = source_.substr(begin, at_ - begin);
      return {};
    }
    if (c == '\'' || c == '"') return string(c);
    return sign(open);
  }

  std::size_t name_end(std::size_t at) const {
    while (at < source_.size()) {
      const Character c = character_at(source_, at);
      const bool part = c.code < 0x80
                            ? is_name_byte(source_[at])
                            : (character_flags(c.code) & (kAlpha | kDecimal | kDigit | kNumeric)) != 0;
      if (!part) break;
      at += c.bytes;
    }
    return at;
  }

  Status sign(std::string& open) {
    constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    constexpr std::string_view kOne = "+-/*%~[](){}><=.:|,;";
    std::string_view spelled = source_.substr(at_, 1);
    for (const std::string_view two : kTwo)
      if (has(at_, two)) spelled = two;
    if (spelled.size() == 1 && kOne.find(spelled) == npos)
      return wrong(at_, fmt::format("{} has no place in a tag", in_quotes(spelled)));
    const char c = spelled[0];
    if (c == '(' || c == '[' || c == '{') {
      open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) return wrong(at_, fmt::format("{} closes nothing", c));
      if (open.back() != c) return wrong(at_, fmt::format("{} where {} was expected", c, open.back()));
      open.pop_back();
    }
    add(TokenKind::sign, at_).text = spelled;
    at_ += spelled.size();
    return {};
  }

  // digits, with single underscores between them.
  std::size_t digits_end(std::size_t at, std::string_view allowed) const {
    const auto fits = [&](std::size_t i) { return i < source_.size() && allowed.find(source_[i]) != npos; };
    while (fits(at) || (at < source_.size() && source_[at] == '_' && fits(at + 1))) ++at;
    return at;
  }

  Status number() {
    constexpr std::string_view kDecimal = "0123456789";
    const std::size_t begin = at_;
    const bool behind_dot = begin > 0 && source_[begin - 1] == '.';
    std::size_t end = digits_end(begin, kDecimal);
    bool broken = false;
    if (!behind_dot) {
      std::size_t more = end;
      if (more + 1 < source_.size() && source_[more] == '.' && is_digit(source_[more + 1])) {
        more = digits_end(more + 1, kDecimal);
        broken = true;
      }
      if (more < source_.size() && (source_[more] | 32) == 'e') {
        std::size_t power = more + 1;
        if (sign_at(power) != '\0') ++power;
        if (power < source_.size() && is_digit(source_[power])) {
          more = digits_end(power, kDecimal);
          broken = true;
        }
      }
      if (broken) end = more;
    }
    int base = 10;
    if (!broken && source_[begin] == '0') {
      const char letter = begin + 1 < source_.size() ? static_cast<char>(source_[begin + 1] | 32) : '\0';
      const int of = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
      const std::string_view allowed = of == 16 ? "0123456789abcdefABCDEF" : of == 8 ? "01234567" : "01";
      const std::size_t prefixed = of == 0 ? begin : digits_end(begin + 2, allowed);
      if (of != 0 && prefixed > begin + 2) {
        base = of;
        end = prefixed;
      } else {
        end = digits_end(begin, "0");  // Python knows no 007
      }
    }
    return add_number(begin, end, broken, base);
  }

  Status add_number(std::size_t begin, std::size_t end, bool broken, int base) {
    std::string digits;
    for (const char c : source_.substr(begin, end - begin))
      if (c != '_') digits.push_back(c);
    if (base != 10) digits.erase(0, 2);
    at_ = end;
    const char *first = digits.data(), *last = digits.data() + digits.size();
    Token& token = add(broken ? TokenKind::number : TokenKind::integer, begin);
    token.text = digits;
    const auto parsed = broken ? std::from_chars(first, last, token.number)
                               : std::from_chars(first, last, token.integer, base);
    if (broken && parsed.ec == std::errc::result_out_of_range) {
      token.number = std::strtod(digits.c_str(), nullptr);
      return {};
    }
    if (parsed.ec != std::errc())
      return wrong(begin, fmt::format("the number {} is too large", in_quotes(digits)));
    return {};
  }

  Status string(char quote) {
    const std::size_t begin = at_++;
    std::string value;
    while (true) {
      if (at_ >= source_.size()) return wrong(begin, "this text has no closing quote");
      const char c = source_[at_];
      if (c == quote) break;
      if (c != '\\') {
        value.push_back(c);
        ++at_;
        continue;
      }
      COPPICE_TRY_STATUS(escape(value));
    }
    ++at_;
    add(TokenKind::string, begin).text = std::move(value);
    return {};
  }

  // Python's: an unknown one stays as it is, backslash and all.
  Status escape(std::string& value) {
    const std::size_t begin = at_++;
    if (at_ >= source_.size()) return wrong(begin, "this text has no closing quote");
    const char c = source_[at_++];
    constexpr std::string_view kNames = "\\'\"abfnrtv", kValues = "\\'\"\a\b\f\n\r\t\v";
    if (const std::size_t known = kNames.find(c); known != npos) {
      value.push_back(kValues[known]);
    } else if (c == '\n') {
      return {};
    } else if (c >= '0' && c <= '7') {
      --at_;
      std::uint32_t code = 0;
      for (int i = 0; i < 3 && at_ < source_.size() && source_[at_] >= '0' && source_[at_] <= '7'; ++i)
        code = code * 8 + static_cast<std::uint32_t>(source_[at_++] - '0');
      append_code(value, code);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      const std::string_view digits = source_.substr(at_, count);
      std::uint32_t code = 0;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
      const bool whole = error == std::errc() && end == digits.data() + count;
      if (!whole || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
        return wrong(begin, fmt::format("\\{} wants {} hexadecimal digits of a character", c, count));
      append_code(value, code);
      at_ += count;
    } else if (c == 'N') {
      return wrong(begin, "characters by name (\\N) are not known here; \\u and \\U are");
    } else {
      value.push_back('\\');
      value.push_back(c);
    }
    return {};
  }

  std::string_view source_;
  std::size_t at_ = 0;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::string normalise_newlines(std::string_view source) {
  std::string out;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out.push_back(source[i]);
      continue;
    }
    out.push_back('\n');
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

std::string place_of(std::string_view source, std::uint32_t at) {
  const std::string_view before = source.substr(0, at);
  std::size_t line = 1;
  for (const char c : before) line += c == '\n' ? 1 : 0;
  const std::size_t newline = before.rfind('\n');
  const std::string_view row = newline == npos ? before : before.substr(newline + 1);
  return fmt::format("line {}, column {}", line, count_characters(row) + 1);
}

tl::unexpected<Error> fail_at(std::string_view source, std::uint32_t at, std::string_view what) {
  return fail(fmt::format("{}: {}", place_of(source, at), what));
}

Result<std::vector<Token>> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace coppice::core::jinja
