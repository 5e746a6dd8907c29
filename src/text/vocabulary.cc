#include "text/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "base/check.h"
#include "text/show_token.h"
#include "text/split_rules.h"

namespace coppice::core {
namespace {

// Control tokens that end a text or a turn in the families there are, whatever the end-of-text key says:
// models are converted with one of them in the key and produce another.
constexpr std::array<std::string_view, 12> kEndSpellings = {
    "<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|end|>",
    "<end_of_turn>", "</s>",       "<|eot|>",    "<|return|>", "<EOT>",           "<|endofturn|>",
};

bool is_sentencepiece(const Vocabulary& vocabulary) {
  return vocabulary.model == "llama" || vocabulary.model == "t5";
}

struct Reader {
  const gguf::File& file;

  tl::unexpected<Error> wrong(std::string_view key, std::string_view what) const {
    return fail(fmt::format("{}: {} {}", file.path(), key, what));
  }

  Result<std::vector<std::string>> texts(std::string_view key) const {
    const gguf::Value* value = file.find(key);
    if (!value) return wrong(key, "is missing; it must be an array of strings");
    if (!value->is_array || value->type != gguf::Type::string) {
      return wrong(key, "must be an array of strings");
    }
    return std::vector<std::string>(value->strings.begin(), value->strings.end());
  }

  Result<std::vector<TokenKind>> kinds(std::size_t tokens) const {
    constexpr std::string_view kKey = "tokenizer.ggml.token_type";
    const gguf::Value* value = file.find(kKey);
    if (!value) return std::vector<TokenKind>(tokens, TokenKind::normal);  // files before there were types
    if (!value->is_array || (value->type != gguf::Type::i32 && value->type != gguf::Type::u32)) {
      return wrong(kKey, "must be an array of 32-bit integers");
    }
    if (value->count != tokens) {
      return wrong(kKey, fmt::format("has {} entries; tokenizer.ggml.tokens has {}", value->count, tokens));
    }
    std::vector<TokenKind> kinds(tokens);
    for (std::size_t i = 0; i < tokens; ++i) {
      const std::int64_t kind = value->integer(i);
      if (kind < 1 || kind > 6) {
        return wrong(kKey, fmt::format("gives token {} the type {}; types are 1 to 6", i, kind));
      }
      kinds[i] = static_cast<TokenKind>(kind);
    }
    return kinds;
  }

  Result<std::vector<float>> scores(std::size_t tokens) const {
    constexpr std::string_view kKey = "tokenizer.ggml.scores";
    const gguf::Value* value = file.find(kKey);
    if (!value) return wrong(kKey, "is missing; it must be an array of 32-bit floats, one for each token");
    if (!value->is_array || value->type != gguf::Type::f32)
      return wrong(kKey, "must be an array of 32-bit floats");
    if (value->count != tokens)
      return wrong(kKey, fmt::format("has {} entries; tokenizer.ggml.tokens has {}", value->count, tokens));
    std::vector<float> scores(tokens);
    std::memcpy(scores.data(), value->data, tokens * sizeof(float));
    for (std::size_t i = 0; i < tokens; ++i) {
      if (std::isnan(scores[i])) return wrong(kKey, fmt::format("gives token {} no number (NaN)", i));
    }
    return scores;
  }

  // Empty where the file has no such key.
  Result<std::string> bytes(std::string_view key) const {
    const gguf::Value* value = file.find(key);
    if (!value) return std::string();
    if (!value->is_array || (value->type != gguf::Type::u8 && value->type != gguf::Type::i8))
      return wrong(key, "must be an array of bytes");
    return std::string(reinterpret_cast<const char*>(value->data), value->count);
  }

  // Where the file does not say, families whose converters left the key out say it.
  Result<bool> adds_begin(const Vocabulary& vocabulary) const {
    constexpr std::string_view kKey = "tokenizer.ggml.add_bos_token";
    const bool has_begin = vocabulary.bos != kNoToken;
    if (!file.find(kKey)) {
      const SplitRule* rule = vocabulary.model == "gpt2" ? find_split_rule(vocabulary.pre) : nullptr;
      return has_begin && (vocabulary.model == "llama" || (rule != nullptr && rule->adds_begin));
    }
    const bool adds = file.integer_or(kKey, 0) != 0;
    if (adds && !has_begin) return wrong(kKey, "is true, but there is no tokenizer.ggml.bos_token_id to add");
    return adds;
  }

  // kNoToken where the file has no such key.
  Result<Token> id(std::string_view key, std::size_t tokens) const {
    if (!file.find(key)) return kNoToken;
    COPPICE_TRY(const std::int64_t value, file.integer(key));
    if (value < 0 || static_cast<std::uint64_t>(value) >= tokens) {
      return wrong(key, fmt::format("is {}, but the vocabulary has {} tokens", value, tokens));
    }
    return static_cast<Token>(value);
  }
};

Status check_merges(const Reader& reader, const std::vector<std::string>& merges) {
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const std::string& merge = merges[i];
    const std::size_t space = merge.find(' ');
    const bool two_parts = space != std::string::npos && space > 0 && space + 1 < merge.size();
    if (!two_parts || merge.find(' ', space + 1) != std::string::npos) {
      return reader.wrong(
          "tokenizer.ggml.merges",
          fmt::format("entry {} is {}; it must be two tokens with one space between", i, show_token(merge)));
    }
  }
  return {};
}

Status read_ids(const Reader& reader, Vocabulary& vocabulary) {
  const std::size_t size = vocabulary.tokens.size();
  COPPICE_TRY(vocabulary.bos, reader.id("tokenizer.ggml.bos_token_id", size));
  COPPICE_TRY(vocabulary.eos, reader.id("tokenizer.ggml.eos_token_id", size));
  COPPICE_TRY(vocabulary.unknown, reader.id("tokenizer.ggml.unknown_token_id", size));
  COPPICE_TRY(vocabulary.padding, reader.id("tokenizer.ggml.padding_token_id", size));
  // Older files have other names for them.
  for (const auto& [token, name, older] : {std::tuple(&vocabulary.infill.before, "fim_pre", "prefix"),
                                           std::tuple(&vocabulary.infill.behind, "fim_suf", "suffix"),
                                           std::tuple(&vocabulary.infill.middle, "fim_mid", "middle")}) {
    COPPICE_TRY(*token, reader.id(fmt::format("tokenizer.ggml.{}_token_id", name), size));
    if (*token != kNoToken) continue;
    COPPICE_TRY(*token, reader.id(fmt::format("tokenizer.ggml.{}_token_id", older), size));
  }
  COPPICE_TRY(const Token eot, reader.id("tokenizer.ggml.eot_token_id", size));
  COPPICE_TRY(const Token eom, reader.id("tokenizer.ggml.eom_token_id", size));
  std::vector<Token>& ends = vocabulary.end_tokens;
  for (const Token token : {vocabulary.eos, eot, eom}) {
    if (token != kNoToken) ends.push_back(token);
  }
  for (std::size_t i = 0; i < size; ++i) {
    if (vocabulary.kinds[i] != TokenKind::control) continue;
    const bool ends_text =
        std::find(kEndSpellings.begin(), kEndSpellings.end(), vocabulary.tokens[i]) != kEndSpellings.end();
    if (ends_text) ends.push_back(static_cast<Token>(i));
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  return {};
}

// Of a file without tokens.
Status read_hash(const gguf::File& file, Vocabulary& vocabulary) {
  constexpr std::string_view kKey = "coppice.vocabulary_hash";
  const gguf::Value* value = file.find(kKey);
  if (value == nullptr || file.find("tokenizer.ggml.tokens") != nullptr) return {};
  if (value->is_array || value->type != gguf::Type::u64) return Reader{file}.wrong(kKey, "must be a u64");
  std::uint64_t hash = 0;
  std::memcpy(&hash, value->data, sizeof(hash));
  vocabulary.hash = hash;
  return {};
}

}  // namespace

Result<Vocabulary> Vocabulary::read(const gguf::File& file) {
  const Reader reader{file};
  Vocabulary vocabulary;
  COPPICE_TRY_STATUS(read_hash(file, vocabulary));
  if (vocabulary.hash) return vocabulary;
  COPPICE_TRY(vocabulary.model, file.text("tokenizer.ggml.model"));
  vocabulary.pre = file.text_or("tokenizer.ggml.pre", "");
  COPPICE_TRY(vocabulary.tokens, reader.texts("tokenizer.ggml.tokens"));
  const std::size_t size = vocabulary.tokens.size();
  if (size == 0)
    return reader.wrong("tokenizer.ggml.tokens", "is empty; a vocabulary has at least one token");
  if (size > static_cast<std::size_t>(std::numeric_limits<Token>::max())) {
    return reader.wrong("tokenizer.ggml.tokens", fmt::format("has {} entries; ids are 32-bit", size));
  }
  COPPICE_TRY(vocabulary.kinds, reader.kinds(size));
  if (vocabulary.model == "gpt2") {
    COPPICE_TRY(vocabulary.merges, reader.texts("tokenizer.ggml.merges"));
    COPPICE_TRY_STATUS(check_merges(reader, vocabulary.merges));
  }
  if (is_sentencepiece(vocabulary)) {
    COPPICE_TRY(vocabulary.scores, reader.scores(size));
    COPPICE_TRY(vocabulary.character_map, reader.bytes("tokenizer.ggml.precompiled_charsmap"));
    vocabulary.add_space_prefix = file.integer_or("tokenizer.ggml.add_space_prefix", 1) != 0;
    vocabulary.remove_extra_whitespaces = file.integer_or("tokenizer.ggml.remove_extra_whitespaces", 0) != 0;
  }
  COPPICE_TRY_STATUS(read_ids(reader, vocabulary));
  vocabulary.chat_template = file.text_or("tokenizer.chat_template", "");
  constexpr std::string_view kNamed = "tokenizer.chat_template.";
  for (const gguf::Key& key : file.keys()) {
    const bool is_text = key.value.type == gguf::Type::string && !key.value.is_array;
    if (is_text && key.name.starts_with(kNamed))
      vocabulary.named_templates.emplace_back(key.name.substr(kNamed.size()), key.value.strings.at(0));
  }
  COPPICE_TRY(vocabulary.add_bos, reader.adds_begin(vocabulary));
  return vocabulary;
}

}  // namespace coppice::core
