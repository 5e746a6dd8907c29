#include "draft/registry.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"
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
  static const DrafterRow rows[] = {
      {"lookup", "lookup(max=TOKENS)",
       "what followed when the last tokens stood in this prompt or answer before", make_lookup},
      {"ngram", "ngram(FILE.ngram)", "statistics counted beforehand by `coppice ngram build`", make_ngram},
      {"model", "model(DRAFT.gguf, width=FACTOR)", "a small model with the same vocabulary", make_model},
      {"stage", "stage(DRAFT.gguf, MIX, nodes=12, depth=8, width=FACTOR)",
       "a draft model whose own next tokens the inner mix guesses, to any depth", make_stage},
      {"self", "self(layers=KEPT, window=POSITIONS)",
       "the model itself without some of its blocks or with a window of the text; needs no file", make_self},
      {"head", "head(HEAD.gguf)", "one block that reads the target's own states (EAGLE-3)", make_head},
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

Result<std::unique_ptr<Drafter>> make_drafter(const DrafterNode& node, const DraftEnvironment& environment) {
  const DrafterRow* row = find_row(node.name);
  if (row != nullptr) return row->make(node, environment);
  std::vector<std::string_view> names;
  for (const DrafterRow& known : drafter_rows()) names.push_back(known.name);
  for (const NamedDrafter& own : environment.custom) {
    names.push_back(own.name);
    if (own.name != node.name) continue;
    COPPICE_TRY_STATUS(check_arguments(node, {.files = 0, .inner = false, .options = {}}));
    return std::make_unique<CustomAdapter>(own, environment.sequences,
                                           static_cast<int>(environment.vocabulary->tokens.size()));
  }
  return fail("there is no " + where(node) + "; it can be " + choices(names));
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
  if (node.inner.empty() == allowed.inner)
    return fail(where(node) + (allowed.inner ? " needs a mix of drafters under it" : " takes no inner mix") +
                usage);
  for (const auto& [key, value] : node.options) {
    bool known = false;
    for (const std::string_view option : allowed.options) known = known || option == key;
    if (known) continue;
    const std::string have =
        allowed.options.empty() ? " takes no options" : " knows " + choices(allowed.options);
    return fail(where(node) + have + ", not `" + key + "`");
  }
  return {};
}

Result<int> int_option(const DrafterNode& node, std::string_view key, int fallback, Range range) {
  for (const auto& [name, value] : node.options) {
    if (name != key) continue;
    int number = 0;
    const char* end = value.data() + value.size();
    const auto parsed = std::from_chars(value.data(), end, number);
    if (parsed.ec == std::errc() && parsed.ptr == end && number >= range.least && number <= range.most)
      return number;
    return fail(where(node) + ": " + name + "=" + value + " should be a whole number from " +
                std::to_string(range.least) + " to " + std::to_string(range.most));
  }
  return fallback;
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
