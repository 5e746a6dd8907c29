#include <coppice/tools.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "api/impl.h"
#include "base/check.h"
#include "base/os.h"
#include "gguf/split.h"
#include "kernels/kernels.h"

namespace coppice {

Result<std::string> file_hash(const std::string& path) {
  COPPICE_TRY(const core::Hash128 hash, core::gguf::hash_of_file(path));
  return core::to_hex(hash);
}

namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 6;  // folders below a cache that are looked into
constexpr int kMostFiles = 20000;

std::vector<fs::path> model_folders() {
  std::vector<fs::path> folders{core::cache_directory(), "."};
  auto from_environment = [&](const char* name, const char* below) {
    if (const char* value = std::getenv(name); value != nullptr && *value != 0)
      folders.push_back(fs::path(value) / below);
  };
  from_environment("HF_HOME", "hub");
  from_environment("HF_HUB_CACHE", "");
  from_environment("LLAMA_CACHE", "");
  from_environment("OLLAMA_MODELS", "blobs");
  const std::string home = core::home_directory();
  if (!home.empty()) {
    for (const char* below : {".cache/huggingface/hub", ".cache/llama.cpp", ".cache/lm-studio/models",
                              ".lmstudio/models", ".ollama/models/blobs", ".cache/gpt4all", "models"}) {
      folders.push_back(fs::path(home) / below);
    }
  }
  return folders;
}

// Named .gguf, or one of Ollama's blobs, which have no extension and are recognised by their first bytes. Of
// the parts of a split model only the first: it opens the others.
bool may_be_model(const fs::path& path) {
  const auto part = core::gguf::split_name(path.string());
  if (part && part->number > 0) return false;
  return path.extension() == ".gguf" || path.filename().string().rfind("sha256", 0) == 0;
}

void look_into(const fs::path& folder, std::set<std::string>& seen, std::vector<FoundModel>& found) {
  std::error_code error;
  auto it = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
  const int deepest = folder == "." ? 1 : kDeepest;
  for (int files = 0; !error && it != fs::recursive_directory_iterator() && files < kMostFiles;
       it.increment(error), ++files) {
    if (it.depth() >= deepest) it.disable_recursion_pending();
    std::error_code ignored;
    if (!may_be_model(it->path()) || !it->is_regular_file(ignored)) continue;
    const fs::path real = fs::canonical(it->path(), ignored);
    if (ignored || !seen.insert(real.string()).second) continue;
    auto file = core::gguf::File::open(it->path().string());
    if (!file) continue;
    found.push_back({it->path().lexically_normal().string(),
                     std::string((*file)->text_or("general.name", "")),
                     std::string((*file)->text_or("general.architecture", "")), (*file)->bytes()});
  }
}

}  // namespace

std::vector<FoundModel> find_models() {
  std::vector<FoundModel> found;
  std::set<std::string> seen;
  for (const fs::path& folder : model_folders()) look_into(folder, seen, found);
  return found;
}

std::string system_info() {
  nlohmann::ordered_json tables = nlohmann::ordered_json::array();
  for (const core::Kernels* table : core::all_kernels()) {
    tables.push_back({{"name", table->name},
                      {"usable", core::usable(*table)},
                      {"chosen", table->name == core::kernels().name}});
  }
  nlohmann::ordered_json out = {
      {"cpu", core::cpu_features().name},     {"cores", core::usable_cores()},
      {"memory_bytes", core::memory_total()}, {"memory_available_bytes", core::memory_available()},
      {"cache", core::cache_directory()},     {"isa", tables}};
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::uint64_t free_memory() { return core::memory_available(); }

}  // namespace coppice
