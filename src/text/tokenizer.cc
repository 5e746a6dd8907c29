#include "text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "text/byte_level_bpe.h"
#include "text/show_token.h"

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

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::make(Vocabulary vocabulary) {
  auto status = check_vocabulary(vocabulary);
  if (!status) return tl::unexpected(std::move(status).error());
  if (vocabulary.model == "gpt2") return ByteLevelBpe::make(std::move(vocabulary));
  return fail(
      fmt::format("tokenizer.ggml.model is {}, which Coppice does not know; it knows gpt2 (byte-level BPE)",
                  show_token(vocabulary.model)));
}

std::string Tokenizer::decode(std::span<const Token> tokens, bool show_special) const {
  std::string text;
  for (const Token token : tokens) text += bytes(token, show_special);
  return text;
}

bool Tokenizer::ends_text(Token token) const {
  return std::find(vocabulary_.end_tokens.begin(), vocabulary_.end_tokens.end(), token) !=
         vocabulary_.end_tokens.end();
}

}  // namespace coppice::core
