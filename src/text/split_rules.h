// The first step of byte-level BPE: a text is cut into words, and merges never cross a cut. Every family of
// models has its own rule; a rule is one row of the table in split_rules.cc.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace coppice::core {

struct SplitRule {
  std::string_view name;  // as tokenizer.ggml.pre spells it
  // Where the word that begins at text[begin] ends; begin < result <= text.size(). Words of a whole text take
  // time linear in its length.
  std::size_t (*word_end)(std::string_view text, std::size_t begin);
};

std::span<const SplitRule> split_rules();
const SplitRule* find_split_rule(std::string_view name);  // null if there is no such row
std::string split_rule_names();                           // "gpt-2, smollm, ...", for messages

}  // namespace coppice::core
