#include "infill.h"

#include <string>

namespace coppice::serve {
namespace {

struct Marks {
  std::string_view before, behind, middle;  // middle empty: there is none, and what is behind comes first
};

// One row a family. In all but the last what is written follows the third mark.
constexpr Marks kFamilies[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},     // Qwen coder, CodeGemma
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},           // StarCoder, Granite code
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>"},           // SantaCoder
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},     // DeepSeek coder
    {"<|fim_begin|>", "<|fim_hole|>", "<|fim_end|>"},           // the same in other files
    {"<PRE>", "<SUF>", "<MID>"},                                // Code Llama
    {"\u2581<PRE>", "\u2581<SUF>", "\u2581<MID>"},              // ... as its vocabulary spells them
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"},  // GLM
    {"[PREFIX]", "[SUFFIX]", ""},                               // Codestral
};

// kNoToken where the spelling is no single special token.
Token special(const Tokenizer& tokenizer, std::string_view spelling) {
  const auto tokens = tokenizer.encode(spelling, true, false);
  const bool one = tokens.size() == 1 && tokenizer.piece(tokens[0]) == spelling;
  return one ? tokens[0] : kNoToken;
}

}  // namespace

std::optional<std::vector<Token>> infill_prompt(const Tokenizer& tokenizer, std::string_view before,
                                                std::string_view behind) {
  for (const Marks& marks : kFamilies) {
    const Token prefix = special(tokenizer, marks.before), suffix = special(tokenizer, marks.behind);
    const Token middle = marks.middle.empty() ? kNoToken : special(tokenizer, marks.middle);
    if (prefix == kNoToken || suffix == kNoToken || (middle == kNoToken && !marks.middle.empty())) continue;
    std::vector<Token> tokens = tokenizer.encode("", false, true);  // begin of text, where the model wants it
    const auto add = [&](Token mark, std::string_view text) {
      tokens.push_back(mark);
      const auto part = tokenizer.encode(text, false, false);
      tokens.insert(tokens.end(), part.begin(), part.end());
    };
    if (marks.middle.empty()) {
      add(suffix, behind);
      add(prefix, before);
    } else {
      add(prefix, before);
      add(suffix, behind);
      tokens.push_back(middle);
    }
    return tokens;
  }
  return std::nullopt;
}

}  // namespace coppice::serve
