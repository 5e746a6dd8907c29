#include "policy/fitted_file.h"

#include <algorithm>
#include <filesystem>

namespace coppice::core {

std::string fitted_file(const DrafterMix& mix) {
  for (const DrafterNode& drafter : mix) {
    if (drafter.files.empty()) continue;
    std::filesystem::path path = drafter.files.front();
    if (path.extension() != ".gguf") continue;
    path.replace_extension(".adaptive");
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored)) return path.string();
  }
  return {};
}

void begin_with_fitted(const DrafterMix& mix, ChosenPolicy& chosen) {
  auto& options = chosen.expression.options;
  const bool told =
      std::any_of(options.begin(), options.end(), [](const auto& option) { return option.first == "from"; });
  if (chosen.expression.name != "adaptive-fitted" || told) return;
  if (const std::string file = fitted_file(mix); !file.empty()) options.emplace_back("from", file);
}

}  // namespace coppice::core
