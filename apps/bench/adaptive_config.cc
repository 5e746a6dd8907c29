#include "bench/adaptive_config.h"

#include <fmt/core.h>

#include <utility>

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

std::string why_left_out(const Mode& mode) {
  if (!mode.missing.empty()) return "there is no file " + mode.missing.front();
  Status known = check_policy(mode);
  return known ? "" : known.error().message;
}

Result<AdaptiveMethod> read_method(const AdaptiveConfig& config, const std::string& name,
                                   const ordered_json& json) {
  auto mode = config.read_mode(name, json);
  if (!mode) return tl::unexpected(mode.error());
  AdaptiveMethod method;
  method.mode = std::move(*mode);
  if (json.contains("of")) {
    if (!json["of"].is_string()) return config.wrong(fmt::format("mode \"{}\": \"of\" must be a text", name));
    method.of = json["of"].get<std::string>();
  }
  method.left_out = why_left_out(method.mode);
  return method;
}

Status read_table(AdaptiveConfig& config, const char* table, std::vector<AdaptiveMethod>& methods) {
  if (!has_object(config.text, table)) return {};
  for (const auto& [name, json] : config.text[table].items()) {
    auto method = read_method(config, name, json);
    if (!method) return tl::unexpected(method.error());
    methods.push_back(std::move(*method));
  }
  return {};
}

Status check_names(const AdaptiveConfig& config) {
  const ordered_json full = config.text.value("full", ordered_json());
  if (!full.is_null() && (!full.is_string() || config.find(full.get<std::string>()) == nullptr))
    return config.wrong(fmt::format("\"full\" names no method: {}", full.dump()));
  for (const AdaptiveMethod& method : config.fixed) {
    if (config.find(method.mode.name) != nullptr)
      return config.wrong(fmt::format("\"fixed\": there is a method \"{}\" already", method.mode.name));
  }
  for (const AdaptiveMethod& ablation : config.ablations) {
    if (config.find(ablation.of) == nullptr)
      return config.wrong(
          fmt::format("ablation \"{}\": \"of\" names no method: \"{}\"", ablation.mode.name, ablation.of));
    if (config.find(ablation.mode.name) != nullptr)
      return config.wrong(fmt::format("\"ablations\": there is a method \"{}\" already", ablation.mode.name));
  }
  return {};
}

}  // namespace

const AdaptiveMethod* AdaptiveConfig::find(const std::string& name) const {
  for (const AdaptiveMethod& method : methods) {
    if (method.mode.name == name) return &method;
  }
  return nullptr;
}

Result<AdaptiveConfig> read_adaptive_config(const std::string& path) {
  auto text = ConfigText::read(path, "methods");
  if (!text) return tl::unexpected(text.error());
  AdaptiveConfig config{std::move(*text), {}, {}, {}};
  for (auto [table, methods] :
       {std::pair{"methods", &config.methods}, {"fixed", &config.fixed}, {"ablations", &config.ablations}}) {
    if (Status read = read_table(config, table, *methods); !read) return tl::unexpected(read.error());
  }
  if (Status known = check_names(config); !known) return tl::unexpected(known.error());
  return config;
}

}  // namespace coppice::app
