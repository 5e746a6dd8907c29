#include "api/draft_files.h"

#include <map>

#include "base/check.h"

namespace coppice {

void add_draft_files(core::DraftEnvironment& environment, core::ThreadPool& pool) {
  environment.pool = &pool;
  auto loaded = std::make_shared<std::map<std::string, std::shared_ptr<const core::Model>>>();
  environment.load_model = [loaded,
                            &pool](const std::string& path) -> Result<std::shared_ptr<const core::Model>> {
    if (auto it = loaded->find(path); it != loaded->end()) return it->second;
    COPPICE_TRY(auto file, core::gguf::File::open(path));
    COPPICE_TRY(auto model, core::Model::load(file, pool));
    loaded->emplace(path, model);
    return model;
  };
  environment.load_vocabulary = [](const std::string& path) -> Result<core::Vocabulary> {
    COPPICE_TRY(auto file, core::gguf::File::open(path));
    return core::Vocabulary::read(*file);
  };
}

}  // namespace coppice
