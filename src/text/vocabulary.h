// What a tokenizer is made of, as a GGUF file states it.
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gguf/file.h"

namespace coppice::core {

enum class TokenKind : std::int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

// Around a gap that the model is to fill; kNoToken where the file names none.
struct InfillTokens {
  Token before = kNoToken, behind = kNoToken, middle = kNoToken;
};

struct Vocabulary {
  std::string model;  // tokenizer.ggml.model: "gpt2" for byte-level BPE
  std::string pre;    // tokenizer.ggml.pre: the splitting rule, "smollm"; empty if there is none
  std::vector<std::string> tokens;  // as in the file (byte-level BPE: in the GPT-2 byte alphabet)
  std::vector<TokenKind> kinds;     // the same length
  std::vector<std::string> merges;  // "left right"; a tokenizer drops them when it has read them
  // Of SentencePiece's models (llama, t5); no score is NaN.
  std::vector<float> scores;  // the same length; empty for the others
  std::string character_map;  // the bytes of precompiled_charsmap; empty if the file has none
  bool add_space_prefix = false;
  bool remove_extra_whitespaces = false;
  std::string chat_template;  // tokenizer.chat_template; empty if the file has none
  // tokenizer.chat_template.NAME: others for a purpose, "tool_use", "rag".
  std::vector<std::pair<std::string, std::string>> named_templates;
  Token bos = kNoToken, eos = kNoToken, unknown = kNoToken, padding = kNoToken;
  std::vector<Token> end_tokens;  // every token that ends a text: eos, eot, eom, and control tokens so named
  InfillTokens infill;
  bool add_bos = false;
  // A draft may state only the hash of its tokens (coppice.vocabulary_hash): then all of the above is empty.
  std::optional<std::uint64_t> hash;

  // Fails on what is missing or contradicts itself, naming the key.
  static Result<Vocabulary> read(const gguf::File& file);
};

// FNV-1a over the spellings of tokens (docs/file-formats.md), so that a file is used only with the vocabulary
// it was made for.
std::uint64_t vocabulary_hash(std::span<const std::string> tokens);

// A draft guesses token ids, so its vocabulary must be the target's, token by token. Compares content, or
// hashes where the draft has no more; the error says where they first differ.
Status same_vocabulary(const Vocabulary& target, const Vocabulary& draft);

}  // namespace coppice::core
