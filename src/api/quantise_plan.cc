#include "api/quantise_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/check.h"

namespace coppice {
namespace {

using core::Format;
using core::gguf::Tensor;

// clang-format off
constexpr QuantizeMix kMixes[] = {
    // name, file type, most, attention output, values and down, better, in which blocks, head
    {"Q3_K_S", 11, "Q3_K", "Q3_K", "Q3_K", "Q3_K", BetterBlocks::none,  "Q6_K"},
    {"Q3_K_M", 12, "Q3_K", "Q4_K", "Q4_K", "Q5_K", BetterBlocks::first, "Q6_K"},
    {"Q3_K_L", 13, "Q3_K", "Q5_K", "Q5_K", "Q5_K", BetterBlocks::all,   "Q6_K"},
    {"Q4_K_S", 14, "Q4_K", "Q4_K", "Q4_K", "Q5_K", BetterBlocks::first, "Q6_K"},
    {"Q4_K_M", 15, "Q4_K", "Q4_K", "Q4_K", "Q6_K", BetterBlocks::some,  "Q6_K"},
    {"Q5_K_S", 16, "Q5_K", "Q5_K", "Q5_K", "Q5_K", BetterBlocks::none,  "Q6_K"},
    {"Q5_K_M", 17, "Q5_K", "Q5_K", "Q5_K", "Q6_K", BetterBlocks::some,  "Q6_K"},
};

// For rows that are no whole blocks of 256: the format of blocks of 32 with as many bits or a few more.
struct Narrow { std::string_view format, instead; };
constexpr Narrow kNarrow[] = {
    {"Q4_K", "Q5_0"}, {"Q5_K", "Q5_1"}, {"Q6_K", "Q8_0"},
};
// clang-format on
constexpr std::string_view kOthersNarrow = "IQ4_NL", kAnyWidth = "F16";

std::string_view narrower_than(const Format& format) {
  for (const Narrow& row : kNarrow)
    if (row.format == format.name) return row.instead;
  return format.block_values > core::kBlockInputs ? kOthersNarrow : kAnyWidth;
}

bool same_letters(std::string_view a, std::string_view b) {
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return upper(x) == upper(y); });
}

// * in the pattern stands for any letters, also none.
bool fits(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (!name.starts_with(pattern.substr(0, star))) return false;
  pattern.remove_prefix(star + 1);
  name.remove_prefix(star);
  // The earliest place of each piece between stars leaves most for those behind it.
  for (std::size_t next; (next = pattern.find('*')) != std::string_view::npos;) {
    const std::size_t found = name.find(pattern.substr(0, next));
    if (found == std::string_view::npos) return false;
    name.remove_prefix(found + next);
    pattern.remove_prefix(next + 1);
  }
  return name.ends_with(pattern);
}

Result<const Format*> format_of(std::string_view name, std::string_view where) {
  const Format* format = core::find_format(name);
  if (format != nullptr && format->weights) return format;
  std::string names;
  for (const Format& row : core::formats()) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return fail(fmt::format("{} = {}: there is no such format; there is {}", where, name, names));
}

// "blk.7.attn_q.weight": 7 and "attn_q.weight"; -1 for tensors outside blocks.
struct Place {
  int block = -1;
  std::string_view role;
};
Place place_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return {-1, name};
  int block = -1;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, block);
  if (error != std::errc() || rest == end || *rest != '.' || block < 0) return {-1, name};
  return {block, name.substr(static_cast<std::size_t>(rest + 1 - name.data()))};
}

bool is_better(BetterBlocks where, int block, int blocks) {
  const int eighth = blocks / 8;
  switch (where) {
    case BetterBlocks::none:
      return false;
    case BetterBlocks::first:
      return block < eighth;
    case BetterBlocks::some:
      return block < eighth || block >= blocks - eighth || (block - eighth) % 3 == 2;
    case BetterBlocks::all:
      return true;
  }
  return false;
}

// A tensor that is no matrix of weights to multiply by, and why; empty for the others.
std::string_view no_matrix(const Tensor& tensor) {
  const std::string_view role = place_of(tensor.name).role;
  if (!tensor.format->weights) return "integers";
  if (!role.ends_with(".weight")) return "no weight of a product";
  if (role.find("norm") != std::string_view::npos) return "a norm";
  if (role.starts_with("position_embd") || role.starts_with("token_types")) return "added, not multiplied by";
  if (role.starts_with("ffn_gate_inp")) return "chooses experts";
  return {};
}

}  // namespace

std::span<const QuantizeMix> quantize_mixes() { return kMixes; }

Status QuantizePlan::read_keep(const core::gguf::File& file, std::span<const std::string> keep) {
  for (const std::string& text : keep) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0)
      return fail(fmt::format("keep = {}: NAME=FORMAT would be right, as in output.weight=Q8_0", text));
    Keep rule{text.substr(0, equals), nullptr};
    COPPICE_TRY(rule.format, format_of(std::string_view(text).substr(equals + 1), "keep"));
    const Tensor* first = nullptr;
    for (const Tensor& tensor : file.tensors()) {
      if (!fits(rule.pattern, tensor.name)) continue;
      first = &tensor;
      if (tensor.shape[0] % rule.format->block_values != 0)
        return fail(fmt::format("keep = {}: {} has rows of {} values, but {} needs a multiple of {}", text,
                                tensor.name, tensor.shape[0], rule.format->name, rule.format->block_values));
      if (!tensor.format->weights)
        return fail(fmt::format("keep = {}: {} holds integers, not weights", text, tensor.name));
    }
    if (first == nullptr)
      return fail(fmt::format("keep = {}: {} has no tensor with this name (coppice inspect lists them)", text,
                              file.path()));
    keep_.push_back(std::move(rule));
  }
  return {};
}

Result<QuantizePlan> QuantizePlan::make(const core::gguf::File& file, const QuantizeOptions& options) {
  QuantizePlan plan;
  for (const QuantizeMix& mix : kMixes)
    if (same_letters(mix.name, options.format)) plan.mix_ = &mix;
  if (plan.mix_ != nullptr) {
    plan.file_type_ = plan.mix_->file_type;
  } else {
    auto format = format_of(options.format, "format");
    if (!format) {
      std::string mixes;
      for (const QuantizeMix& mix : kMixes) mixes += (mixes.empty() ? "" : ", ") + std::string(mix.name);
      return fail(fmt::format("{}, and the mixes {}", format.error().message, mixes));
    }
    plan.format_ = *format;
    plan.file_type_ = plan.format_->file_type;
  }
  plan.tied_ = file.tensor("output.weight") == nullptr;
  for (const Tensor& tensor : file.tensors())
    plan.blocks_ = std::max(plan.blocks_, place_of(tensor.name).block + 1);
  COPPICE_TRY_STATUS(plan.read_keep(file, options.keep));
  return plan;
}

QuantizePlan::Choice QuantizePlan::by_mix(const Tensor& tensor) const {
  const Place place = place_of(tensor.name);
  const auto choice = [&](std::string_view name, std::string_view why) {
    return Choice{core::find_format(name), name == mix_->most ? std::string() : std::string(why)};
  };
  if (place.role == "output.weight") return choice(mix_->head, "the head");
  if (place.role == "token_embd.weight" && tied_) return choice(mix_->head, "the embedding is the head");
  if (place.role.starts_with("attn_output")) return choice(mix_->attention_output, "attention's output");
  const bool value = place.role.starts_with("attn_v.") || place.role.starts_with("attn_qkv.");
  if (value || place.role.starts_with("ffn_down"))
    return choice(is_better(mix_->where, place.block, blocks_) ? mix_->better : mix_->value_and_down,
                  value ? "values" : "feed-forward's output");
  return choice(mix_->most, "");
}

QuantizePlan::Choice QuantizePlan::choose(const Tensor& tensor) const {
  for (const Keep& rule : keep_)
    if (fits(rule.pattern, tensor.name)) return {rule.format, "as asked for"};
  if (!tensor.format->weights) return {tensor.format, "integers"};
  if (tensor.rank == 1) return {core::find_format("F32"), "a vector"};
  if (const std::string_view why = no_matrix(tensor); !why.empty()) return {tensor.format, std::string(why)};
  Choice choice = mix_ == nullptr ? Choice{format_, ""} : by_mix(tensor);
  const Format* wanted = choice.format;
  if (tensor.shape[0] % choice.format->block_values != 0)
    choice.format = core::find_format(narrower_than(*choice.format));
  if (tensor.shape[0] % choice.format->block_values != 0) choice.format = core::find_format(kAnyWidth);
  if (choice.format != wanted)
    choice.why = fmt::format("{} needs rows of a multiple of {}, these have {}", wanted->name,
                             wanted->block_values, tensor.shape[0]);
  return choice;
}

}  // namespace coppice
