#include "text/byte_level_bpe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "text/byte_alphabet.h"
#include "text/nearest_names.h"
#include "text/nfc.h"
#include "text/show_token.h"
#include "text/word_memo.h"

namespace coppice::core {
namespace {

constexpr Token kNotAsked = kNoToken - 1;

tl::unexpected<Error> unknown_rule(const std::string& name) {
  if (name.empty() || name == "default") {
    return fail(fmt::format(
        "tokenizer.ggml.pre {}, so that nobody knows where the model's words end; it must name the splitting "
        "rule: convert the model again, or set the key to one of {}",
        name.empty() ? "is missing" : "is \"default\", which names no rule", split_rule_names()));
  }
  std::vector<std::string_view> names;
  for (const SplitRule& rule : split_rules()) names.push_back(rule.name);
  return fail(fmt::format(
      "tokenizer.ggml.pre names the splitting rule {}, which Coppice does not know; the nearest are {}; it "
      "knows {}",
      show_token(name), nearest_names(name, names), split_rule_names()));
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> ByteLevelBpe::make(Vocabulary vocabulary) {
  const SplitRule* rule = find_split_rule(vocabulary.pre);
  if (!rule) return unknown_rule(vocabulary.pre);
  std::shared_ptr<ByteLevelBpe> tokenizer(new ByteLevelBpe(std::move(vocabulary), *rule));
  COPPICE_TRY_STATUS(tokenizer->read_merges());
  tokenizer->collect_words();
  return std::shared_ptr<const Tokenizer>(std::move(tokenizer));
}

ByteLevelBpe::ByteLevelBpe(Vocabulary vocabulary, const SplitRule& rule)
    : Tokenizer(std::move(vocabulary)), rule_(rule) {
  spell_tokens();
  // A byte without a token becomes the unknown token, but never a control token: text must not turn into
  // control. SmolLM2 lacks 21 bytes that hardly occur (C0 and C1, F5 to FF, some control characters) and its
  // unknown token is
  // <|endoftext|>: there the byte is dropped, as the tokenizer the model was trained with does.
  const Token unknown = vocabulary_.unknown;
  if (unknown != kNoToken && vocabulary_.kinds[static_cast<std::size_t>(unknown)] != TokenKind::control) {
    missing_byte_ = unknown;
  }
}

bool ByteLevelBpe::is_ordinary(Token token) const {
  const TokenKind kind = vocabulary_.kinds[static_cast<std::size_t>(token)];
  return kind == TokenKind::normal || kind == TokenKind::byte;
}

// Fills pool_, offsets_, in_alphabet_, byte_token_ and special_.
void ByteLevelBpe::spell_tokens() {
  const std::size_t count = vocabulary_.tokens.size();
  byte_token_.fill(kNoToken);
  offsets_.assign(1, 0);
  in_alphabet_.assign(count, false);
  std::vector<SpecialTokens::Spelling> spellings;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& spelling = vocabulary_.tokens[i];
    const TokenKind kind = vocabulary_.kinds[i];
    const auto token = static_cast<Token>(i);
    const auto bytes = bytes_of_spelling(spelling);
    in_alphabet_[i] = bytes.has_value() && !bytes->empty();
    // Only ordinary tokens are spelled in the alphabet; the others stand for themselves.
    const bool plain = is_ordinary(token) && bytes.has_value();
    pool_ += plain ? *bytes : spelling;
    offsets_.push_back(pool_.size());
    if (in_alphabet_[i] && bytes->size() == 1 && is_ordinary(token)) {
      Token& slot = byte_token_[static_cast<unsigned char>((*bytes)[0])];
      if (slot == kNoToken) slot = token;
    }
    const bool user_defined = kind == TokenKind::user_defined;
    const bool control = kind == TokenKind::control || kind == TokenKind::unknown;
    if ((user_defined || control) && !spelling.empty()) spellings.push_back({spelling, token, control});
  }
  special_ = SpecialTokens(spellings);
}

Status ByteLevelBpe::read_merges() {
  const std::size_t count = vocabulary_.tokens.size();
  WordMap by_spelling(count);
  const auto spell = [this](Token token) -> std::string_view {
    return vocabulary_.tokens[static_cast<std::size_t>(token)];
  };
  // Ordinary tokens first: where two tokens are spelled alike, merges mean the ordinary one, and the lower
  // id.
  for (const bool ordinary : {true, false}) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto token = static_cast<Token>(i);
      if (is_ordinary(token) == ordinary) by_spelling.add(token, spell);
    }
  }
  merges_ = Merges(vocabulary_.merges.size());
  std::string joined;
  for (std::size_t i = 0; i < vocabulary_.merges.size(); ++i) {
    const std::string_view merge = vocabulary_.merges[i];
    const std::size_t space = merge.find(' ');
    if (space == std::string_view::npos || merge.find(' ', space + 1) != std::string_view::npos) {
      return fail(
          fmt::format("entry {} of tokenizer.ggml.merges is {}; it must be two tokens with one space between",
                      i, show_token(merge)));
    }
    const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
    joined.assign(left).append(right);
    const std::string_view parts[] = {left, right, joined};
    Token tokens[3];
    for (int part = 0; part < 3; ++part) {
      tokens[part] = by_spelling.find(parts[part], spell);
      if (tokens[part] < 0) {
        return fail(fmt::format("entry {} of tokenizer.ggml.merges, {}, needs {}, which is not a token", i,
                                show_token(merge), show_token(parts[part])));
      }
    }
    // A merge that made a control token would let text become control; no known vocabulary has one. What a
    // user defined is found before words are merged, so that such a merge never applies.
    if (is_ordinary(tokens[2])) merges_.add(tokens[0], tokens[1], tokens[2]);
  }
  vocabulary_.merges = {};
  return {};
}

// Most words of a text are one token. Which tokens a word of their bytes really becomes is found out by
// merging it when it is first met; after that such a word costs one look-up. Merging all of them here would
// be a third of the time that loading a small model takes.
void ByteLevelBpe::collect_words() {
  const std::size_t count = vocabulary_.tokens.size();
  words_ = WordMap(count);
  whole_ = std::vector<std::atomic<Token>>(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto token = static_cast<Token>(i);
    whole_[i].store(kNotAsked, std::memory_order_relaxed);
    if (in_alphabet_[i] && is_ordinary(token)) words_.add(token, [this](Token t) { return bytes(t, false); });
  }
}

// The token that `word` becomes; kNoToken if it becomes several, or if no token is spelled like it.
Token ByteLevelBpe::whole_word(std::string_view word) const {
  const Token spelled = words_.find(word, [this](Token t) { return bytes(t, false); });
  if (spelled < 0) return kNoToken;
  if (rule_.whole_words_first) return spelled;
  std::atomic<Token>& whole = whole_[static_cast<std::size_t>(spelled)];
  Token known = whole.load(std::memory_order_relaxed);
  if (known != kNotAsked) return known;
  std::vector<Token> symbols, out;
  encode_word(word, symbols, out);
  known = out.size() == 1 ? out[0] : kNoToken;
  whole.store(known, std::memory_order_relaxed);
  return known;
}

std::string_view ByteLevelBpe::bytes(Token token, bool show_special) const {
  if (token < 0 || token >= size()) return {};
  const auto i = static_cast<std::size_t>(token);
  const bool is_text = is_ordinary(token) || vocabulary_.kinds[i] == TokenKind::user_defined;
  if (!show_special && !is_text) return {};
  return std::string_view(pool_).substr(offsets_[i], offsets_[i + 1] - offsets_[i]);
}

bool ByteLevelBpe::gives_back() const {
  return !rule_.nfc && std::find(byte_token_.begin(), byte_token_.end(), kNoToken) == byte_token_.end();
}

void ByteLevelBpe::encode_plain(std::string_view text, std::vector<Token>& out) const {
  const std::optional<std::string> composed = rule_.nfc ? to_nfc(text) : std::nullopt;
  const std::string_view all = composed ? std::string_view(*composed) : text;
  Words words(rule_, all);
  WordMemo memo(all.size());
  std::vector<Token> symbols;
  for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
    const Token whole = whole_word(word);
    if (whole >= 0) {
      out.push_back(whole);
    } else if (!memo.recall(word, out)) {
      const std::size_t begin = out.size();
      encode_word(word, symbols, out);
      memo.remember(word, begin, out);
    }
  }
}

void ByteLevelBpe::encode_word(std::string_view word, std::vector<Token>& symbols,
                               std::vector<Token>& out) const {
  symbols.clear();
  for (const char byte : word) {
    const Token token = byte_token_[static_cast<unsigned char>(byte)];
    if (token != kNoToken) {
      symbols.push_back(token);
    } else if (missing_byte_ != kNoToken) {
      symbols.push_back(missing_byte_);
    }
  }
  merges_.apply(symbols, out);
}

}  // namespace coppice::core
