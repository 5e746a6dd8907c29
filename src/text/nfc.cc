// A text is looked through for characters that may change (`loud`). Each such part, from the last quiet
// character before it to the next one behind it, is decomposed, sorted by combining class and composed again;
// nothing outside of it can change with it.
#include "text/nfc.h"

#include <algorithm>
#include <span>
#include <vector>

#include "text/nfc_tables.h"
#include "text/unicode.h"

namespace coppice::core {
namespace {

// Korean syllables are composed by arithmetic (The Unicode Standard, section 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kTailCount;

struct Mark {
  char32_t code;
  std::uint8_t combining;
};

bool is_loud(char32_t code) {
  if (code < 0x300 || (code >= 0x3400 && code < 0xA600) || code == kNoCharacter) return false;
  const std::span ranges(kNfcLoud, kNfcLoudCount);
  const auto behind = std::upper_bound(ranges.begin(), ranges.end(), code,
                                       [](char32_t c, const NfcRange& range) { return c < range.first; });
  return behind != ranges.begin() && code <= (behind - 1)->last;
}

std::uint8_t combining_class(char32_t code) {
  if (code < 0x300) return 0;
  const std::span classes(kNfcClasses, kNfcClassesCount);
  const auto at = std::lower_bound(classes.begin(), classes.end(), code,
                                   [](const NfcClass& row, char32_t c) { return row.code < c; });
  return at != classes.end() && at->code == code ? at->combining : std::uint8_t{0};
}

void decompose(char32_t code, std::vector<Mark>& out) {
  if (code >= kSyllables && code < kSyllables + kSyllableCount) {
    const char32_t i = code - kSyllables;
    out.push_back({kLeads + i / (kVowelCount * kTailCount), 0});
    out.push_back({kVowels + i % (kVowelCount * kTailCount) / kTailCount, 0});
    if (i % kTailCount != 0) out.push_back({kTails + i % kTailCount, 0});
    return;
  }
  const std::span pairs(kNfcDecompositions, kNfcDecompositionsCount);
  const auto at = std::lower_bound(pairs.begin(), pairs.end(), code,
                                   [](const NfcPair& pair, char32_t c) { return pair.first < c; });
  if (at == pairs.end() || at->first != code) {
    out.push_back({code, combining_class(code)});
    return;
  }
  decompose(at->second, out);  // one step in the table is at most four in all
  if (at->third != 0) decompose(at->third, out);
}

char32_t compose(char32_t first, char32_t second) {
  if (first >= kLeads && first < kLeads + kLeadCount && second >= kVowels && second < kVowels + kVowelCount)
    return kSyllables + ((first - kLeads) * kVowelCount + second - kVowels) * kTailCount;
  if (first >= kSyllables && first < kSyllables + kSyllableCount && (first - kSyllables) % kTailCount == 0 &&
      second > kTails && second < kTails + kTailCount)
    return first + second - kTails;
  const std::span pairs(kNfcCompositions, kNfcCompositionsCount);
  const auto at =
      std::lower_bound(pairs.begin(), pairs.end(), second, [first](const NfcPair& pair, char32_t wanted) {
        return pair.first != first ? pair.first < first : pair.second < wanted;
      });
  return at != pairs.end() && at->first == first && at->second == second ? at->third : 0;
}

void append_utf8(char32_t code, std::string& out) {
  const auto byte = [&out](char32_t value) { out.push_back(static_cast<char>(value)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      byte(0xE0 | code >> 12);
    } else {
      byte(0xF0 | code >> 18);
      byte(0x80 | (code >> 12 & 0x3F));
    }
    byte(0x80 | (code >> 6 & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

// Composes what is decomposed: each mark with the last starter before it, if nothing of its class or above
// stands between.
void compose_all(std::vector<Mark>& marks) {
  std::size_t size = 0, starter = marks.size();
  int last = -1;  // the class of what stands between the starter and the mark; -1: nothing
  for (const Mark mark : marks) {
    const bool free = starter < size && (last < 0 || (last != 0 && last < mark.combining));
    const char32_t both = free ? compose(marks[starter].code, mark.code) : 0;
    if (both != 0) {
      marks[starter].code = both;
      continue;
    }
    if (mark.combining == 0) {
      starter = size;
      last = -1;
    } else {
      last = mark.combining;
    }
    marks[size++] = mark;
  }
  marks.resize(size);
}

// The form C of one part; every character of it is valid.
void normalize_part(std::string_view part, std::string& out) {
  std::vector<Mark> marks;
  for (std::size_t at = 0; at < part.size();) {
    const Character character = character_at(part, at);
    decompose(character.code, marks);
    at += character.bytes;
  }
  for (std::size_t at = 0; at < marks.size();) {
    std::size_t end = at;
    while (end < marks.size() && marks[end].combining != 0) ++end;
    std::stable_sort(marks.begin() + static_cast<std::ptrdiff_t>(at),
                     marks.begin() + static_cast<std::ptrdiff_t>(end),
                     [](const Mark& a, const Mark& b) { return a.combining < b.combining; });
    at = end + 1;
  }
  compose_all(marks);
  for (const Mark& mark : marks) append_utf8(mark.code, out);
}

}  // namespace

std::optional<std::string> to_nfc(std::string_view text) {
  std::string out;
  bool changed = false;
  std::size_t copied = 0;  // of `text`, into `out`
  std::size_t quiet = 0;   // where the last quiet character begins, if it is a character
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      quiet = at++;
      continue;
    }
    Character character = character_at(text, at);
    if (!is_loud(character.code)) {
      quiet = character.code == kNoCharacter ? at + 1 : at;
      at += character.bytes;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_loud((character = character_at(text, end)).code)) end += character.bytes;
    const std::string_view part = text.substr(quiet, end - quiet);
    out.append(text, copied, quiet - copied);
    const std::size_t begin = out.size();
    normalize_part(part, out);
    changed = changed || std::string_view(out).substr(begin) != part;
    copied = quiet = at = end;
  }
  if (!changed) return std::nullopt;
  out.append(text, copied, std::string_view::npos);
  return out;
}

}  // namespace coppice::core
