// The lists of models that the two APIs give.
#include <fmt/chrono.h>

#include <ctime>

#include "json_body.h"

namespace coppice::serve {
namespace {

Json openai_model(const ServedModel& model) {
  return {{"id", model.name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "coppice"},
          {"architecture", model.architecture},
          {"format", model.format},
          {"parameters", model.parameters},
          {"bytes", model.bytes}};
}

// "135M", "1.7B"
std::string short_number(std::uint64_t count) {
  const auto number = static_cast<double>(count);
  if (number >= 1e9) return fmt::format("{:.1f}B", number / 1e9);
  if (number >= 1e6) return fmt::format("{:.0f}M", number / 1e6);
  return fmt::format("{:.0f}K", number / 1e3);
}

Json ollama_model(const ServedModel& model) {
  const Json details = {{"format", "gguf"},
                        {"family", model.architecture},
                        {"families", Json::array({model.architecture})},
                        {"parameter_size", short_number(model.parameters)},
                        {"quantization_level", model.format}};
  return {{"name", model.name},
          {"model", model.name},
          {"modified_at",
           fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(model.created)))},
          {"size", model.bytes},
          {"digest", model.hash},
          {"details", details}};
}

}  // namespace

std::string list_openai(std::span<const ServedModel> models) {
  Json list = Json::array();
  for (const ServedModel& model : models) list.push_back(openai_model(model));
  return dump({{"object", "list"}, {"data", std::move(list)}});
}

std::string show_openai(const ServedModel& model) { return dump(openai_model(model)); }

std::string list_ollama(std::span<const ServedModel> models) {
  Json list = Json::array();
  for (const ServedModel& model : models) list.push_back(ollama_model(model));
  return dump({{"models", std::move(list)}});
}

}  // namespace coppice::serve
