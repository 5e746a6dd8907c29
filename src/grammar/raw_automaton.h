// Expressions written out as automata with empty steps (Thompson's construction), one for each rule that is
// called from the root. compile.cc takes the empty steps out.
#pragma once

#include <coppice/error.h>

#include <cstdint>
#include <vector>

#include "grammar/compiled.h"
#include "grammar/expression.h"

namespace coppice::core::grammar {

using RawState = std::uint32_t;
inline constexpr std::uint32_t kNone = 0xffffffff;

struct RawAutomaton {
  struct State {
    std::vector<RawState> empty;
    std::vector<ByteEdge> bytes;
    std::vector<CallEdge> calls;
    std::uint32_t ends = kNone;  // the rule of which it is the end
  };
  struct Rule {
    RawState start = 0, end = 0;
    std::string name, why;
    int line = 0;
    bool may_be_empty = false;
  };
  std::vector<State> states;
  std::vector<Rule> rules;  // the first is the root
};

// Refuses what would be too large.
Result<RawAutomaton> write_out(const RuleSet& rules, RuleId root);

}  // namespace coppice::core::grammar
