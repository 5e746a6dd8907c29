#include "text/sentencepiece.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "text/show_token.h"
#include "text/unicode.h"

namespace coppice::core {
namespace {

std::string with_piece_spaces(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 2 + kPieceSpace.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    out.append(text, at, space - at);
    if (space < text.size()) out += kPieceSpace;
    at = space + 1;
  }
  return out;
}

std::string with_spaces(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(kPieceSpace, at), text.size());
    out.append(text, at, space - at);
    if (space < text.size()) out += ' ';
    at = space + kPieceSpace.size();
  }
  return out;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const int length = utf8_length(text);
    if (length <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(length));
  }
  return true;
}

// The byte of "<0xAB>"; -1 if it is not spelled so.
int byte_of(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') return -1;
  int byte = 0;
  for (const char c : spelling.substr(3, 2)) {
    const auto digit = std::string_view("0123456789ABCDEF").find(c);
    if (digit == std::string_view::npos) return -1;
    byte = byte * 16 + static_cast<int>(digit);
  }
  return byte;
}

}  // namespace

Status SentencePiece::read_vocabulary() {
  const std::size_t count = vocabulary_.tokens.size();
  if (vocabulary_.scores.size() != count) {
    return fail(fmt::format("tokenizer.ggml.scores has {} entries; tokenizer.ggml.tokens has {}",
                            vocabulary_.scores.size(), count));
  }
  if (!vocabulary_.character_map.empty()) {
    COPPICE_TRY(map_, CharacterMap::read(vocabulary_.character_map));
  }
  adds_space_ = vocabulary_.add_space_prefix;
  const Token unknown = vocabulary_.unknown;
  if (unknown != kNoToken && !is(unknown, TokenKind::control)) unknown_ = unknown;
  return spell_tokens();
}

// Fills spellings_, pool_, byte_token_, pieces_, and the spellings that are looked for.
Status SentencePiece::spell_tokens() {
  const std::size_t count = vocabulary_.tokens.size();
  byte_token_.fill(kNoToken);
  spelling_ends_.assign(1, 0);
  pool_ends_.assign(1, 0);
  std::vector<SpecialTokens::Spelling> controls, user_defined, raw_user_defined;
  for (std::size_t i = 0; i < count; ++i) {
    const auto token = static_cast<Token>(i);
    const std::string& text = vocabulary_.tokens[i];
    const TokenKind kind = vocabulary_.kinds[i];
    const bool is_piece =
        kind == TokenKind::normal || kind == TokenKind::user_defined || kind == TokenKind::unused;
    // Some converters spell the spaces of user-defined pieces as spaces.
    spellings_ += kind == TokenKind::user_defined ? with_piece_spaces(text) : text;
    spelling_ends_.push_back(spellings_.size());
    if (kind == TokenKind::byte) {
      const int byte = byte_of(text);
      if (byte < 0) {
        return fail(
            fmt::format("token {} is a byte by its tokenizer.ggml.token_type and is spelled {}; bytes are "
                        "<0x00> to <0xFF>",
                        i, show_token(text)));
      }
      pool_.push_back(static_cast<char>(byte));
      Token& slot = byte_token_[static_cast<std::size_t>(byte)];
      if (slot == kNoToken) slot = token;
    } else {
      pool_ += is_piece ? with_spaces(text) : text;
    }
    pool_ends_.push_back(pool_.size());
    if (is_piece) longest_piece_ = std::max(longest_piece_, spelling_ends_[i + 1] - spelling_ends_[i]);
  }
  pieces_ = WordMap(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto token = static_cast<Token>(i);
    const TokenKind kind = vocabulary_.kinds[i];
    const std::string_view text = spelling(token);
    if (text.empty()) continue;
    if (kind == TokenKind::control || kind == TokenKind::unknown) controls.push_back({text, token, true});
    // Only whole characters are looked for, so that none is cut in two.
    if (kind == TokenKind::user_defined && is_utf8(text)) {
      user_defined.push_back({text, token, false});
      raw_user_defined.push_back({vocabulary_.tokens[i], token, false});
    }
    if (kind == TokenKind::normal || kind == TokenKind::user_defined || kind == TokenKind::unused)
      pieces_.add(token, [this](Token t) { return spelling(t); });
  }
  special_ = SpecialTokens(controls);
  user_defined_ = SpecialTokens(user_defined);
  raw_user_defined_ = SpecialTokens(raw_user_defined);
  return {};
}

std::string_view SentencePiece::spelling(Token token) const {
  const auto i = static_cast<std::size_t>(token);
  return std::string_view(spellings_).substr(spelling_ends_[i], spelling_ends_[i + 1] - spelling_ends_[i]);
}

Token SentencePiece::piece(std::string_view text) const {
  if (text.size() > longest_piece_) return -1;
  return pieces_.find(text, [this](Token t) { return spelling(t); });
}

std::string_view SentencePiece::bytes(Token token, bool show_special) const {
  if (token < 0 || token >= size()) return {};
  const auto i = static_cast<std::size_t>(token);
  const TokenKind kind = vocabulary_.kinds[i];
  if (!show_special && (kind == TokenKind::control || kind == TokenKind::unknown)) return {};
  return std::string_view(pool_).substr(pool_ends_[i], pool_ends_[i + 1] - pool_ends_[i]);
}

bool SentencePiece::gives_back() const {
  const Token space = piece(kPieceSpace);
  return map_.empty() && !vocabulary_.remove_extra_whitespaces && space >= 0 &&
         !is(space, TokenKind::unused) &&
         std::find(byte_token_.begin(), byte_token_.end(), kNoToken) == byte_token_.end();
}

void SentencePiece::add_unknown(std::string_view text, Output& out) const {
  for (const char byte : text) {
    const Token token = byte_token_[static_cast<unsigned char>(byte)];
    if (token != kNoToken) {
      out.add(token);
    } else if (unknown_ != kNoToken && !out.after_unknown) {
      out.add(unknown_);
      out.after_unknown = true;
    }
  }
}

std::string SentencePiece::normalize(std::string_view text) const {
  if (!map_.empty() || vocabulary_.remove_extra_whitespaces) return squeeze(text);
  std::string out = with_piece_spaces(text);
  if (adds_space_ && !text.empty()) out.insert(0, kPieceSpace);
  return out;
}

// With the character map, and runs of spaces as one if they are to be removed. User-defined pieces stay as
// they are.
std::string SentencePiece::squeeze(std::string_view text) const {
  const bool removes = vocabulary_.remove_extra_whitespaces;
  std::size_t at = 0;
  const auto next = [&]() -> std::string_view {  // what stands for the text at `at`, which is moved on
    const std::size_t begin = at;
    const SpecialTokens::Match match = raw_user_defined_.find(text, at, at + 1, false);
    if (match.token != kNoToken) {
      at = match.end;
      return text.substr(begin, at - begin);
    }
    if (const auto mapped = map_.find(text.substr(at))) {
      at += mapped->length;
      return mapped->replacement;
    }
    at += character_at(text, at).bytes;
    return text.substr(begin, at - begin);
  };
  for (std::size_t begin = 0; removes && at < text.size();) {
    begin = at;
    if (next() == " ") continue;
    at = begin;
    break;
  }
  if (at == text.size()) return {};
  std::string out = adds_space_ ? " " : "";
  bool after_space = removes;
  while (at < text.size()) {
    std::string_view part = next();
    while (after_space && part.starts_with(' ')) part.remove_prefix(1);
    if (!part.empty()) after_space = removes && part.ends_with(' ');
    out += part;
  }
  out = with_piece_spaces(out);
  while (removes && out.ends_with(kPieceSpace)) out.resize(out.size() - kPieceSpace.size());
  return out;
}

}  // namespace coppice::core
