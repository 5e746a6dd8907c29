#include "keys.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "http_text.h"

namespace coppice::serve {
namespace {

constexpr std::string_view kBearer = "bearer ";

std::string_view trimmed(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

bool equal_in_constant_time(std::string_view secret, std::string_view given) {
  // As many steps as what was given has bytes; volatile, so that no compiler leaves early.
  volatile unsigned char differs = secret.size() == given.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char right = secret.empty() ? '\0' : secret[i % secret.size()];
    differs = static_cast<unsigned char>(differs | static_cast<unsigned char>(right ^ given[i]));
  }
  return differs == 0;
}

bool ApiKeys::allow(std::string_view authorization) const {
  if (!wanted()) return true;
  if (lower_case(authorization.substr(0, kBearer.size())) != kBearer) return false;
  const std::string_view given = trimmed(authorization.substr(kBearer.size()));
  bool right = false;
  for (const std::string& key : keys_) right = equal_in_constant_time(key, given) || right;
  return right;
}

Status ApiKeys::add(std::string key) {
  const bool printable =
      std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isgraph(c) != 0; });
  if (key.empty() || !printable)
    return fail("an API key is letters, digits and signs without spaces, and not empty");
  keys_.push_back(std::move(key));
  return {};
}

Status ApiKeys::add_lines(std::string_view text, const std::string& name) {
  const std::size_t before = keys_.size();
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const std::string_view key = trimmed(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (key.empty() || key[0] == '#') continue;
    if (Status added = add(std::string(key)); !added)
      return fail(fmt::format("{}, line {}: {}", name, line, added.error().message));
  }
  if (keys_.size() == before) return fail(fmt::format("{} has no API key; one a line is wanted", name));
  return {};
}

}  // namespace coppice::serve
