#include "draft/registry.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
#include "base/os.h"
#include "draft/arguments.h"
#include "draft/custom_drafter.h"
#include "draft/head_drafter.h"
#include "draft/lookup_drafter.h"
#include "draft/mixture.h"
#include "draft/model_drafter.h"
#include "draft/ngram_drafter.h"
#include "draft/prior.h"
#include "draft/self_drafter.h"

namespace coppice::core {

// The table. A new drafter is a row here, a file and a test (docs/drafters.md).
std::span<const DrafterRow> drafter_rows() {
  static constexpr Range kTokens{16, 1 << 24}, kNodes{0, ModelDrafter::kPassRows - 1},
      kDepth{1, kMaxTreeDepth};
  static constexpr OptionRule lookup[] = {{"max", kTokens}};
  static constexpr OptionRule model[] = {{"width", {}}};
  static constexpr OptionRule stage[] = {{"nodes", kNodes}, {"depth", kDepth}, {"width", {}}};
  static constexpr OptionRule self[] = {{"layers", {}},
                                        {"window", Range{AttentionWindow::kLeastRecent, 1 << 24}},
                                        {"sink", Range{0, 1 << 24}},
                                        {"nodes", kNodes},
                                        {"depth", kDepth}};
  static const DrafterRow rows[] = {
      {"lookup",
       "lookup(max=TOKENS)",
       "what followed when the last tokens stood in this prompt or answer before",
       {0, Inner::none, lookup},
       nullptr,
       make_lookup},
      {"ngram",
       "ngram(FILE.ngram)",
       "statistics counted beforehand by `coppice ngram build`",
       {1, Inner::none, {}},
       nullptr,
       make_ngram},
      {"model",
       "model(DRAFT.gguf, width=FACTOR)",
       "a small model with the same vocabulary",
       {1, Inner::none, model},
       nullptr,
       make_model},
      {"stage",
       "stage(DRAFT.gguf, MIX, nodes=12, depth=8, width=FACTOR)",
       "a draft model whose own next tokens the inner mix guesses, to any depth",
       {1, Inner::needed, stage},
       nullptr,
       make_stage},
      {"self",
       "self(layers=KEPT, window=POSITIONS)",
       "the model itself without some of its blocks or with a window of the text; needs no file",
       {0, Inner::allowed, self},
       check_self,
       make_self},
      {"head",
       "head(HEAD.gguf)",
       "one block that reads the target's own states (EAGLE-3)",
       {1, Inner::none, {}},
       nullptr,
       make_head},
  };
  return rows;
}

bool wants_target(const DrafterMix& mix) {
  return std::any_of(mix.begin(), mix.end(), [](const DrafterNode& node) {
    return node.name == "self" || node.name == "head" || wants_target(node.inner);
  });
}

std::string choices(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

namespace {

std::string where(const DrafterNode& node) {
  return "drafter `" + node.name + "` (column " + std::to_string(node.column) + ")";
}

const DrafterRow* find_row(std::string_view name) {
  for (const DrafterRow& row : drafter_rows())
    if (row.name == name) return &row;
  return nullptr;
}

Status check_node(const DrafterNode& node, const DrafterRow& row) {
  COPPICE_TRY_STATUS(check_arguments(node, row.arguments));
  return row.check != nullptr ? row.check(node) : Status();
}

tl::unexpected<Error> no_such_drafter(const DrafterNode& node, const std::vector<NamedDrafter>& custom) {
  std::vector<std::string_view> names;
  for (const DrafterRow& known : drafter_rows()) names.push_back(known.name);
  for (const NamedDrafter& own : custom) names.push_back(own.name);
  return fail("there is no " + where(node) + "; it can be " + choices(names));
}

Result<std::unique_ptr<Drafter>> make_drafter(const DrafterNode& node, const DraftEnvironment& environment) {
  if (const DrafterRow* row = find_row(node.name); row != nullptr) {
    COPPICE_TRY_STATUS(check_node(node, *row));
    return row->make(node, environment);
  }
  for (const NamedDrafter& own : environment.custom) {
    if (own.name != node.name) continue;
    COPPICE_TRY_STATUS(check_arguments(node, {}));
    return std::make_unique<CustomAdapter>(own, environment.sequences,
                                           static_cast<int>(environment.vocabulary->tokens.size()));
  }
  return no_such_drafter(node, environment.custom);
}

Status can_be_read(const std::string& file) {
  if (auto there = MappedFile::open(file); !there) return tl::unexpected(there.error());
  return {};
}

// A number that is none, or out of range.
Status check_number(const DrafterNode& node, const OptionRule& rule, const std::string& value) {
  int number = 0;
  const char* end = value.data() + value.size();
  const auto parsed = std::from_chars(value.data(), end, number);
  const auto [least, most] = *rule.whole;
  if (parsed.ec == std::errc() && parsed.ptr == end && number >= least && number <= most) return {};
  return fail(where(node) + ": " + std::string(rule.name) + "=" + value + " should be a whole number from " +
              std::to_string(least) + " to " + std::to_string(most));
}

}  // namespace

Status check_arguments(const DrafterNode& node, const Arguments& allowed) {
  const DrafterRow* row = find_row(node.name);
  const std::string usage =
      "; write " + std::string(row == nullptr ? std::string_view(node.name) : row->usage);
  if (static_cast<int>(node.files.size()) != allowed.files)
    return fail(where(node) + " takes " + std::to_string(allowed.files) + " file" +
                (allowed.files == 1 ? "" : "s") + " and was given " + std::to_string(node.files.size()) +
                usage);
  if (node.inner.empty() && allowed.inner == Inner::needed)
    return fail(where(node) + " needs a mix of drafters under it" + usage);
  if (!node.inner.empty() && allowed.inner == Inner::none)
    return fail(where(node) + " takes no inner mix" + usage);
  for (const auto& [key, value] : node.options) {
    std::vector<std::string_view> names;
    const OptionRule* rule = nullptr;
    for (const OptionRule& option : allowed.options) {
      names.push_back(option.name);
      if (option.name == key) rule = &option;
    }
    if (rule == nullptr)
      return fail(where(node) + (names.empty() ? " takes no options" : " knows " + choices(names)) +
                  ", not `" + key + "`");
    if (rule->whole) COPPICE_TRY_STATUS(check_number(node, *rule, value));
  }
  return {};
}

int int_option(const DrafterNode& node, std::string_view key, int fallback) {
  int number = fallback;
  for (const auto& [name, value] : node.options)
    if (name == key) std::from_chars(value.data(), value.data() + value.size(), number);
  return number;
}

Status check_mix(const DrafterMix& mix, bool files) {
  for (const DrafterNode& node : mix) {
    const DrafterRow* row = find_row(node.name);
    if (row == nullptr) return no_such_drafter(node, {});
    COPPICE_TRY_STATUS(check_node(node, *row));
    for (const std::string& file : node.files)
      if (files) COPPICE_TRY_STATUS(can_be_read(file));
    COPPICE_TRY_STATUS(check_mix(node.inner, files));
  }
  return {};
}

Result<std::unique_ptr<Grower>> make_grower(const DrafterMix& mix, const DraftEnvironment& environment) {
  if (mix.empty()) return std::unique_ptr<Grower>();
  constexpr std::size_t kMostDrafters = 32;  // bits of a SourceMask
  if (mix.size() > kMostDrafters)
    return fail("a mix of " + std::to_string(mix.size()) + " drafters is too wide; " +
                std::to_string(kMostDrafters) + " are possible");
  std::vector<std::unique_ptr<Drafter>> drafters;
  int features = kOwnFeatures;
  int with_buckets = 0;
  for (const DrafterNode& node : mix) {
    COPPICE_TRY(auto drafter, make_drafter(node, environment));
    features += drafter->shape().features;
    with_buckets += drafter->shape().buckets > 1;
    drafters.push_back(std::move(drafter));
  }
  if (features > kMaxFeatures)
    return fail("the mix `" + to_string(mix) + "` has " + std::to_string(features) +
                " features to weigh, the mixer can weigh " + std::to_string(kMaxFeatures) +
                "; leave out a drafter");
  if (with_buckets > 1)
    return fail("the mix `" + to_string(mix) +
                "` has more than one drafter that chooses the mixer's weights;"
                " leave `lookup` in once");
  auto grower = std::make_unique<Grower>(std::move(drafters), Grower::Options{environment.sequences});
  // A mix nothing is known about learns from nothing.
  if (!apply_prior(builtin_prior(), *grower)) compose_prior(builtin_prior(), *grower);
  return grower;
}

Result<std::unique_ptr<Grower>> make_inner_grower(const DrafterMix& mix,
                                                  const DraftEnvironment& environment) {
  DraftEnvironment below = environment;
  below.for_a_draft = true;
  return make_grower(mix, below);
}

}  // namespace coppice::core
