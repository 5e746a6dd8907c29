#include "bench/config.h"

#include <fmt/core.h>

#include <cmath>
#include <filesystem>
#include <type_traits>
#include <utility>

#include "files.h"

namespace coppice::app {

using nlohmann::ordered_json;

namespace {

constexpr double kLargestWhole = 1e6;  // of what fields count; far above what they allow

}  // namespace

bool has_object(const ordered_json& json, const char* key) {
  return json.contains(key) && json[key].is_object();
}

Status check_policy(const Mode& mode) {
  Speculation speculation;
  speculation.policy = mode.policy;
  return speculation.validate();
}

tl::unexpected<Error> ConfigText::wrong(const std::string& what) const {
  return fail(fmt::format("{}: {}", path, what));
}

Result<ConfigText> ConfigText::read(const std::string& path, const char* table) {
  auto text = read_text(path);
  if (!text) return tl::unexpected(text.error());
  ConfigText config;
  config.path = path;
  config.text = ordered_json::parse(*text, nullptr, false);
  if (config.text.is_discarded()) return fail(fmt::format("{} is no JSON", path));
  if (!config.text.is_object() || !has_object(config.text, table) || config.text[table].empty())
    return config.wrong(fmt::format("an object with \"{}\" is wanted (docs/measuring.md shows one)", table));
  if (!has_object(config.text, "files")) return config;
  for (const auto& [part, file] : config.text["files"].items()) {
    if (!file.is_string()) return config.wrong(fmt::format("\"files\": {} must be the name of a file", part));
    config.files[part] = file.get<std::string>();
  }
  return config;
}

Status ConfigText::fill_in(const std::string& who, std::string& expression,
                           std::vector<std::string>& missing) const {
  for (std::size_t at = 0; (at = expression.find('{', at)) != std::string::npos;) {
    const std::size_t end = expression.find('}', at);
    const std::string part = expression.substr(at + 1, end == std::string::npos ? end : end - at - 1);
    const auto file = files.find(part);
    if (file == files.end()) return wrong(fmt::format("{}: \"files\" says nothing of {{{}}}", who, part));
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file->second, ignored)) missing.push_back(file->second);
    expression.replace(at, part.size() + 2, file->second);
    at += file->second.size();
  }
  return {};
}

Status ConfigText::read_budget(const std::string& who, const ordered_json& json, DraftBudget& budget) const {
  const auto number = [&](const char* key, auto& out) -> Status {
    if (!json.contains(key)) return {};
    using Number = std::remove_reference_t<decltype(out)>;
    if (!json[key].is_number())
      return wrong(fmt::format("{}: {} = {} must be a number", who, key, json[key].dump()));
    const double value = json[key].get<double>();
    if (std::is_integral_v<Number> && (value != std::floor(value) || std::abs(value) > kLargestWhole))
      return wrong(
          fmt::format("{}: {} = {} must be a whole number below a million", who, key, json[key].dump()));
    out = static_cast<Number>(value);
    return {};
  };
  for (Status read :
       {number("nodes", budget.nodes), number("depth", budget.depth), number("width", budget.width),
        number("price", budget.price), number("pass_price", budget.pass_price)}) {
    if (!read) return read;
  }
  Speculation checked;
  checked.nodes = budget.nodes;
  checked.depth = budget.depth;
  checked.width = budget.width;
  checked.price = budget.price;
  checked.pass_price = budget.pass_price;
  if (Status valid = checked.validate(); !valid)
    return wrong(fmt::format("{}: {}", who, valid.error().message));
  if (budget.nodes < 1 || budget.nodes > 64)
    return wrong(fmt::format("{}: nodes = {}; 1 to 64 are wanted", who, budget.nodes));
  return {};
}

Result<Mode> ConfigText::read_mode(const std::string& name, const ordered_json& json) const {
  Mode mode;
  mode.name = name;
  const std::string who = fmt::format("mode \"{}\"", name);
  if (!json.is_object() || !json.contains("drafters") || !json["drafters"].is_string())
    return wrong(who + ": \"drafters\" must be a drafter expression");
  mode.drafters = json["drafters"].get<std::string>();
  for (auto [key, value] : {std::pair{"prior", &mode.prior}, {"policy", &mode.policy}}) {
    if (!json.contains(key)) continue;
    if (!json[key].is_string()) return wrong(fmt::format("{}: \"{}\" must be a text", who, key));
    *value = json[key].get<std::string>();
  }
  if (name == "plain") return wrong("\"plain\" is always measured; give the mode another name");
  for (std::string* expression : {&mode.drafters, &mode.prior, &mode.policy}) {
    if (Status filled = fill_in(who, *expression, mode.missing); !filled)
      return tl::unexpected(filled.error());
  }
  DraftBudget both;
  if (Status read = read_budget(who, json, both); !read) return tl::unexpected(read.error());
  for (const char* sampling : {"greedy", "top-k"}) {
    DraftBudget budget = both;
    if (has_object(json, sampling)) {
      if (Status read = read_budget(who, json[sampling], budget); !read) return tl::unexpected(read.error());
    }
    mode.budgets[sampling] = budget;
  }
  return mode;
}

}  // namespace coppice::app
