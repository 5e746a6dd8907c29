// The table of drafters: registry.cc has one row per name.
#pragma once

#include <coppice/drafter.h>
#include <coppice/error.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "draft/arguments.h"
#include "draft/drafter.h"
#include "draft/expression.h"
#include "draft/grower.h"
#include "draft/katz.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace coppice::core {

// What drafters are built from.
struct DraftEnvironment {
  const Vocabulary* vocabulary = nullptr;  // the target's
  // The target itself, for those that draft with it (wants_target()), and its tokenizer. May be null where
  // there is none.
  std::shared_ptr<const Model> target;
  const Tokenizer* tokenizer = nullptr;
  bool for_a_draft = false;  // what is made guesses what a draft says, not what the target draws
  ThreadPool* pool = nullptr;
  int sequences = 1;
  int context = 2048;  // positions per sequence
  CacheType cache_type = CacheType::f16;
  // Loads a draft model (once per file) and its vocabulary, to be compared with the target's.
  std::function<Result<std::shared_ptr<const Model>>(const std::string& path)> load_model;
  std::function<Result<Vocabulary>(const std::string& path)> load_vocabulary;
  // Where n-grams come from; empty: from the file.
  std::function<Result<std::shared_ptr<const KatzModel>>(const std::string& path)> load_ngram;
  std::vector<NamedDrafter> custom;  // a user's own, by name beside the table's (check_custom_drafters())
};

struct DrafterRow {
  std::string_view name;
  std::string_view usage;    // "stage(DRAFT.gguf, MIX)"
  std::string_view summary;  // one line for help
  Arguments arguments;
  Status (*check)(const DrafterNode& node);  // what the arguments must say beside that; may be null
  Result<std::unique_ptr<Drafter>> (*make)(const DrafterNode& node, const DraftEnvironment& environment);
};
std::span<const DrafterRow> drafter_rows();

// What can be said of a mix without a model: names, arguments, values, and with `files` that those it names
// can be read. Knows the table's drafters alone.
Status check_mix(const DrafterMix& mix, bool files);

// Whether some drafter needs the target itself: environment.target must be there then.
bool wants_target(const DrafterMix& mix);

// A whole mix; null when it is empty. An unknown name or option is refused with the choices there are.
Result<std::unique_ptr<Grower>> make_grower(const DrafterMix& mix, const DraftEnvironment& environment);
// The mix under a draft.
Result<std::unique_ptr<Grower>> make_inner_grower(const DrafterMix& mix, const DraftEnvironment& environment);

}  // namespace coppice::core
