// The rules are published as regular expressions; here each is a small matcher, because backtracking engines
// are slow on long runs and disagree about Unicode. An expression's alternatives are tried in order at each
// position; since letters, numbers, whitespace and the rest do not overlap, a look at the next one or two
// characters decides which one it is. What no alternative matches is a piece of its own.
#include "text/split_cuts.h"

#include <algorithm>

#include "text/cut_parts.h"

namespace coppice::core::cuts {
namespace {

// The letters that DeepSeek LLM's rule names one by one: nearly those that have a case.
constexpr Range kCasedLetters[] = {
    {0x41, 0x5A},       {0x61, 0x7A},       {0xB5, 0xB5},       {0xC0, 0xD6},       {0xD8, 0xF6},
    {0xF8, 0x1BA},      {0x1BC, 0x1BF},     {0x1C4, 0x293},     {0x295, 0x2AF},     {0x370, 0x373},
    {0x376, 0x377},     {0x37B, 0x37D},     {0x37F, 0x37F},     {0x386, 0x386},     {0x388, 0x38A},
    {0x38C, 0x38C},     {0x38E, 0x3A1},     {0x3A3, 0x3F5},     {0x3F7, 0x481},     {0x48A, 0x52F},
    {0x531, 0x556},     {0x10A0, 0x10C5},   {0x13A0, 0x13F5},   {0x13F8, 0x13FD},   {0x1C90, 0x1CBA},
    {0x1CBD, 0x1CBF},   {0x1D00, 0x1D2B},   {0x1D6B, 0x1D77},   {0x1D79, 0x1D9A},   {0x1E00, 0x1F15},
    {0x1F18, 0x1F1D},   {0x1F20, 0x1F45},   {0x1F48, 0x1F4D},   {0x1F50, 0x1F57},   {0x1F59, 0x1F59},
    {0x1F5B, 0x1F5B},   {0x1F5D, 0x1F5D},   {0x1F5F, 0x1F7D},   {0x1F80, 0x1FB4},   {0x1FB6, 0x1FBC},
    {0x1FBE, 0x1FBE},   {0x1FC2, 0x1FC4},   {0x1FC6, 0x1FCC},   {0x1FD0, 0x1FD3},   {0x1FD6, 0x1FDB},
    {0x1FE0, 0x1FEC},   {0x1FF2, 0x1FF4},   {0x1FF6, 0x1FFC},   {0x2102, 0x2102},   {0x2107, 0x2107},
    {0x210A, 0x2113},   {0x2115, 0x2115},   {0x2119, 0x211D},   {0x2124, 0x2124},   {0x2126, 0x2126},
    {0x2128, 0x2128},   {0x212A, 0x212D},   {0x212F, 0x2134},   {0x2139, 0x2139},   {0x213C, 0x213F},
    {0x2145, 0x2149},   {0x214E, 0x214E},   {0x2183, 0x2184},   {0x2C00, 0x2C7B},   {0x2C7E, 0x2CE4},
    {0x2CEB, 0x2CEE},   {0x2CF2, 0x2CF3},   {0xA640, 0xA66D},   {0xA680, 0xA69B},   {0xA722, 0xA76F},
    {0xA771, 0xA787},   {0xA78B, 0xA78E},   {0xAB70, 0xABBF},   {0xFB00, 0xFB06},   {0xFB13, 0xFB17},
    {0xFF21, 0xFF3A},   {0xFF41, 0xFF5A},   {0x10400, 0x1044F}, {0x104B0, 0x104D3}, {0x104D8, 0x104FB},
    {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943},
};

// [!-/:-~！-／：-～‘-‟　-。]
constexpr Range kAsciiAndWideMarks[] = {
    {0x21, 0x2F}, {0x3A, 0x7E}, {0x2018, 0x201F}, {0x3000, 0x3002}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E},
};

}  // namespace

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t gpt2(std::string_view text, std::size_t begin) {
  if (text[begin] == '\'') {
    if (const std::size_t end = contraction_end(text, begin)) return end;
  }
  Character first = character_at(text, begin);
  std::size_t at = begin;
  if (first.code == ' ' && begin + 1 < text.size()) {
    const Character second = character_at(text, begin + 1);
    if (second.kind != CharClass::space) {
      first = second;
      at = begin + 1;
    }
  }
  if (first.kind == CharClass::space) return space_end(text, begin);
  const CharSet set = has(kLetters, first.kind) ? kLetters : has(kNumbers, first.kind) ? kNumbers : kRest;
  return run_end(text, at + first.bytes, set);
}

std::size_t llama3(std::string_view text, std::size_t begin) { return word_end<kLetters, 3>(text, begin); }
std::size_t qwen2(std::string_view text, std::size_t begin) { return word_end<kLetters, 1>(text, begin); }
std::size_t qwen35(std::string_view text, std::size_t begin) {
  return word_end<kLetters | kMarks, 1>(text, begin);
}

namespace {

constexpr CharSet kUppers = set_of(CharClass::upper) | set_of(CharClass::uncased) | kMarks;
constexpr CharSet kLowers = set_of(CharClass::lower) | set_of(CharClass::uncased) | kMarks;

// Both forms of a word from `at` on, without what may stand before it; 0 where there is none.
struct CasedWord {
  std::size_t lower_end = 0;  // [uppers]*[lowers]+
  std::size_t upper_end = 0;  // [uppers]+[lowers]*
};

CasedWord cased_word(std::string_view text, std::size_t at) {
  CasedWord word;
  std::size_t end = at;  // of the run of uppers
  for (bool upper = true; upper && end < text.size();) {
    const Character character = character_at(text, end);
    upper = has(kUppers, character.kind);
    if (upper) end += character.bytes;
    // The run gives back what is behind its last character that is a lower too, if no other lower follows.
    if (upper && has(kLowers, character.kind)) word.lower_end = end;
  }
  const std::size_t lower_end = run_end(text, end, kLowers);
  if (lower_end > end) word.lower_end = lower_end;
  if (end > at) word.upper_end = lower_end;
  return word;
}

// lead?[uppers]*[lowers]+ending|lead?[uppers]+[lowers]*ending|\p{N}{1,most}|
// ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+| \s+(?!\S)|\s+   lead: [^\r\n\p{L}\p{N}], uppers:
// [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}], lowers: [\p{Ll}\p{Lm}\p{Lo}\p{M}], ending: (?i:'s|...)? or nothing
template <bool kContractions, int kMostNumbers>
std::size_t cased_word_end(std::string_view text, std::size_t begin) {
  const Character first = character_at(text, begin);
  const std::size_t second = begin + first.bytes;
  CasedWord led, plain;
  if (may_lead(first)) led = cased_word(text, second);
  if (has(kLetters | kMarks, first.kind) && led.lower_end == 0) plain = cased_word(text, begin);
  for (const std::size_t end : {led.lower_end, plain.lower_end, led.upper_end, plain.upper_end}) {
    if (end == 0) continue;
    const std::size_t contraction = kContractions ? contraction_end_any_case(text, end) : 0;
    return contraction != 0 ? contraction : end;
  }
  if (first.kind == CharClass::number) return numbers_end(text, begin, kMostNumbers);
  if (const std::size_t end = rest_end(text, begin, kRest, true)) return end;
  return line_or_space_end(text, begin);
}

}  // namespace

std::size_t gpt4o(std::string_view text, std::size_t begin) { return cased_word_end<true, 3>(text, begin); }
std::size_t tekken(std::string_view text, std::size_t begin) { return cased_word_end<false, 1>(text, begin); }

// \p{N}, each alone
std::size_t each_number(std::string_view text, std::size_t begin) {
  const Character first = character_at(text, begin);
  if (first.kind == CharClass::number) return begin + first.bytes;
  return run_end(text, begin + first.bytes, kEverything & ~kNumbers);
}

// [\r\n]
std::size_t each_newline(std::string_view text, std::size_t begin) {
  if (is_newline(text[begin])) return begin + 1;
  return std::min(text.find_first_of("\r\n", begin), text.size());
}

// \s+$
std::size_t spaces_at_the_end(std::string_view text, std::size_t begin) {
  std::size_t spaces = begin;  // where the whitespace before `at` begins
  for (std::size_t at = begin; at < text.size();) {
    const Character character = character_at(text, at);
    at += character.bytes;
    if (character.kind != CharClass::space) spaces = at;
  }
  return spaces > begin ? spaces : text.size();
}

// Runs of punctuation (\p{P} and all of ASCII's), and of the rest
std::size_t punctuation(std::string_view text, std::size_t begin) {
  return same_run_end(text, begin, [](const Character& c) {
    return c.kind == CharClass::punctuation || (c.kind == CharClass::symbol && c.code < 0x80);
  });
}

// Runs of numbers and of the rest, where a word is already spelled in GPT-2's byte alphabet: besides the
// digits six bytes are spelled by characters that are numbers (superscripts and fractions), whatever
// character they are a part of.
std::size_t numeric_bytes(std::string_view text, std::size_t begin) {
  const auto numeric = [&](std::size_t at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    return (byte >= '0' && byte <= '9') || byte == 0xB2 || byte == 0xB3 || byte == 0xB9 ||
           (byte >= 0xBC && byte <= 0xBE);
  };
  std::size_t end = begin + 1;
  while (end < text.size() && numeric(end) == numeric(begin)) ++end;
  return end;
}

// [0-9][0-9][0-9]
std::size_t three_digits(std::string_view text, std::size_t begin) {
  std::size_t digits = 0;
  for (std::size_t at = begin; at < text.size(); ++at) {
    digits = text[at] >= '0' && text[at] <= '9' ? digits + 1 : 0;
    if (digits == 3) return at - 2 > begin ? at - 2 : begin + 3;
  }
  return text.size();
}

// \s?\p{L}+
std::size_t letters(std::string_view text, std::size_t begin) {
  return spaced_run_end(text, begin, [](const Character& c) { return has(kLetters, c.kind); });
}

// \s?\p{P}+
std::size_t marks_of_punctuation(std::string_view text, std::size_t begin) {
  return spaced_run_end(text, begin, [](const Character& c) { return c.kind == CharClass::punctuation; });
}

// \s?[A-Za-z...]+
std::size_t cased_letters(std::string_view text, std::size_t begin) {
  return spaced_run_end(text, begin, [](const Character& c) { return in_ranges(kCasedLetters, c.code); });
}

// \s?[!-/:-~！-／：-～‘-‟　-。]+
std::size_t ascii_and_wide_marks(std::string_view text, std::size_t begin) {
  return spaced_run_end(text, begin,
                        [](const Character& c) { return in_ranges(kAsciiAndWideMarks, c.code); });
}

// [一-龥ࠀ-一가-퟿]+
std::size_t east_asian(std::string_view text, std::size_t begin) {
  return same_run_end(text, begin, [](const Character& c) {
    return (c.code >= 0x800 && c.code <= 0x9FA5) || (c.code >= 0xAC00 && c.code <= 0xD7FF);
  });
}

}  // namespace coppice::core::cuts
