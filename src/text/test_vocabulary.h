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

inline void add_piece(Vocabulary& vocabulary, std::string spelling, float score,
                      TokenKind kind = TokenKind::normal) {
  vocabulary.tokens.push_back(std::move(spelling));
  vocabulary.kinds.push_back(kind);
  vocabulary.scores.push_back(score);
}

// SentencePiece: <unk>, <s>, </s>, the 256 bytes, the letters of "hello▁" and, with `words`, some of its
// parts.
inline Vocabulary small_pieces(bool words = true) {
  Vocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.add_space_prefix = true;
  add_piece(vocabulary, "<unk>", 0, TokenKind::unknown);
  add_piece(vocabulary, "<s>", 0, TokenKind::control);
  add_piece(vocabulary, "</s>", 0, TokenKind::control);
  vocabulary.unknown = 0;
  vocabulary.bos = 1;
  vocabulary.eos = 2;
  vocabulary.end_tokens = {2};
  for (int byte = 0; byte < 256; ++byte) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    add_piece(vocabulary, std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">", 0,
              TokenKind::byte);
  }
  for (const char* letter : {"h", "e", "l", "o", "\u2581"}) add_piece(vocabulary, letter, -100);
  if (!words) return vocabulary;
  float score = 0;
  for (const char* word : {"ll", "he", "\u2581he", "\u2581hell", "\u2581hello", "el", "lo", "\u2581hel"})
    add_piece(vocabulary, word, score -= 1);
  return vocabulary;
}

// What SentencePiece's BPE makes of `text`, word for word: the best pair of all, again and again.
inline std::vector<Token> join_by_definition(const Vocabulary& vocabulary, const std::string& text) {
  const auto piece = [&](const std::string& spelling) -> std::size_t {
    for (std::size_t i = 259; i < vocabulary.tokens.size(); ++i) {
      if (vocabulary.tokens[i] == spelling) return i;
    }
    return 0;
  };
  std::vector<std::string> parts;
  for (const char c : text) parts.push_back(c == ' ' ? "\u2581" : std::string(1, c));
  for (;;) {
    std::size_t best = parts.size();
    float best_score = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const std::size_t joined = piece(parts[i] + parts[i + 1]);
      if (joined == 0 || (best < parts.size() && vocabulary.scores[joined] <= best_score)) continue;
      best = i;
      best_score = vocabulary.scores[joined];
    }
    if (best == parts.size()) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  std::vector<Token> tokens;
  for (const std::string& part : parts) {
    const std::size_t found = piece(part);
    if (found != 0) {
      tokens.push_back(static_cast<Token>(found));
      continue;
    }
    for (const char c : part) tokens.push_back(3 + static_cast<unsigned char>(c));
  }
  return tokens;
}

inline Token id_of(const Vocabulary& vocabulary, const std::string& spelling) {
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
    if (vocabulary.tokens[i] == spelling) return static_cast<Token>(i);
  }
  return kNoToken;
}

}  // namespace coppice::core::testing
