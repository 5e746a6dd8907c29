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

  Status add(const std::string& name, const ordered_json& json, std::vector<StagedMode>& modes) const {
    StagedMode mode;
    mode.name = name;
    const std::string who = fmt::format("mode \"{}\"", name);
    if (!json.is_object() || !json.contains("drafters") || !json["drafters"].is_string())
      return config_.wrong(who + ": \"drafters\" must be a drafter expression");
    mode.drafters = json["drafters"].get<std::string>();
    if (auto read = config_.read_string(who, json, "prior", mode.prior); !read)
      return tl::unexpected(read.error());
    if (name == "plain") return config_.wrong("\"plain\" is always measured; give the mode another name");
    for (std::string* text : {&mode.drafters, &mode.prior}) {
      if (Status filled = config_.fill_in(who, *text, mode.missing); !filled) return filled;
    }
    DraftBudget both;
    if (Status read = config_.read_budget(who, json, both); !read) return read;
    for (const char* sampling : {"greedy", "top-k"}) {
      DraftBudget budget = both;
      if (has_object(json, sampling)) {
        if (Status read = config_.read_budget(who, json[sampling], budget); !read) return read;
      }
      mode.budgets[sampling] = budget;
    }
    modes.push_back(mode);
    return {};
  }

  StagedConfig& config_;
};

}  // namespace

const StagedMode* StagedConfig::find(const std::string& name) const {
  for (const StagedMode& mode : modes) {
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
