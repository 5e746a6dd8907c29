// A small byte-level vocabulary for tests: all 256 bytes, a few merges, some special tokens.
#pragma once

#include <string>
#include <vector>

#include "text/byte_alphabet.h"
#include "text/vocabulary.h"

namespace coppice::core::testing {

// Ids: 0 to 255 the bytes; then one token for each merge; then the special ones.
inline Vocabulary small_vocabulary(std::string pre = "gpt-2") {
  Vocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = std::move(pre);
  const auto add = [&](std::string spelling, TokenKind kind) {
    vocabulary.tokens.push_back(std::move(spelling));
    vocabulary.kinds.push_back(kind);
    return static_cast<Token>(vocabulary.tokens.size() - 1);
  };
  for (int byte = 0; byte < 256; ++byte) {
    add(spelling_of_bytes(std::string(1, static_cast<char>(byte))), TokenKind::normal);
  }
  const std::vector<std::pair<std::string, std::string>> merges = {
      {"h", "e"}, {"l", "l"}, {"he", "ll"}, {"hell", "o"}, {" ", "w"}, {"1", "2"}, {"\n", "\n"}, {"o", "w"}};
  for (const auto& [left, right] : merges) {
    add(spelling_of_bytes(left + right), TokenKind::normal);
    vocabulary.merges.push_back(spelling_of_bytes(left) + " " + spelling_of_bytes(right));
  }
  vocabulary.bos = add("<|im_start|>", TokenKind::control);
  vocabulary.eos = add("<|im_end|>", TokenKind::control);
  vocabulary.end_tokens = {vocabulary.eos};
  add("<tool call>", TokenKind::user_defined);
  add("<tool", TokenKind::user_defined);
  return vocabulary;
}

inline Token id_of(const Vocabulary& vocabulary, const std::string& spelling) {
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (vocabulary.tokens[i] == spelling) return static_cast<Token>(i);
  }
  return kNoToken;
}

}  // namespace coppice::core::testing
