#include "mixes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "json_body.h"

namespace coppice::serve {
namespace {

constexpr std::size_t kMostPolicy = 200;    // characters
constexpr std::size_t kLongestQuote = 200;  // bytes of a name, in an error

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  });
}

// What everybody may ask for: it names no file, and takes no options that could want much memory.
bool needs_no_file(std::string_view expression) { return expression == "lookup" || expression == "none"; }

// The options of a policy that name files: a gate, and a file with more options.
bool reads_a_file(std::string_view policy) {
  std::string plain;
  for (const char c : policy)
    if (c != ' ') plain += c;
  return plain.find("gate=") != std::string::npos || plain.find("from=") != std::string::npos;
}

}  // namespace

Status Mixes::add(std::string_view text) {
  const std::size_t equals = text.find('=');
  const bool has_name = equals != std::string_view::npos && is_name(text.substr(0, equals));
  const std::string expression(has_name ? text.substr(equals + 1) : text);
  // The name is in answers, and no file's name should be.
  const std::string name = has_name                    ? std::string(text.substr(0, equals))
                           : needs_no_file(expression) ? expression
                                                       : "default";
  if (std::any_of(named_.begin(), named_.end(), [&](const auto& mix) { return mix.first == name; }))
    return fail(
        fmt::format("--drafters {}: there are two mixes \"{}\"; NAME=EXPRESSION gives each a name of its own",
                    text, name));
  named_.emplace_back(name, expression);
  return {};
}

Status Mixes::check(bool files) const {
  for (const auto& [name, expression] : named_) {
    if (Status right = check_drafters(expression, files); !right) return right;
    if (!files) continue;
    if (Status right = check_policy_files(policy_, expression); !right) return right;
  }
  return files ? check_policy_files(policy_) : Status();
}

std::string Mix::shown_policy() const {
  return reads_a_file(policy) ? policy.substr(0, policy.find('(')) : policy;
}

Mix Mixes::first() const {
  if (named_.empty()) return {"lookup", "lookup", policy_};
  return {named_[0].first, named_[0].second, policy_};
}

ApiResult<Mix> Mixes::choose(const std::optional<SpeculationAsk>& asked) const {
  Mix mix = first();
  if (!asked) return mix;
  if (asked->policy) {
    Speculation checked;
    checked.policy = *asked->policy;
    if (asked->policy->size() > kMostPolicy)
      return tl::unexpected(invalid(
          "speculation.policy",
          fmt::format("speculation.policy is longer than the {} characters possible here", kMostPolicy)));
    if (reads_a_file(*asked->policy))
      return tl::unexpected(invalid(
          "speculation.policy", "gate= and from= name files, which only whoever runs the server can choose"));
    if (Status valid = checked.validate(); !valid)
      return tl::unexpected(invalid("speculation.policy", valid.error().message));
    mix.policy = *asked->policy;
  }
  if (!asked->drafters) return mix;
  for (const auto& [name, expression] : named_) {
    if (name != *asked->drafters) continue;
    mix.name = name;
    mix.drafters = expression;
    return mix;
  }
  if (needs_no_file(*asked->drafters)) {
    mix.name = mix.drafters = *asked->drafters;
    return mix;
  }
  std::string there = "lookup, none";
  for (const auto& [name, expression] : named_)
    if (!needs_no_file(name)) there = name + ", " + there;
  return tl::unexpected(
      invalid("speculation.drafters", fmt::format("there is no mix \"{}\" here; there is {}",
                                                  shortened(*asked->drafters, kLongestQuote), there)));
}

}  // namespace coppice::serve
