// The table of splitting rules. What a rule is, its model's tokenizer.json says (normalizer, pre_tokenizer,
// ignore_merges); which name a file has for it, the converters do. An alias is a row of its own ("the same as
// ..."), and is here only where both names stand for the same pipeline. To add a rule: docs/models.md.
#include "text/split_rules.h"

#include "text/cut_parts.h"
#include "text/split_cuts.h"

namespace coppice::core {
namespace {

//  ?[^(\s|[.,!?…。，、।۔،])]+
std::size_t between_marks(std::string_view text, std::size_t begin) {
  constexpr std::u32string_view kMarks = U"()|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C";
  return cuts::led_run_end(
      text, begin, [](const Character& c) { return c.code == ' '; },
      [&](const Character& c) {
        return c.kind != CharClass::space && kMarks.find(c.code) == std::u32string_view::npos;
      });
}

constexpr Cut kGpt2[] = {cuts::gpt2};
constexpr Cut kDigitsThenGpt2[] = {cuts::each_number, cuts::gpt2};
constexpr Cut kLlama3[] = {cuts::llama3};
constexpr Cut kQwen2[] = {cuts::qwen2};
constexpr Cut kQwen35[] = {cuts::qwen35};
constexpr Cut kGpt4o[] = {cuts::gpt4o};
constexpr Cut kTekken[] = {cuts::tekken};
constexpr Cut kDeepseekLlm[] = {cuts::each_newline,      cuts::cased_letters, cuts::ascii_and_wide_marks,
                                cuts::spaces_at_the_end, cuts::east_asian,    cuts::each_number};
constexpr Cut kDeepseekCoder[] = {cuts::each_newline, cuts::letters, cuts::marks_of_punctuation,
                                  cuts::east_asian, cuts::each_number};
constexpr Cut kBloom[] = {between_marks};
constexpr Cut kFalcon[] = {cuts::punctuation, cuts::gpt2, cuts::numeric_bytes, cuts::three_digits};

// clang-format off
constexpr SplitRule kRules[] = {
    {"gpt-2",          "GPT-2, Phi-2",                   kGpt2},
    {"gpt2",           "the same as gpt-2",              kGpt2},
    {"phi-2",          "the same as gpt-2",              kGpt2},
    {"gpt-neox",       "GPT-NeoX, Pythia",               kGpt2, true},
    {"mpt",            "MPT (GPT-NeoX's tokenizer)",     kGpt2, true},
    {"olmo",           "OLMo (GPT-NeoX's rule)",         kGpt2, true},
    {"smollm",         "SmolLM, SmolLM2",                kDigitsThenGpt2},
    {"starcoder",      "StarCoder, StarCoder2",          kDigitsThenGpt2},
    {"refact",         "Refact, Granite 3",              kDigitsThenGpt2},
    {"command-r",      "Command-R, Aya",                 kDigitsThenGpt2, true},
    {"llama-bpe",      "Llama 3",                        kLlama3, false, true, true},
    {"llama3",         "the same as llama-bpe",          kLlama3, false, true, true},
    {"llama-v3",       "the same as llama-bpe",          kLlama3, false, true, true},
    {"dbrx",           "DBRX, Phi-4 (cl100k)",           kLlama3, false, true},
    {"smaug-bpe",      "SmolLM3, Smaug",                 kLlama3, false, true},
    {"qwen2",          "Qwen 2, 2.5, 3",                 kQwen2, true},
    {"stablelm2",      "StableLM 2",                     kQwen2, true},
    {"qwen35",         "Qwen 3.5",                       kQwen35, true},
    {"gpt-4o",         "gpt-oss, Phi-4 mini (o200k)",    kGpt4o, false, true},
    {"tekken",         "Mistral Nemo, Small 3",          kTekken, false, true, true},
    {"deepseek-llm",   "DeepSeek LLM, Coder V2",         kDeepseekLlm},
    {"deepseek-coder", "DeepSeek Coder",                 kDeepseekCoder},
    {"falcon",         "Falcon",                         kFalcon},
    {"bloom",          "BLOOM, BLOOMZ",                  kBloom},
};
// clang-format on

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

std::string_view Words::next() {
  if (at_ == text_.size()) return {};
  const std::size_t begin = at_;
  std::size_t end = text_.size();
  for (std::size_t i = 0; i < cuts_.size(); ++i) {
    if (ends_[i] <= begin) ends_[i] = cuts_[i](text_.substr(0, end), begin);
    end = ends_[i];
  }
  at_ = end;
  return text_.substr(begin, end - begin);
}

}  // namespace coppice::core
