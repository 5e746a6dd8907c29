// Any mix of drafters, from its expression, for texts of one vocabulary.
#pragma once

#include <memory>
#include <string>

#include "base/check.h"
#include "draft/registry.h"
#include "gguf/file.h"

namespace coppice::tools {

// `pool` and `vocabulary` (filled here) outlive the grower.
inline Result<std::unique_ptr<core::Grower>> make_mix(const std::string& expression, const std::string& gguf,
                                                      core::ThreadPool& pool, core::Vocabulary& vocabulary) {
  using namespace core;
  COPPICE_TRY(const auto file, gguf::File::open(gguf));
  COPPICE_TRY(vocabulary, Vocabulary::read(*file));
  DraftEnvironment environment;
  environment.vocabulary = &vocabulary;
  environment.pool = &pool;
  environment.load_model = [&pool](const std::string& path) -> Result<std::shared_ptr<const core::Model>> {
    COPPICE_TRY(auto draft, gguf::File::open(path));
    return core::Model::load(draft, pool);
  };
  environment.load_vocabulary = [](const std::string& path) -> Result<Vocabulary> {
    COPPICE_TRY(const auto draft, gguf::File::open(path));
    return Vocabulary::read(*draft);
  };
  COPPICE_TRY(const auto mix, parse_drafters(expression));
  return make_grower(mix, environment);
}

}  // namespace coppice::tools
