// Which drafters and policy a request may ask for: mixes that the operator named, which may read files, and
// what needs none. Each pair in use is an engine of its own (model_host.h).
#pragma once

#include <coppice/coppice.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api.h"

namespace coppice::serve {

struct Mix {
  std::string name;      // as the answer says it: "fast", "lookup"
  std::string drafters;  // the expression
  std::string policy;
  std::string shown_policy() const;  // for answers: without the options that name files
  bool operator==(const Mix& other) const { return drafters == other.drafters && policy == other.policy; }
};

class Mixes {
 public:
  explicit Mixes(std::string policy = "auto") : policy_(std::move(policy)) {}
  // "NAME=EXPRESSION", or an expression alone: its name is itself, or "default" if it names files. The first
  // is what requests get that do not ask for another.
  Status add(std::string_view text);
  // The operator's expressions and policy, as far as that can be said before a model is there
  // (check_drafters(), check_policy_files()); with `files` also whether what they name can be read.
  Status check(bool files) const;
  Mix first() const;
  // What a request asked for; without it the default. An expression from the network that would read a file,
  // and a policy that would, are refused.
  ApiResult<Mix> choose(const std::optional<SpeculationAsk>& asked) const;

 private:
  std::vector<std::pair<std::string, std::string>> named_;  // name, expression
  std::string policy_;
};

}  // namespace coppice::serve
