#include "bench/staged_config.h"

#include <fmt/core.h>

#include <filesystem>

#include "files.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

class Reader {
 public:
  explicit Reader(StagedConfig& config) : config_(config) {}

  Status read() {
    const ordered_json& text = config_.text;
    if (!text.is_object() || !object(text, "modes") || text["modes"].empty())
      return wrong("an object with \"modes\" is wanted (docs/measuring.md shows one)");
    if (Status files = read_files(); !files) return files;
    for (const auto& [name, mode] : text["modes"].items()) {
      if (Status read = add(name, mode, config_.modes); !read) return read;
    }
    if (object(text, "draft_sizes")) {
      for (const auto& [name, drafters] : text["draft_sizes"].items()) {
        if (Status read = add(name, {{"drafters", drafters}}, config_.draft_sizes); !read) return read;
      }
    }
    return read_names();
  }

 private:
  static bool object(const ordered_json& json, const char* key) {
    return json.contains(key) && json[key].is_object();
  }
  Status wrong(const std::string& what) const { return fail(fmt::format("{}: {}", config_.path, what)); }

  Status read_files() {
    if (!object(config_.text, "files")) return {};
    for (const auto& [part, file] : config_.text["files"].items()) {
      if (!file.is_string()) return wrong(fmt::format("\"files\": {} must be the name of a file", part));
      config_.files[part] = file.get<std::string>();
    }
    return {};
  }

  Status read_names() {
    const ordered_json& text = config_.text;
    const ordered_json mixed = text.value("mixed", ordered_json(config_.modes.back().name));
    if (!mixed.is_string() || config_.find(mixed.get<std::string>()) == nullptr)
      return wrong(fmt::format("\"mixed\" names no mode: {}", mixed.dump()));
    config_.mixed = mixed.get<std::string>();
    if (!text.contains("alone")) return {};
    for (const ordered_json& name : text["alone"]) {
      if (!name.is_string() || config_.find(name.get<std::string>()) == nullptr)
        return wrong(fmt::format("\"alone\" names no mode: {}", name.dump()));
      config_.alone.push_back(name.get<std::string>());
    }
    return {};
  }

  // {part} in an expression becomes the file that plays it.
  Status fill_in(StagedMode& mode, std::string& text) const {
    for (std::size_t at = 0; (at = text.find('{', at)) != std::string::npos;) {
      const std::size_t end = text.find('}', at);
      const std::string part = text.substr(at + 1, end == std::string::npos ? end : end - at - 1);
      const auto file = config_.files.find(part);
      if (file == config_.files.end())
        return wrong(fmt::format("mode \"{}\": \"files\" says nothing of {{{}}}", mode.name, part));
      std::error_code ignored;
      if (!std::filesystem::is_regular_file(file->second, ignored)) mode.missing.push_back(file->second);
      text.replace(at, part.size() + 2, file->second);
      at += file->second.size();
    }
    return {};
  }

  Status number(const StagedMode& mode, const ordered_json& json, const char* key, auto& out) const {
    if (!json.contains(key)) return {};
    if (!json[key].is_number())
      return wrong(fmt::format("mode \"{}\": {} = {} must be a number", mode.name, key, json[key].dump()));
    out = json[key].get<std::remove_reference_t<decltype(out)>>();
    return {};
  }

  Status read_budget(const StagedMode& mode, const ordered_json& json, DraftBudget& budget) const {
    for (auto [key, value] :
         {std::pair{"nodes", &budget.nodes}, {"depth", &budget.depth}, {"width", &budget.width}}) {
      if (Status read = number(mode, json, key, *value); !read) return read;
    }
    if (Status read = number(mode, json, "price", budget.price); !read) return read;
    if (Status read = number(mode, json, "pass_price", budget.pass_price); !read) return read;
    Speculation checked;
    checked.nodes = budget.nodes;
    checked.depth = budget.depth;
    checked.width = budget.width;
    checked.price = budget.price;
    checked.pass_price = budget.pass_price;
    if (Status valid = checked.validate(); !valid)
      return wrong(fmt::format("mode \"{}\": {}", mode.name, valid.error().message));
    if (budget.nodes < 1 || budget.nodes > 64)
      return wrong(fmt::format("mode \"{}\": nodes = {}; 1 to 64 are wanted", mode.name, budget.nodes));
    return {};
  }

  Status add(const std::string& name, const ordered_json& json, std::vector<StagedMode>& modes) const {
    StagedMode mode;
    mode.name = name;
    if (!json.is_object() || !json.contains("drafters") || !json["drafters"].is_string())
      return wrong(fmt::format("mode \"{}\": \"drafters\" must be a drafter expression", name));
    mode.drafters = json["drafters"].get<std::string>();
    if (json.contains("prior") && json["prior"].is_string()) mode.prior = json["prior"].get<std::string>();
    if (name == "plain") return wrong("\"plain\" is always measured; give the mode another name");
    for (std::string* text : {&mode.drafters, &mode.prior}) {
      if (Status filled = fill_in(mode, *text); !filled) return filled;
    }
    DraftBudget both;
    if (Status read = read_budget(mode, json, both); !read) return read;
    for (const char* sampling : {"greedy", "top-k"}) {
      DraftBudget budget = both;
      if (object(json, sampling)) {
        if (Status read = read_budget(mode, json[sampling], budget); !read) return read;
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
  auto text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  StagedConfig config;
  config.path = path;
  config.text = ordered_json::parse(*text, nullptr, false);
  if (config.text.is_discarded()) return fail(fmt::format("{} is no JSON", path));
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
