#include "policy/adaptive_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <variant>

#include "base/check.h"
#include "base/os.h"
#include "draft/arguments.h"
#include "tree/token_tree.h"

namespace coppice::core {
namespace {

using Options = AdaptiveOptions;
using Member = std::variant<int Options::*, double Options::*>;

constexpr double kNever = Options::kNever;
constexpr double kNoOff = -1;  // it cannot be switched off
constexpr int kMostTokens = Options::kMostTokens;

struct Row {
  std::string_view name;
  Member member;
  double least, most;
  double off;  // what `off` means
  std::string_view summary;
};

constexpr Row kRows[] = {
    {"tau", &Options::tau, 0, 1, 0, "least confidence in a prompt to draft for it at all"},
    {"analyse", &Options::analyse, 1, kMostTokens, kNoOff, "last tokens of the prompt it is judged by"},
    {"alpha", &Options::alpha, 0.5, 1.5, kNoOff, "width of the draft without a gate"},
    {"exit", &Options::exit, 0, 2, 0, "alpha under which the draft stops at its early exit"},
    {"every", &Options::every, 1, kMostTokens, kNoOff, "tokens between decisions of the gate"},
    {"again", &Options::again, 0, 1, 0, "acceptance under which the gate decides at once"},
    {"batch", &Options::batch, 1, kMaxTreeNodes - 1, 0, "guesses a pass of all requests, 8, 16, 32 or 64"},
    {"reject", &Options::reject, 0, 1, 0, "least chance of a guess that is verified"},
    {"patience", &Options::patience, 1, 1e6, 1, "by how much a run may fall behind before it ends"},
    {"pool", &Options::pool, 1, 16, 1, "candidates for each place in the window"},
    {"first", &Options::first, 1, kMaxTreeNodes - 1, kNoOff, "guesses a pass of a request at first"},
    {"sure", &Options::sure, 0, 1, kNoOff, "mean chance of guesses from which the window grows"},
    {"upgrade", &Options::upgrade, 0, 1e6, kNever, "excess of the draft's perplexity that makes it larger"},
    {"failure", &Options::failure, 0, 1e6, kNever, "excess of the draft's perplexity that is a failure"},
    {"step", &Options::step, 0, 1, kNoOff, "of alpha, when the draft is made larger"},
    {"compare", &Options::compare, 1, kMostTokens, kNoOff, "tokens whose perplexities are compared"},
    {"stop", &Options::stop, 0, 1, 0, "acceptance under which speculation ends"},
    {"monitor", &Options::monitor, 1, kMostTokens, kNoOff, "guesses that acceptance is judged by"},
    {"rest", &Options::rest, 1, 1 << 20, kNoOff, "tokens without speculation before a probe"},
    {"probe", &Options::probe, 1, kMostTokens, kNoOff, "guesses that show whether to resume"},
};

// What `adaptive-fitted` changes where nothing was fitted for the draft (fitted_file.h, docs/policies.md).
struct Setting {
  std::string_view name, value;
};
constexpr Setting kFitted[] = {{"tau", "0.45"},  {"reject", "0.2"}, {"sure", "0.5"},
                               {"upgrade", "2"}, {"failure", "4"},  {"stop", "0.35"}};

std::string where(const DrafterNode& expression) { return "policy `" + expression.name + "`"; }

std::string values_of(const Row& row) {
  const bool whole = std::holds_alternative<int Options::*>(row.member);
  return fmt::format("{} from {} to {}{}", whole ? "a whole number" : "a number", row.least, row.most,
                     row.off == kNoOff ? "" : ", or off");
}

Status set_number(const Row& row, std::string_view text, Options& options) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  const bool number =
      parsed.ec == std::errc() && parsed.ptr == end && value >= row.least && value <= row.most;
  const bool off = row.off != kNoOff && text == "off";
  const bool whole = std::holds_alternative<int Options::*>(row.member);
  if (!off && (!number || (whole && value != std::floor(value))))
    return fail(fmt::format("{}={} should be {}", row.name, text, values_of(row)));
  if (off) value = row.off;
  if (whole)
    options.*std::get<int Options::*>(row.member) = static_cast<int>(value);
  else
    options.*std::get<double Options::*>(row.member) = value;
  return {};
}

// One of two words.
Status set_choice(std::string_view name, std::string_view text, std::string_view yes, std::string_view no,
                  bool& value) {
  if (text != yes && text != no) return fail(fmt::format("{}={} should be {} or {}", name, text, yes, no));
  value = text == yes;
  return {};
}

Status set_task(std::string_view text, Options& options) {
  if (text == "maths") {
    options.tau = 0.6;
  } else if (text == "creative") {
    options.tau = 0.8;
  } else if (text == "any") {
    options.tau = 0.7;
  } else {
    return fail(fmt::format("task={} should be maths, creative or any", text));
  }
  return {};
}

Status set_option(std::string_view name, std::string_view text, Options& options) {
  if (name == "task") return set_task(text, options);
  if (name == "window") return set_choice(name, text, "dynamic", "static", options.dynamic);
  if (name == "acceptance") return set_choice(name, text, "sliding", "whole", options.sliding);
  if (name == "gate") {
    if (text.empty()) return fail("gate= should be a file, or off");
    options.gate = text == "off" ? std::string() : std::string(text);
    return {};
  }
  if (name == "from") return fail("from=FILE stands in the policy's expression, not in a file");
  std::string choices = "task, window, acceptance, gate, from";
  for (const Row& row : kRows) {
    if (row.name == name) return set_number(row, text, options);
    choices += fmt::format(", {}", row.name);
  }
  return fail(fmt::format("there is no option `{}`; there is {}", name, choices));
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// What a person would write in a line: errors show it.
bool is_text(std::string_view line) {
  constexpr std::size_t kLongest = 4096;  // a gate's path
  const auto control = [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F;
  };
  return line.size() <= kLongest && std::none_of(line.begin(), line.end(), control);
}

Status read_setting(std::string_view line, const std::filesystem::path& folder, Options& options) {
  const std::string_view text = trimmed(line.substr(0, line.find('#')));
  if (text.empty()) return {};
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || !is_text(text)) return fail("expected name = value");
  const std::string_view name = trimmed(text.substr(0, equals));
  std::string value(trimmed(text.substr(equals + 1)));
  if (name == "gate" && value != "off" && !value.empty()) value = (folder / value).string();
  return set_option(name, value, options);
}

// Lines `name = value`; what follows a # is a remark. A gate's path is seen from the file's folder.
Status read_settings(const std::string& path, Options& options) {
  const auto content = read_file(path);
  if (!content) return fail(fmt::format("{}; it should hold lines `name = value`", content.error().message));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::string_view left = *content;
  for (int number = 1; !left.empty(); ++number) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    if (Status set = read_setting(left.substr(0, end), folder, options); !set)
      return fail(fmt::format("{}, line {}: {}", path, number, set.error().message));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return {};
}

}  // namespace

double prompt_confidence(double surprise, int vocab) {
  return std::clamp(1 - surprise / std::log(std::max(2.0, static_cast<double>(vocab))), 0.0, 1.0);
}

std::span<const AdaptiveOption> adaptive_option_rows() {
  static const std::vector<AdaptiveOption> rows = [] {
    static std::vector<std::string> values;  // what the views below look at
    values.reserve(std::size(kRows));
    std::vector<AdaptiveOption> out;
    for (const Row& row : kRows) out.push_back({row.name, values.emplace_back(values_of(row)), row.summary});
    out.push_back({"task", "maths, creative or any", "tau of 0.6, 0.8 or 0.7"});
    out.push_back({"window", "dynamic or static", "whether it follows confidence"});
    out.push_back({"acceptance", "sliding or whole", "of the last guesses, or all since drafting began"});
    out.push_back({"gate", "a file, or off", "the network that gives alpha"});
    out.push_back({"from", "a file, or off", "lines `name = value` to begin with"});
    return out;
  }();
  return rows;
}

Result<AdaptiveOptions> read_adaptive_options(const DrafterNode& expression, bool read_files) {
  if (!expression.files.empty() || !expression.inner.empty())
    return fail(fmt::format("{0} takes options only; write {1}(tau=0.7, batch=16)", where(expression),
                            expression.name));
  Options options;
  if (expression.name == "adaptive-fitted")
    for (const Setting& setting : kFitted)
      COPPICE_CHECK(set_option(setting.name, setting.value, options).has_value());
  for (const auto& [name, value] : expression.options)
    if (name == "from" && value != "off" && read_files) COPPICE_TRY_STATUS(read_settings(value, options));
  for (const auto& [name, value] : expression.options) {
    if (name == "from") continue;
    if (Status set = set_option(name, value, options); !set)
      return fail(fmt::format("{}: {}", where(expression), set.error().message));
  }
  return options;
}

}  // namespace coppice::core
