#include "bench/staged_config.h"

#include <fmt/core.h>

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

class Reader {
 public:
  explicit Reader(StagedConfig& config) : config_(config) {}

  Status read() {
    const ordered_json& text = config_.text;
    for (const auto& [name, mode] : text["modes"].items()) {
      if (Status read = add(name, mode, config_.modes); !read) return read;
    }
    if (has_object(text, "draft_sizes")) {
      for (const auto& [name, drafters] : text["draft_sizes"].items()) {
        if (Status read = add(name, {{"drafters", drafters}}, config_.draft_sizes); !read) return read;
      }
    }
    return read_names();
  }

 private:
  Status read_names() {
    const ordered_json& text = config_.text;
    const ordered_json mixed = text.value("mixed", ordered_json(config_.modes.back().name));
    if (!mixed.is_string() || config_.find(mixed.get<std::string>()) == nullptr)
      return config_.wrong(fmt::format("\"mixed\" names no mode: {}", mixed.dump()));
    config_.mixed = mixed.get<std::string>();
    if (!text.contains("alone")) return {};
    for (const ordered_json& name : text["alone"]) {
      if (!name.is_string() || config_.find(name.get<std::string>()) == nullptr)
        return config_.wrong(fmt::format("\"alone\" names no mode: {}", name.dump()));
      config_.alone.push_back(name.get<std::string>());
    }
    return {};
  }

  Status add(const std::string& name, const ordered_json& json, std::vector<Mode>& modes) const {
    auto mode = config_.read_mode(name, json);
    if (!mode) return tl::unexpected(mode.error());
    if (Status known = check_policy(*mode); !known)
      return config_.wrong(fmt::format("mode \"{}\": {}", name, known.error().message));
    modes.push_back(std::move(*mode));
    return {};
  }

  StagedConfig& config_;
};

}  // namespace

const Mode* StagedConfig::find(const std::string& name) const {
  for (const Mode& mode : modes) {
    if (mode.name == name) return &mode;
  }
  return nullptr;
}

Result<StagedConfig> read_staged_config(const std::string& path) {
  auto text = ConfigText::read(path, "modes");
  if (!text) return tl::unexpected(text.error());
  StagedConfig config{std::move(*text), {}, {}, {}, {}};
  if (Status read = Reader(config).read(); !read) return tl::unexpected(read.error());
  return config;
}

ordered_json budget_json(const DraftBudget& budget) {
  // A float's shortest decimal form: 0.01 and not 0.00999999977.
  return {{"nodes", budget.nodes},
          {"depth", budget.depth},
          {"width", budget.width},
          {"price", std::stod(fmt::format("{}", budget.price))},
          {"pass_price", std::stod(fmt::format("{}", budget.pass_price))}};
}

void set_budget(ordered_json& config, const std::string& mode, const std::string& sampling,
                const DraftBudget& budget) {
  config["modes"][mode][sampling] = budget_json(budget);
}

}  // namespace coppice::app
