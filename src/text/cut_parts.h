// What cuts are made of (split_cuts.h): runs of classes of characters, contractions, whitespace, and the
// forms of expression that several families share. The cut of a new rule is put together from these above its
// row in split_rules.cc, or is one of the templates with other numbers and classes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "text/unicode.h"

namespace coppice::core::cuts {

inline constexpr CharSet kRest = kEverything & ~(kSpaces | kLetters | kNumbers);

// The end of the run of characters of these classes that starts at `at`.
inline std::size_t run_end(std::string_view text, std::size_t at, CharSet set) {
  while (at < text.size()) {
    const Character character = character_at(text, at);
    if (!has(set, character.kind)) break;
    at += character.bytes;
  }
  return at;
}

inline bool is_newline(char byte) { return byte == '\r' || byte == '\n'; }

// 's|'t|'re|'ve|'m|'ll|'d at text[at], which is an apostrophe; 0 if none of them is there.
inline std::size_t contraction_end(std::string_view text, std::size_t at) {
  const std::string_view next = text.substr(at + 1, 2);
  if (next.empty()) return 0;
  if (next[0] == 's' || next[0] == 't' || next[0] == 'm' || next[0] == 'd') return at + 2;
  if (next == "re" || next == "ve" || next == "ll") return at + 3;
  return 0;
}

// The same in any case: (?i:'s|'t|'re|'ve|'m|'ll|'d). The long s (U+017F) is an s in upper or lower case.
inline std::size_t contraction_end_any_case(std::string_view text, std::size_t at) {
  if (at >= text.size() || text[at] != '\'') return 0;
  const auto lower = [&](std::size_t i) {
    return i < text.size() ? static_cast<char>(text[i] | 0x20) : '\0';
  };
  const char first = lower(at + 1), second = lower(at + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  if ((first == 'r' || first == 'v') && second == 'e') return at + 3;
  if (first == 'l' && second == 'l') return at + 3;
  if (text.substr(at + 1, 2) == "\xC5\xBF") return at + 3;
  return 0;
}

// \s+(?!\S)|\s+ : whitespace, but for its last character if a word follows, which may want it.
inline std::size_t space_end(std::string_view text, std::size_t begin) {
  std::size_t last = begin, end = begin;
  while (end < text.size()) {
    const Character character = character_at(text, end);
    if (character.kind != CharClass::space) return last > begin ? last : end;
    last = end;
    end += character.bytes;
  }
  return end;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ : whitespace up to its last line break, or else as above.
inline std::size_t line_or_space_end(std::string_view text, std::size_t begin) {
  const std::size_t end = run_end(text, begin, kSpaces);
  for (std::size_t at = end; at > begin; --at) {
    if (is_newline(text[at - 1])) return at;
  }
  return space_end(text, begin);
}

// The end of up to `most` numbers.
inline std::size_t numbers_end(std::string_view text, std::size_t at, int most) {
  for (; most > 0 && at < text.size(); --most) {
    const Character character = character_at(text, at);
    if (character.kind != CharClass::number) break;
    at += character.bytes;
  }
  return at;
}

// [^\r\n\p{L}\p{N}]? : may this character stand before the letters of a word?
inline bool may_lead(const Character& character) {
  const bool newline = character.code == '\r' || character.code == '\n';
  return !newline && !has(kLetters | kNumbers, character.kind);
}

// ` ?[rest]+[\r\n]*` (`slashes`: [\r\n/]*); 0 if it is not there.
inline std::size_t rest_end(std::string_view text, std::size_t begin, CharSet rest, bool slashes) {
  std::size_t at = text[begin] == ' ' ? begin + 1 : begin;
  const std::size_t end = run_end(text, at, rest);
  if (end == at) return 0;
  for (at = end; at < text.size() && (is_newline(text[at]) || (slashes && text[at] == '/'));) ++at;
  return at;
}

// (?i:'s|...)|[^\r\n\p{L}\p{N}]?[word]+|\p{N}{1,most}| ?[^\s\p{N}word]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
// where `word` is the letters, or letters and marks.
template <CharSet kWord, int kMostNumbers>
std::size_t word_end(std::string_view text, std::size_t begin) {
  if (const std::size_t end = contraction_end_any_case(text, begin)) return end;
  const Character first = character_at(text, begin);
  if (has(kWord, first.kind)) return run_end(text, begin + first.bytes, kWord);
  if (first.kind == CharClass::number) return numbers_end(text, begin, kMostNumbers);
  if (may_lead(first)) {
    const std::size_t second = begin + first.bytes, end = run_end(text, second, kWord);
    if (end > second) return end;
  }
  if (const std::size_t end = rest_end(text, begin, kRest & ~kWord, false)) return end;
  return line_or_space_end(text, begin);
}

// Pieces are matches of [lead]?[set]+ and what is between; `leads` and `in_set` are asked about a character.
template <class Leads, class InSet>
std::size_t led_run_end(std::string_view text, std::size_t begin, const Leads& leads, const InSet& in_set) {
  const auto run = [&](std::size_t at) {
    while (at < text.size()) {
      const Character character = character_at(text, at);
      if (!in_set(character)) break;
      at += character.bytes;
    }
    return at;
  };
  const auto match_end = [&](std::size_t at) -> std::size_t {
    const Character first = character_at(text, at);
    const std::size_t second = at + first.bytes;
    if (in_set(first)) return run(second);
    if (!leads(first)) return 0;
    const std::size_t end = run(second);
    return end > second ? end : 0;
  };
  if (const std::size_t end = match_end(begin)) return end;
  std::size_t at = begin + character_at(text, begin).bytes;
  for (; at < text.size(); at += character_at(text, at).bytes) {
    const Character character = character_at(text, at);
    if (in_set(character)) break;
    const std::size_t next = at + character.bytes;
    if (leads(character) && next < text.size() && in_set(character_at(text, next))) break;
  }
  return at;
}

// Pieces are matches of \s?[set]+ and what is between.
template <class InSet>
std::size_t spaced_run_end(std::string_view text, std::size_t begin, const InSet& in_set) {
  return led_run_end(
      text, begin, [](const Character& c) { return c.kind == CharClass::space; }, in_set);
}

// Pieces are runs of characters for which `in_set` says the same.
template <class InSet>
std::size_t same_run_end(std::string_view text, std::size_t begin, const InSet& in_set) {
  const Character first = character_at(text, begin);
  const bool wanted = in_set(first);
  std::size_t at = begin + first.bytes;
  while (at < text.size()) {
    const Character character = character_at(text, at);
    if (in_set(character) != wanted) break;
    at += character.bytes;
  }
  return at;
}

struct Range {
  char32_t first, last;
};

template <std::size_t kCount>
bool in_ranges(const Range (&ranges)[kCount], char32_t code) {
  const Range* behind = std::upper_bound(ranges, ranges + kCount, code,
                                         [](char32_t c, const Range& range) { return c < range.first; });
  return behind != ranges && code <= (behind - 1)->last;
}

}  // namespace coppice::core::cuts
