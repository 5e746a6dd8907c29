// The ways of decoding that a bench compares: plain, and each drafter expression under each policy.
#pragma once

#include <coppice/coppice.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "options.h"

namespace coppice::app {

// One way of decoding that was asked for.
struct Entry {
  std::string name;
  EngineOptions options;
};

struct ContenderFlags {
  std::vector<std::string> drafters{"lookup"}, policies;

  void add(CLI::App& command);
  // Plain first; "NAME: EXPRESSION" gives an expression a name of its own. Needs no model.
  Result<std::vector<Entry>> read(const SpeculationFlags& speculation, const EngineFlags& engine) const;
};

}  // namespace coppice::app
