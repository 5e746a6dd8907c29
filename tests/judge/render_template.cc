// The jinja room as a filter, for tests/judge/jinja_judge.py.
// A line in: JSON {"template": text, "variables": {...}, "now": seconds}; the template is that of the line
// before if it is left out. A line out: {"text": ..., "data": [[begin, end], ...]} in bytes, or {"error":
// ...}.
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/check.h"
#include "jinja/print.h"
#include "jinja/template.h"

namespace coppice::core::jinja {
namespace {

using Json = nlohmann::ordered_json;

Result<Text> render(const Template& program, const Json& line) {
  Variables variables;
  for (const auto& [name, json] : line.at("variables").items()) {
    COPPICE_TRY(variables.emplace_back(name, Value()).second, from_json(json));
  }
  RenderOptions options;
  options.now = line.value("now", std::int64_t{0});
  return program.render(variables, options);
}

Json answer(std::optional<Template>& program, const Json& line) {
  if (line.contains("template")) {
    program.reset();
    auto parsed = Template::parse(line["template"].get<std::string>());
    if (!parsed) return {{"error", parsed.error().message}};
    program = std::move(*parsed);
  }
  if (!program) return {{"error", "there is no template"}};
  const auto text = render(*program, line);
  if (!text) return {{"error", text.error().message}};
  Json data = Json::array();
  for (const TextRange& range : text->data()) data.push_back({range.begin, range.end});
  return {{"text", text->bytes()}, {"data", data}};
}

}  // namespace
}  // namespace coppice::core::jinja

int main() {
  using coppice::core::jinja::answer;
  using Json = nlohmann::ordered_json;
  std::optional<coppice::core::jinja::Template> program;
  for (std::string line; std::getline(std::cin, line);)
    std::cout << answer(program, Json::parse(line)).dump(-1, ' ', true, Json::error_handler_t::replace)
              << '\n';
}
