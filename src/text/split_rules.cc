// The rules are published as regular expressions; here each is a small matcher, because backtracking engines
// are slow on long runs and disagree about Unicode. An expression's alternatives are tried in order at each
// position; since letters, numbers, whitespace and the rest do not overlap, one look at the next character
// decides which one it is.
#include "text/split_rules.h"

#include "text/unicode.h"

namespace coppice::core {
namespace {

// The end of the run of characters of class `kind` that starts at `at`.
std::size_t run_end(std::string_view text, std::size_t at, CharClass kind) {
  while (at < text.size()) {
    const Character character = character_at(text, at);
    if (character.kind != kind) break;
    at += character.bytes;
  }
  return at;
}

// 's|'t|'re|'ve|'m|'ll|'d at text[at], which is an apostrophe; 0 if none of them is there.
std::size_t contraction_end(std::string_view text, std::size_t at) {
  const std::string_view next = text.substr(at + 1, 2);
  if (next.empty()) return 0;
  if (next[0] == 's' || next[0] == 't' || next[0] == 'm' || next[0] == 'd') return at + 2;
  if (next == "re" || next == "ve" || next == "ll") return at + 3;
  return 0;
}

// \s+(?!\S)|\s+ : whitespace, but for its last character if a word follows, which may want it. With
// `lone_numbers` a number is not a word that follows: the text was cut before it first.
std::size_t space_end(std::string_view text, std::size_t begin, bool lone_numbers) {
  std::size_t last = begin, end = begin;
  while (end < text.size()) {
    const Character character = character_at(text, end);
    if (character.kind != CharClass::space) {
      if (lone_numbers && character.kind == CharClass::number) return end;
      return last > begin ? last : end;
    }
    last = end;
    end += character.bytes;
  }
  return end;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// With kLoneNumbers every number is cut out first, alone, and the expression sees what is between.
template <bool kLoneNumbers>
std::size_t gpt2_word_end(std::string_view text, std::size_t begin) {
  if (text[begin] == '\'') {
    if (const std::size_t end = contraction_end(text, begin)) return end;
  }
  Character first = character_at(text, begin);
  std::size_t at = begin;
  if (text[begin] == ' ' && begin + 1 < text.size()) {
    const Character second = character_at(text, begin + 1);
    const bool joins = second.kind != CharClass::space && !(kLoneNumbers && second.kind == CharClass::number);
    if (joins) {
      first = second;
      at = begin + 1;
    }
  }
  if (first.kind == CharClass::space) return space_end(text, begin, kLoneNumbers);
  if (kLoneNumbers && first.kind == CharClass::number) return at + first.bytes;
  return run_end(text, at + first.bytes, first.kind);
}

constexpr SplitRule kRules[] = {
    {"gpt-2", gpt2_word_end<false>},
    {"gpt2", gpt2_word_end<false>},
    // Files made before tokenizer.ggml.pre existed; GPT-2's rule is what they meant when they were GPT-2's.
    {"default", gpt2_word_end<false>},
    {"smollm", gpt2_word_end<true>},
};

}  // namespace

std::span<const SplitRule> split_rules() { return kRules; }

const SplitRule* find_split_rule(std::string_view name) {
  for (const SplitRule& rule : kRules) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

std::string split_rule_names() {
  std::string names;
  for (const SplitRule& rule : kRules) {
    if (!names.empty()) names += ", ";
    names += rule.name;
  }
  return names;
}

}  // namespace coppice::core
