#include <coppice/speculation.h>
#include <fmt/core.h>

#include "policy/policy.h"
#include "tree/token_tree.h"

namespace coppice {

Status Speculation::validate() const {
  if (nodes < 0 || nodes >= core::kMaxTreeNodes) {
    return fail(fmt::format("speculation.nodes = {} is out of range; 0 to {} are possible", nodes,
                            core::kMaxTreeNodes - 1));
  }
  if (depth < 1 || depth > core::kMaxTreeDepth) {
    return fail(fmt::format("speculation.depth = {} is out of range; 1 to {} are possible", depth,
                            core::kMaxTreeDepth));
  }
  if (width < 1 || width > core::kMaxBranches) {
    return fail(fmt::format("speculation.width = {} is out of range; 1 (a chain) to {} are possible", width,
                            core::kMaxBranches));
  }
  if (!(price >= 0 && price <= 1)) {
    return fail(fmt::format("speculation.price = {} is out of range; it is a chance, 0 to 1", price));
  }
  if (!(pass_price >= 0 && pass_price <= core::kMaxTreeDepth)) {
    return fail(fmt::format("speculation.pass_price = {} is out of range; it is a number of tokens, 0 to {}",
                            pass_price, core::kMaxTreeDepth));
  }
  if (auto known = core::choose_policy(policy); !known)
    return fail("speculation.policy: " + known.error().message);
  return {};
}

}  // namespace coppice
