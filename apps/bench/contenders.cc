#include "bench/contenders.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace coppice::app {
namespace {

// At commas outside parentheses: "auto,adaptive-paper(batch=8, tau=0.6)" are two.
std::vector<std::string> split(const std::vector<std::string>& lists) {
  std::vector<std::string> names;
  for (const std::string& list : lists) {
    int open = 0;
    std::string name;
    for (const char c : list + ',') {
      open += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (c != ',' || open > 0)
        name += c;
      else if (!name.empty())
        names.push_back(std::exchange(name, {}));
    }
    if (!name.empty()) names.push_back(name);  // a parenthesis that is never closed: refused by name
  }
  return names;
}

// "auto", "fixed" or "fixed:8", which has a number of nodes of its own.
Status set_policy(const std::string& text, Speculation& speculation) {
  const auto options = text.rfind(')');
  const auto colon = text.find(':', options == std::string::npos ? 0 : options);
  speculation.policy = text.substr(0, colon);
  if (colon == std::string::npos) return speculation.validate();
  char* end = nullptr;
  const std::string nodes = text.substr(colon + 1);
  const long number = std::strtol(nodes.c_str(), &end, 10);
  if (nodes.empty() || *end != 0) return fail("a whole number of nodes is wanted behind the colon");
  speculation.nodes = static_cast<int>(std::clamp(number, -1L, 1L << 20));
  return speculation.validate();
}

}  // namespace

Result<std::vector<Entry>> ContenderFlags::read(const SpeculationFlags& speculation_flags,
                                                const EngineFlags& engine) const {
  auto speculation = speculation_flags.resolve();
  if (!speculation) return tl::unexpected(speculation.error());
  auto options = engine.resolve(*speculation);
  if (!options) return tl::unexpected(options.error());
  const std::vector<std::string> wanted = split(policies);
  std::vector<Entry> entries;
  entries.push_back({"plain", *options});
  entries.back().options.speculation.drafters = "none";
  const auto add = [&](const std::string& name, const std::string& expression) {
    const std::size_t first = entries.size();
    for (const std::string& policy : wanted) entries.push_back({name + " " + policy, *options});
    if (wanted.empty()) entries.push_back({name, *options});
    for (std::size_t i = first; i < entries.size(); ++i) entries[i].options.speculation.drafters = expression;
  };
  for (const std::string& asked : drafters) {
    const auto colon = asked.find(": ");
    if (colon == std::string::npos) {
      add(asked, asked);
    } else {
      add(asked.substr(0, colon), asked.substr(colon + 2));
    }
  }
  for (std::size_t i = 1; i < entries.size() && !wanted.empty(); ++i) {
    const std::string& policy = wanted[(i - 1) % wanted.size()];
    if (Status set = set_policy(policy, entries[i].options.speculation); !set)
      return fail(fmt::format("--policies {}: {}", policy, set.error().message));
  }
  return entries;
}

void ContenderFlags::add(CLI::App& command) {
  command
      .add_option(
          "-d,--drafters", drafters,
          "drafter expressions to compare with plain decoding, repeatable; \"NAME: EXPRESSION\" names one")
      ->capture_default_str();
  command.add_option(
      "--policies", policies,
      "policies to compare, each with every drafter expression: auto, adaptive-paper(batch=8), ..., or "
      "fixed:N with trees of N nodes (default: --policy)");
}

}  // namespace coppice::app
