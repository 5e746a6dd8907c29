#include "text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "text/byte_level_bpe.h"
#include "text/sentencepiece_bpe.h"
#include "text/show_token.h"
#include "text/unigram.h"

namespace coppice::core {
namespace {

// Vocabularies are also made by hand and by other code; an id out of range would be a crash.
Status check_vocabulary(const Vocabulary& vocabulary) {
  const std::size_t size = vocabulary.tokens.size();
  if (vocabulary.hash)
    return fail(
        "it has only the hash of its vocabulary, as a draft may; it can draft for a model, not write by "
        "itself");
  if (size == 0) return fail("the vocabulary has no tokens");
  if (size > static_cast<std::size_t>(std::numeric_limits<Token>::max())) {
    return fail(fmt::format("the vocabulary has {} tokens; ids are 32-bit", size));
  }
  if (vocabulary.kinds.size() != size) {
    return fail(fmt::format("the vocabulary has {} tokens and {} token types; there must be one each", size,
                            vocabulary.kinds.size()));
  }
  const auto in_range = [&](Token token) {
    return token == kNoToken || (token >= 0 && static_cast<std::size_t>(token) < size);
  };
  for (const Token token : {vocabulary.bos, vocabulary.eos, vocabulary.unknown, vocabulary.padding}) {
    if (!in_range(token)) {
      return fail(fmt::format("a special token has id {}, but the vocabulary has {} tokens", token, size));
    }
  }
  return {};
}

// The kinds of tokenizers, by tokenizer.ggml.model.
struct Family {
  std::string_view model, what;
  Result<std::shared_ptr<const Tokenizer>> (*make)(Vocabulary vocabulary);
};

constexpr Family kFamilies[] = {
    {"gpt2", "byte-level BPE", ByteLevelBpe::make},
    {"llama", "SentencePiece BPE", SentencePieceBpe::make},
    {"t5", "SentencePiece unigram", Unigram::make},
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::make(Vocabulary vocabulary) {
  auto status = check_vocabulary(vocabulary);
  if (!status) return tl::unexpected(std::move(status).error());
  for (const Family& family : kFamilies) {
    if (vocabulary.model == family.model) return family.make(std::move(vocabulary));
  }
  std::string known;
  for (const Family& family : kFamilies) {
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", family.model, family.what);
  }
  return fail(fmt::format("tokenizer.ggml.model is {}, which Coppice does not know; it knows {}",
                          show_token(vocabulary.model), known));
}

std::vector<Token> Tokenizer::encode(std::span<const TextPart> parts) const {
  std::string joined;
  std::string_view text;
  if (parts.size() == 1) {
    text = parts[0].text;
  } else {
    for (const TextPart& part : parts) joined += part.text;
    text = joined;
  }
  std::vector<Token> out;
  out.reserve(text.size() / 4 + 1);
  std::size_t plain = 0;  // where the text begins that has no tokens yet
  std::size_t at = 0, part_end = 0;
  for (const TextPart& part : parts) {
    part_end += part.text.size();
    while (at < part_end) {
      const SpecialTokens::Match match = special_.find(text, at, part_end, part.parse_special);
      if (match.token == kNoToken) break;
      if (match.begin > plain) encode_plain(text.substr(plain, match.begin - plain), out);
      out.push_back(match.token);
      plain = at = match.end;
    }
    at = std::max(at, part_end);
  }
  if (plain < text.size()) encode_plain(text.substr(plain), out);
  return out;
}

std::vector<Token> Tokenizer::encode(std::string_view text, bool parse_special) const {
  const TextPart part{text, parse_special};
  return encode({&part, 1});
}

std::string Tokenizer::decode(std::span<const Token> tokens, bool show_special) const {
  std::string text;
  TokenBytes bytes(*this, show_special);
  for (const Token token : tokens) text += bytes.next(token);
  return text;
}

bool Tokenizer::ends_text(Token token) const {
  return std::find(vocabulary_.end_tokens.begin(), vocabulary_.end_tokens.end(), token) !=
         vocabulary_.end_tokens.end();
}

bool Tokenizer::is_control(Token token) const {
  return token >= 0 && token < size() &&
         vocabulary_.kinds[static_cast<std::size_t>(token)] == TokenKind::control;
}

std::string_view TokenBytes::next(Token token) {
  std::string_view bytes = tokenizer_.bytes(token, show_special_);
  if (tokenizer_.is_control(token)) {
    begins_ = true;
  } else if (!bytes.empty()) {
    if (begins_ && tokenizer_.adds_space() && bytes[0] == ' ') bytes.remove_prefix(1);
    begins_ = false;
  }
  return bytes;
}

}  // namespace coppice::core
