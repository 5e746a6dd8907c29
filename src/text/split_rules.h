// The first step of byte-level BPE: a text is cut into words, and merges never cross a cut. Every family of
// models has its own rule; a rule is one row of the table in split_rules.cc.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace coppice::core {

// Where the piece that begins at text[begin] ends; begin < result <= text.size(). It sees nothing before
// `begin`. Pieces of a whole text take time linear in its length.
using Cut = std::size_t (*)(std::string_view text, std::size_t begin);

struct SplitRule {
  std::string_view name;      // as tokenizer.ggml.pre spells it
  std::string_view origin;    // whose rule it is, for people
  std::span<const Cut> cuts;  // the first cuts the text, each other the pieces of the one before
  bool nfc = false;           // the text is brought into Unicode's form C first
  // A word that is spelled like a token is that token, also where merges would not make it.
  bool whole_words_first = false;
  bool adds_begin = false;  // a begin-of-text token is added where the file does not say
};

std::span<const SplitRule> split_rules();
const SplitRule* find_split_rule(std::string_view name);  // null if there is no such row
std::string split_rule_names();                           // "gpt-2, smollm, ...", for messages

// The words of a text by a rule, in order.
class Words {
 public:
  Words(const SplitRule& rule, std::string_view text) : cuts_(rule.cuts), text_(text) {}
  // The next word, not empty; empty when the text is over.
  std::string_view next();

 private:
  static constexpr std::size_t kMostCuts = 8;
  std::span<const Cut> cuts_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::array<std::size_t, kMostCuts> ends_{};  // where the piece of each cut that at_ is in ends
};

}  // namespace coppice::core
