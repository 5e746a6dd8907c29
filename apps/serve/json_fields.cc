#include "json_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace coppice::serve {
namespace {

constexpr std::size_t kLongestName = 200;  // bytes of a name that an error shows

}  // namespace

Fields::Fields(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
  if (!json_.is_object()) error("", fmt::format("must be an object, not {}", show(json_)));
}

const Json* Fields::find(std::string_view name) {
  known_.emplace_back(name);
  if (!json_.is_object()) return nullptr;
  const auto at = json_.find(known_.back());
  return at == json_.end() || at->is_null() ? nullptr : &*at;
}

const Json* Fields::want(std::string_view name, bool right(const Json&), std::string_view what) {
  const Json* found = find(name);
  if (!found || right(*found)) return found;
  error(name, fmt::format("must be {}, not {}", what, show(*found)));
  return nullptr;
}

bool Fields::boolean(std::string_view name, bool fallback) {
  const Json* found = want(
      name, [](const Json& json) { return json.is_boolean(); }, "true or false");
  return found ? found->get<bool>() : fallback;
}

std::int64_t Fields::integer(std::string_view name, std::int64_t low, std::int64_t high,
                             std::int64_t fallback) {
  const Json* found = find(name);
  if (!found) return fallback;
  const auto number = whole(*found);
  if (number && *number >= low && *number <= high) return *number;
  error(name, fmt::format("must be a whole number from {} to {}, not {}", low, high, show(*found)));
  return fallback;
}

std::optional<int> Fields::maybe_integer(std::string_view name, int low, int high) {
  const auto fallback = static_cast<std::int64_t>(low) - 1;
  const std::int64_t number = integer(name, low, high, fallback);
  return number == fallback ? std::nullopt : std::optional<int>(static_cast<int>(number));
}

std::optional<float> Fields::maybe_number(std::string_view name, double low, double high) {
  const Json* found = find(name);
  if (!found) return std::nullopt;
  if (found->is_number()) {
    const auto number = found->get<double>();
    if (number >= low && number <= high) return static_cast<float>(number);
  }
  error(name, fmt::format("must be a number from {} to {}, not {}", low, high, show(*found)));
  return std::nullopt;
}

float Fields::number(std::string_view name, double low, double high, float fallback) {
  return maybe_number(name, low, high).value_or(fallback);
}

float Fields::share(std::string_view name, float fallback) {
  const Json* found = find(name);
  if (!found) return fallback;
  const double number = found->is_number() ? found->get<double>() : 0;
  if (number > 0 && number <= 1) return static_cast<float>(number);
  error(name, fmt::format("must be above 0 and at most 1, which is off, not {}", show(*found)));
  return fallback;
}

std::optional<std::string> Fields::maybe_text(std::string_view name) {
  const Json* found = want(
      name, [](const Json& json) { return json.is_string(); }, "a string");
  return found ? std::optional(found->get<std::string>()) : std::nullopt;
}

std::string Fields::text(std::string_view name, std::string fallback) {
  return maybe_text(name).value_or(std::move(fallback));
}

std::string Fields::choice(std::string_view name, std::initializer_list<std::string_view> choices) {
  std::string fallback(*choices.begin());
  const Json* found = find(name);
  if (!found) return fallback;
  if (found->is_string()) {
    auto said = found->get<std::string>();
    if (std::find(choices.begin(), choices.end(), said) != choices.end()) return said;
  }
  error(name, fmt::format("must be one of {}, not {}", fmt::join(choices, ", "), show(*found)));
  return fallback;
}

std::vector<std::string> Fields::texts(std::string_view name, std::size_t most) {
  const Json* found = find(name);
  if (!found) return {};
  if (found->is_string()) return {found->get<std::string>()};
  if (!found->is_array() || found->size() > most) {
    const std::string given = found->is_array() ? fmt::format("{} of them", found->size()) : show(*found);
    error(name, fmt::format("must be a string or a list of at most {} strings, not {}", most, given));
    return {};
  }
  std::vector<std::string> out;
  for (const Json& element : *found) {
    if (!element.is_string()) {
      error(name, fmt::format("must be strings; element {} is {}", out.size(), show(element)));
      return {};
    }
    out.push_back(element.get<std::string>());
  }
  return out;
}

const Json* Fields::object(std::string_view name) {
  return want(
      name, [](const Json& json) { return json.is_object(); }, "an object");
}

const Json* Fields::array(std::string_view name) {
  return want(
      name, [](const Json& json) { return json.is_array(); }, "a list");
}

void Fields::refuse(std::string_view name, std::string_view why) {
  if (has(name)) error(name, why);
}

void Fields::ignore(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) known_.emplace_back(name);
}

void Fields::error(std::string_view name, std::string_view message) {
  const std::string path = path_of(name);
  error(invalid(path, fmt::format("{}: {}", path.empty() ? "the body" : path, message)));
}

void Fields::error(ApiError error) {
  if (ok()) error_ = std::move(error);
}

tl::expected<void, ApiError> Fields::finish() {
  if (!ok()) return tl::unexpected(*error_);
  for (const auto& [name, value] : json_.items()) {
    if (value.is_null() || std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    const std::string path = path_of(name.empty() ? "\"\"" : shortened(name, kLongestName));
    return tl::unexpected(invalid(path, fmt::format("{}: this field is not known here", path)));
  }
  return {};
}

std::string Fields::path_of(std::string_view name) const {
  if (path_.empty() || name.empty()) return path_ + std::string(name);
  return fmt::format("{}.{}", path_, name);
}

bool is_whole(const Json& json) { return whole(json).has_value(); }

std::optional<std::int64_t> whole(const Json& json) {
  constexpr double kLimit = 9007199254740992.0;  // 2^53: up to here a double is exact
  if (json.is_number_unsigned()) {
    const auto number = json.get<std::uint64_t>();
    if (number <= static_cast<std::uint64_t>(INT64_MAX)) return static_cast<std::int64_t>(number);
    return std::nullopt;
  }
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (!json.is_number_float()) return std::nullopt;
  const auto number = json.get<double>();
  if (std::floor(number) != number || std::abs(number) > kLimit) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::string show(const Json& json) {
  constexpr std::size_t kShown = 60;
  if (json.is_structured()) return json.is_array() ? "a list" : "an object";
  return shortened(dump(json), kShown);
}

}  // namespace coppice::serve
