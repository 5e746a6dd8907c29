// A text is done word by word, which gives what doing it at once would: joining depends on nothing but the
// pieces that a pair may become, and none of them reaches across words.
#include "text/sentencepiece_bpe.h"

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "text/join_memo.h"
#include "text/unicode.h"
#include "text/word_memo.h"

namespace coppice::core {
namespace {

constexpr Token kNotAsked = kNoToken - 1;
constexpr std::size_t kShortWord = 24;  // characters; up to here scanning all pairs beats a heap
constexpr std::uint32_t kNowhere = 0xFFFFFFFFu;

unsigned char byte_at(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text[at]); }

// Of UTF-8, where such a byte is never the first of a character; elsewhere it may be one by itself.
bool continues(unsigned char byte) { return (byte & 0xC0) == 0x80; }

}  // namespace

// How a piece that must not be used ("unused") falls apart again: as it was last found to be joined.
struct SentencePieceBpe::Split {
  Token left, right;
  std::uint32_t left_bytes;
};

// Of a symbol in a long word.
struct SentencePieceBpe::Neighbours {
  std::uint32_t previous, next;
};

// Two symbols that may be joined: the best on top of the heap, the leftmost first among equals.
struct SentencePieceBpe::Candidate {
  float score;
  std::uint32_t left, right, end;
  Token token;
  bool operator<(const Candidate& other) const {
    return score < other.score || (score == other.score && left > other.left);
  }
};

struct SentencePieceBpe::Work {
  Output out;
  std::vector<Symbol> symbols{};
  std::unordered_map<Token, Split> splits{};
  WordMemo memo{0};
  JoinMemo joins{0};
  std::vector<Neighbours> list{};  // of join_long
  std::vector<Candidate> heap{};
};

Result<std::shared_ptr<const Tokenizer>> SentencePieceBpe::make(Vocabulary vocabulary) {
  std::shared_ptr<SentencePieceBpe> tokenizer(new SentencePieceBpe(std::move(vocabulary)));
  COPPICE_TRY_STATUS(tokenizer->read_vocabulary());
  tokenizer->find_crossings();
  tokenizer->whole_ = std::vector<std::atomic<Token>>(tokenizer->vocabulary_.tokens.size());
  for (std::atomic<Token>& whole : tokenizer->whole_) whole.store(kNotAsked, std::memory_order_relaxed);
  return std::shared_ptr<const Tokenizer>(std::move(tokenizer));
}

void SentencePieceBpe::find_crossings() {
  for (Token token = 0; token < size(); ++token) {
    const std::string_view text = spelling(token);
    for (std::size_t at = 1; at < text.size(); ++at)
      if (!continues(byte_at(text, at))) crosses_[byte_at(text, at - 1)].set(byte_at(text, at));
    for (std::size_t at = text.find(kPieceSpace, 1); at != std::string_view::npos;
         at = text.find(kPieceSpace, at + 1)) {
      if (!text.substr(0, at).ends_with(kPieceSpace)) crosses_to_space_[byte_at(text, at - 1)] = true;
    }
  }
}

void SentencePieceBpe::encode_plain(std::string_view text, std::vector<Token>& out) const {
  const std::string normalized = normalize(text);
  const std::string_view all = normalized;
  Work work{{out}};
  work.memo = WordMemo(all.size());
  work.joins = JoinMemo(all.size());
  for (std::size_t at = 0; at < all.size();) {
    const SpecialTokens::Match match = user_defined_.find(all, at, all.size(), false);
    const std::size_t end = match.token == kNoToken ? all.size() : match.begin;
    encode_words(all.substr(at, end - at), work);
    if (match.token == kNoToken) break;
    work.out.add(match.token);
    at = match.end;
  }
}

void SentencePieceBpe::encode_words(std::string_view text, Work& work) const {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = word_end(text, at);
    const std::string_view word = text.substr(at, end - at);
    if (work.memo.recall(word, work.out.tokens)) {
      work.out.after_unknown = false;
    } else {
      encode_and_remember(word, work);
    }
    at = end;
  }
}

// What becomes of a word with an unknown token depends on what is before it, so that it is not remembered.
void SentencePieceBpe::encode_and_remember(std::string_view word, Work& work) const {
  const std::vector<Token>& tokens = work.out.tokens;
  const std::size_t begin = tokens.size();
  const bool after_unknown = work.out.after_unknown;
  if (const Token whole = whole_word(word); whole >= 0) {
    work.out.add(whole);
  } else {
    encode_word(word, work);
  }
  const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(begin);
  if (after_unknown || std::find(first, tokens.end(), vocabulary_.unknown) != tokens.end()) return;
  work.memo.remember(word, begin, tokens);
}

std::size_t SentencePieceBpe::word_end(std::string_view text, std::size_t begin) const {
  for (std::size_t at = begin + 1; at < text.size(); ++at) {
    const unsigned char before = byte_at(text, at - 1), byte = byte_at(text, at);
    if (continues(byte)) continue;
    if (!crosses_[before][byte]) return at;
    if (crosses_to_space_[before] || !text.substr(at).starts_with(kPieceSpace)) continue;
    if (!text.substr(0, at).ends_with(kPieceSpace)) return at;
  }
  return text.size();
}

// The piece that `word` becomes; kNoToken if it becomes several, or if no piece is spelled like it.
Token SentencePieceBpe::whole_word(std::string_view word) const {
  const Token spelled = piece(word);
  if (spelled < 0) return kNoToken;
  std::atomic<Token>& whole = whole_[static_cast<std::size_t>(spelled)];
  Token known = whole.load(std::memory_order_relaxed);
  if (known != kNotAsked) return known;
  std::vector<Token> tokens;
  Work work{{tokens}};
  encode_word(word, work);
  known = tokens.size() == 1 && tokens[0] == spelled ? spelled : kNoToken;
  whole.store(known, std::memory_order_relaxed);
  return known;
}

void SentencePieceBpe::encode_word(std::string_view word, Work& work) const {
  work.symbols.clear();
  work.splits.clear();
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t end = at + character_at(word, at).bytes;
    const std::string_view character = word.substr(at, end - at);
    const Token token = work.joins.of_character(character, [&] { return piece(character); });
    work.symbols.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(end), token});
    at = end;
  }
  if (work.symbols.size() <= kShortWord) {
    join_short(word, work);
  } else {
    join_long(word, work);
  }
  for (const Symbol& symbol : work.symbols)
    emit(word.substr(symbol.begin, symbol.end - symbol.begin), symbol.token, work);
}

// The piece that two neighbours become together, or -1.
Token SentencePieceBpe::join(std::string_view word, const Symbol& left, const Symbol& right,
                             Work& work) const {
  const auto ask = [&] { return piece(word.substr(left.begin, right.end - left.begin)); };
  const bool pieces = left.token >= 0 && right.token >= 0;
  const Token token = pieces ? work.joins.of_pair(left.token, right.token, ask) : ask();
  if (token < 0 || !is(token, TokenKind::unused)) return token;
  work.splits.insert_or_assign(token, Split{left.token, right.token, left.end - left.begin});
  return token;
}

void SentencePieceBpe::join_short(std::string_view word, Work& work) const {
  std::vector<Symbol>& symbols = work.symbols;
  std::array<Token, kShortWord> joined{};  // [i]: what symbols i and i + 1 become
  std::array<float, kShortWord> scores{};
  std::size_t size = symbols.size();
  const auto look_up = [&](std::size_t i) {
    joined[i] = join(word, symbols[i], symbols[i + 1], work);
    if (joined[i] >= 0) scores[i] = vocabulary_.scores[static_cast<std::size_t>(joined[i])];
  };
  for (std::size_t i = 0; i + 1 < size; ++i) look_up(i);
  while (size > 1) {
    std::size_t best = size;
    for (std::size_t i = 0; i + 1 < size; ++i) {
      if (joined[i] >= 0 && (best == size || scores[i] > scores[best])) best = i;
    }
    if (best == size) break;
    symbols[best].end = symbols[best + 1].end;
    symbols[best].token = joined[best];
    --size;
    for (std::size_t i = best + 1; i < size; ++i) {
      symbols[i] = symbols[i + 1];
      joined[i] = joined[i + 1];
      scores[i] = scores[i + 1];
    }
    if (best > 0) look_up(best - 1);
    if (best + 1 < size) look_up(best);
  }
  symbols.resize(size);
}

// A list of symbols and a heap of candidates; a candidate whose symbols have changed since is skipped when it
// comes up.
void SentencePieceBpe::join_long(std::string_view word, Work& work) const {
  std::vector<Symbol>& symbols = work.symbols;
  std::vector<Neighbours>& list = work.list;
  std::vector<Candidate>& heap = work.heap;
  const auto size = static_cast<std::uint32_t>(symbols.size());
  list.resize(size);
  heap.clear();
  for (std::uint32_t i = 0; i < size; ++i)
    list[i] = {i > 0 ? i - 1 : kNowhere, i + 1 < size ? i + 1 : kNowhere};
  const auto consider = [&](std::uint32_t left) {
    if (left == kNowhere || list[left].next == kNowhere) return;
    const std::uint32_t right = list[left].next;
    const Token token = join(word, symbols[left], symbols[right], work);
    if (token < 0) return;
    const float score = vocabulary_.scores[static_cast<std::size_t>(token)];
    heap.push_back({score, left, right, symbols[right].end, token});
    std::push_heap(heap.begin(), heap.end());
  };
  for (std::uint32_t i = 0; i < size; ++i) consider(i);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Candidate top = heap.back();
    heap.pop_back();
    // A symbol that was joined to the one before it is empty.
    Symbol &left = symbols[top.left], &right = symbols[top.right];
    const bool current = left.begin < left.end && list[top.left].next == top.right && right.end == top.end;
    if (!current || right.begin == right.end) continue;
    left.end = right.end;
    left.token = top.token;
    right.begin = right.end;
    list[top.left].next = list[top.right].next;
    if (list[top.left].next != kNowhere) list[list[top.left].next].previous = top.left;
    consider(list[top.left].previous);
    consider(top.left);
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.begin == symbol.end; });
}

void SentencePieceBpe::emit(std::string_view text, Token token, Work& work) const {
  if (token < 0) return add_unknown(text, work.out);
  if (is(token, TokenKind::unused)) {
    if (const auto split = work.splits.find(token); split != work.splits.end()) {
      const Split parts = split->second;
      emit(text.substr(0, parts.left_bytes), parts.left, work);
      emit(text.substr(parts.left_bytes), parts.right, work);
      return;
    }
  }
  work.out.add(token);
}

}  // namespace coppice::core
