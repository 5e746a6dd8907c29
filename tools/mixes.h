// Any mix of drafters, from its expression, for texts that one model wrote.
#pragma once

#include <memory>
#include <string>

#include "base/check.h"
#include "draft/registry.h"
#include "draft/target_states.h"
#include "gguf/file.h"

namespace coppice::tools {

struct Mix {
  std::unique_ptr<core::Grower> grower;
  std::unique_ptr<core::TargetStates> states;  // null: no drafter reads them
};

// `gguf`: of the model that wrote the texts, none longer than `context`. `pool` and `vocabulary` (filled
// here) outlive the mix.
inline Result<Mix> make_mix(const std::string& expression, const std::string& gguf, int context,
                            core::ThreadPool& pool, core::Vocabulary& vocabulary) {
  using namespace core;
  COPPICE_TRY(const auto file, gguf::File::open(gguf));
  COPPICE_TRY(vocabulary, Vocabulary::read(*file));
  DraftEnvironment environment;
  environment.vocabulary = &vocabulary;
  environment.context = context;
  environment.pool = &pool;
  environment.load_model = [&pool](const std::string& path) -> Result<std::shared_ptr<const core::Model>> {
    COPPICE_TRY(auto draft, gguf::File::open(path));
    return core::Model::load(draft, pool);
  };
  environment.load_vocabulary = [](const std::string& path) -> Result<Vocabulary> {
    COPPICE_TRY(const auto draft, gguf::File::open(path));
    return Vocabulary::read(*draft);
  };
  COPPICE_TRY(const auto drafters, parse_drafters(expression));
  if (wants_target(drafters)) {
    COPPICE_TRY(environment.target, core::Model::load(file, pool));
  }
  Mix mix;
  COPPICE_TRY(mix.grower, make_grower(drafters, environment));
  if (mix.grower == nullptr) return fail("the mix has no drafters");
  const auto layers = mix.grower->feature_layers();
  if (layers.empty()) return mix;
  COPPICE_TRY(mix.states, TargetStates::make(environment.target, layers, context, pool));
  return mix;
}

}  // namespace coppice::tools
