#include "text/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "text/unicode.h"

namespace coppice::core {
namespace {

// The best way to cut the text up to some byte: its last piece, and the sum of its scores.
struct Best {
  std::uint32_t bytes = 0;  // of the last piece; 0: no way is known
  Token token = kNoToken;   // the last piece; kNoToken: a character without one
  float score = 0;
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Unigram::make(Vocabulary vocabulary) {
  std::shared_ptr<Unigram> tokenizer(new Unigram(std::move(vocabulary)));
  COPPICE_TRY_STATUS(tokenizer->read_vocabulary());
  COPPICE_TRY_STATUS(tokenizer->read_scores());
  return std::shared_ptr<const Tokenizer>(std::move(tokenizer));
}

Status Unigram::read_scores() {
  std::vector<std::pair<std::string_view, Token>> pieces;
  // As SentencePiece has it: the largest score is at least the smallest positive number.
  least_ = std::numeric_limits<float>::max();
  most_ = std::numeric_limits<float>::min();
  for (Token token = 0; token < size(); ++token) {
    const float score = vocabulary_.scores[static_cast<std::size_t>(token)];
    if (!std::isfinite(score)) {
      return fail(
          fmt::format("tokenizer.ggml.scores gives token {} the score {}; a unigram model's scores are "
                      "finite log-probabilities",
                      token, score));
    }
    const bool normal = is(token, TokenKind::normal);
    if (normal) {
      least_ = std::min(least_, score);
      most_ = std::max(most_, score);
    }
    if ((normal || is(token, TokenKind::user_defined)) && !spelling(token).empty())
      pieces.emplace_back(spelling(token), token);
  }
  trie_ = PieceTrie(std::move(pieces));
  return {};
}

// A user-defined piece has so high a score that it is taken wherever others would cost anything.
float Unigram::score_of(Token token, std::size_t bytes) const {
  if (is(token, TokenKind::user_defined)) return static_cast<float>(bytes) * most_ - 0.1f;
  return vocabulary_.scores[static_cast<std::size_t>(token)];
}

// Viterbi's algorithm, from left to right. Sums are kept in f32, and of equal ones the first found stays, as
// in SentencePiece, so that ties fall alike.
void Unigram::encode_plain(std::string_view text, std::vector<Token>& out) const {
  constexpr float kUnknownPenalty = 10;
  const std::string normalized = normalize(text);
  const std::string_view all = normalized;
  std::vector<Best> best(all.size() + 1);  // [i]: of the first i bytes
  const auto offer = [&](std::size_t begin, std::size_t end, Token token, float score) {
    const float sum = score + best[begin].score;
    Best& there = best[end];
    if (there.bytes != 0 && sum <= there.score) return;
    there = {static_cast<std::uint32_t>(end - begin), token, sum};
  };
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t next = begin + character_at(all, begin).bytes;
    bool has_character = false;
    PieceTrie::Node node = PieceTrie::kRoot;
    for (std::size_t at = begin; at < all.size();) {
      node = trie_.child(node, static_cast<unsigned char>(all[at]));
      if (node == PieceTrie::kNone) break;
      ++at;
      const Token token = trie_.token(node);
      if (token == kNoToken) continue;
      offer(begin, at, token, score_of(token, at - begin));
      has_character = has_character || at == next;
    }
    if (!has_character) offer(begin, next, kNoToken, least_ - kUnknownPenalty);
    begin = next;
  }
  std::vector<std::uint32_t> pieces;  // their bytes, from the end
  for (std::size_t end = all.size(); end > 0; end -= best[end].bytes) pieces.push_back(best[end].bytes);
  Output output{out};
  std::size_t end = 0;
  for (auto bytes = pieces.rbegin(); bytes != pieces.rend(); ++bytes) {
    const std::size_t begin = end;
    end += *bytes;
    const Token token = best[end].token;
    if (token == kNoToken) {
      add_unknown(all.substr(begin, end - begin), output);
    } else {
      output.add(token);
    }
  }
}

}  // namespace coppice::core
