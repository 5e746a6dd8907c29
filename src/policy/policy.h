// How much to draft for one request in the next pass. The table of policies is policies.cc: one row per name.
#pragma once

#include <coppice/error.h>

#include <memory>
#include <span>
#include <string_view>

#include "tree/token_tree.h"

namespace coppice::core {

// Where a request stands before a pass.
struct PolicyInput {
  Budget limit;          // what the request allows
  int tokens_left = 0;   // the answer can still grow by this many
  int context_left = 0;  // positions free behind the root
};

class Policy {
 public:
  virtual ~Policy() = default;
  // nodes = 0: a plain pass.
  virtual Budget decide(const PolicyInput& input) = 0;
};

struct PolicyRow {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<Policy> (*make)();
};
std::span<const PolicyRow> policy_rows();

// An unknown name is refused with the choices there are.
Result<std::unique_ptr<Policy>> make_policy(std::string_view name);

}  // namespace coppice::core
