#include "settings.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace coppice::serve {
namespace {

using nlohmann::ordered_json;

constexpr char kSeparator = ';';
constexpr double kMostWhole = 1e15;  // up to here a double is exactly its whole number

bool takes_several(const CLI::Option& option) { return option.get_expected_max() > 1; }

bool is_flag(const CLI::Option& option) { return option.get_expected_max() == 0; }

bool is_number(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.rfind("INT", 0) == 0 || type.rfind("UINT", 0) == 0 || type.rfind("FLOAT", 0) == 0;
}

// The object that a file is. A name twice would be one of the two in silence.
Result<ordered_json> parse_file(std::string_view text, const std::string& file) {
  std::set<std::string> names;
  std::string twice;
  const auto look = [&](int depth, ordered_json::parse_event_t event, ordered_json& parsed) {
    const bool key = event == ordered_json::parse_event_t::key && depth == 1;
    if (key && !names.insert(parsed.get<std::string>()).second) twice = parsed.get<std::string>();
    return true;
  };
  try {
    ordered_json settings = ordered_json::parse(text, look, true, true);
    if (!settings.is_object())
      return fail(fmt::format("{} is no JSON object with options as keys; --print-config shows one", file));
    if (!twice.empty()) return fail(fmt::format("{}: \"{}\" is there twice; once is right", file, twice));
    return settings;
  } catch (const ordered_json::parse_error& error) {
    const std::string_view what = error.what();
    const std::size_t name = what.find("] ");  // of the exception
    return fail(fmt::format("{}: {}", file, what.substr(name == std::string_view::npos ? 0 : name + 2)));
  }
}

// "0 to 65535" of an option that takes whole numbers of a range; empty: it does not.
std::string whole_range(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  constexpr std::string_view kIn = "INT in [", kTo = " - ";
  const std::size_t in = type.find(kIn), begin = in + kIn.size(), end = type.find(']', begin);
  const std::size_t to = type.find(kTo, begin);
  if (in == std::string::npos || end == std::string::npos || to >= end) return "";
  return type.substr(begin, to - begin) + " to " + type.substr(to + kTo.size(), end - to - kTo.size());
}

bool is_whole(const std::string& text) {
  const std::size_t sign = text.rfind('-', 0) == 0 ? 1 : 0;
  return text.size() > sign && text.find_first_not_of("0123456789", sign) == std::string::npos;
}

// As a person would have typed them.
Status give(CLI::Option& option, const std::vector<std::string>& values, const std::string& origin) {
  try {
    for (const std::string& value : values) option.add_result(value);
    option.run_callback();
  } catch (const CLI::Error& error) {
    option.clear();
    const std::string range = whole_range(option);
    for (const std::string& value : values)
      if (!range.empty() && !is_whole(value))
        return fail(fmt::format("{}: {} is no whole number; one from {} is wanted", origin, value, range));
    return fail(fmt::format("{}: {}", origin, error.what()));
  }
  return {};
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == kSeparator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// A value of the file as the text that would be typed; false for objects, arrays and null.
bool typed(const ordered_json& value, std::string& text) {
  if (value.is_string()) {
    text = value.get<std::string>();
  } else if (const auto* number = value.get_ptr<const double*>();
             number != nullptr && *number == std::floor(*number) && std::abs(*number) < kMostWhole) {
    text = fmt::format("{:.0f}", *number);  // 8000.0 is 8000
  } else if (value.is_number() || value.is_boolean()) {
    text = value.dump();
  } else {
    return false;
  }
  return true;
}

ordered_json printed(const CLI::Option& option, const std::string& text) {
  if (!is_number(option) && !is_flag(option)) return text;
  const ordered_json value = ordered_json::parse(text, nullptr, false);
  return value.is_discarded() ? ordered_json(text) : value;
}

}  // namespace

Settings::Settings(CLI::App& command, std::string prefix, std::vector<std::string> never)
    : command_(command), prefix_(std::move(prefix)), never_(std::move(never)) {
  never_.push_back("help");
}

CLI::Option* Settings::find(std::string_view name) const {
  if (std::find(never_.begin(), never_.end(), name) != never_.end()) return nullptr;
  for (CLI::Option* option : command_.get_options({})) {
    const auto& names = option->get_lnames();
    if (std::find(names.begin(), names.end(), name) != names.end()) return option;
  }
  return nullptr;
}

Status Settings::read_environment(const std::vector<std::string>& environment) {
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    if (entry.rfind(prefix_, 0) != 0 || equals == std::string::npos) continue;
    const std::string variable = entry.substr(0, equals), value = entry.substr(equals + 1);
    std::string name = variable.substr(prefix_.size());
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return c == '_' ? '-' : std::tolower(c); });
    CLI::Option* option = find(name);
    if (option == nullptr) return fail(fmt::format("{}: there is no option --{}", variable, name));
    if (option->count() > 0) continue;
    const auto values = takes_several(*option) ? split(value) : std::vector<std::string>{value};
    if (Status given = give(*option, values, variable); !given) return given;
  }
  return {};
}

Status Settings::read_file(std::string_view text, const std::string& file) {
  const auto settings = parse_file(text, file);
  if (!settings) return tl::unexpected(settings.error());
  for (const auto& [name, value] : settings->items()) {
    if (name == "config")
      return fail(fmt::format("{}: \"config\" would name another file; options of both go into one", file));
    CLI::Option* option = find(name);
    if (option == nullptr)
      return fail(fmt::format("{}: there is no option \"{}\"; --help lists them", file, name));
    std::vector<std::string> values;
    const bool list = value.is_array();
    bool right = !list || takes_several(*option);
    for (const ordered_json& one : list ? value : ordered_json::array({value})) {
      values.emplace_back();
      right = typed(one, values.back()) && right;
    }
    if (!right)
      return fail(fmt::format(
          "{}: \"{}\" is {}; {} is wanted", file, name, value.type_name(),
          takes_several(*option) ? "a text, or an array of texts," : "one text, number, true or false"));
    if (option->count() > 0 || values.empty()) continue;
    if (Status given = give(*option, values, fmt::format("{}: \"{}\"", file, name)); !given) return given;
  }
  return {};
}

std::string Settings::print(const std::vector<std::string>& secret) const {
  ordered_json out = ordered_json::object();
  for (const CLI::Option* option : std::as_const(command_).get_options({})) {
    if (option->get_lnames().empty()) continue;
    const std::string& name = option->get_lnames().front();
    const bool hidden = std::find(secret.begin(), secret.end(), name) != secret.end();
    if (hidden || find(name) == nullptr) continue;
    const std::vector<std::string> values = option->results();
    if (takes_several(*option)) {
      if (!values.empty()) out[name] = values;
    } else if (!values.empty()) {
      out[name] = printed(*option, values.back());
    } else if (is_flag(*option)) {
      out[name] = false;
    } else if (!option->get_default_str().empty()) {
      out[name] = printed(*option, option->get_default_str());
    }
  }
  return out.dump(2);
}

std::vector<std::string> environment_variables() {
  std::vector<std::string> all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) all.emplace_back(*entry);
  return all;
}

}  // namespace coppice::serve
