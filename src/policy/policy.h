// How much to draft. A policy sees the requests that decode three times in each pass: before their trees grow
// (plan), when they have grown (trim), and when the target has drawn (learn). None of it changes a text. The
// table of policies is policies.cc: one row per name.
#pragma once

#include <coppice/error.h>

#include <memory>
#include <span>
#include <string_view>

#include "draft/drafter.h"
#include "policy/cost_model.h"
#include "tree/token_tree.h"

namespace coppice::core {

// A request on its way through one pass.
struct Decoding {
  int slot = 0;          // what it is remembered by, from begin() to the next begin()
  Budget limit;          // what the request allows
  int tokens_left = 0;   // the answer can still grow by this many
  int context_left = 0;  // positions free behind the root
  int length = 0;        // committed tokens, which its rows see
  bool by_value = true;  // false (acceptance = rejection): which guesses stay must not depend on what they
                         // are, so a price known before they are drawn may cut, trim() may not
  Budget budget;         // set by plan(): what may grow; nodes = 0: a plain pass
  bool probe = false;    // set by plan(): done to learn, not because it is thought best
  TokenTree* tree = nullptr;     // best guesses first; trim() may drop the last ones
  int wanted = 0;                // guesses before trim()
  std::span<const Token> drawn;  // learn(): what the target drew, below the root
};

struct PassTimes {
  double drafting = 0;  // seconds of growing and of what drafters learned, passes of drafts included
  double pass = 0;      // of the target
  PassCost draft;       // of those passes
  int prompt_rows = 0;  // beside the trees, at most
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual void begin(int slot, int prompt) { (void)slot, (void)prompt; }  // a request of so many tokens
  virtual void plan(std::span<Decoding> requests) = 0;
  // How many of `most` prompt rows go into the pass of these requests; at least one, so that prompts are
  // read.
  virtual int prompt_rows(std::span<const Decoding> requests, int most) const {
    (void)requests;
    return most;
  }
  virtual void trim(std::span<Decoding> requests, int prompt_rows) { (void)requests, (void)prompt_rows; }
  virtual void learn(std::span<const Decoding> requests, const PassTimes& times) {
    (void)requests, (void)times;
  }
  // What passes cost, as it knows it now; null: it asks no clock.
  virtual const CostModel* costs() const { return nullptr; }
};

// The limit, cut to where the answer and the context end. n guesses on a path bring up to n + 1 tokens: the
// draw after the last guess is free.
Budget within_reach(const Decoding& request);

struct PolicySetup {
  int requests = 1;   // slots
  CostTable costs;    // for policies that want costs
  bool cheap = true;  // some drafter is cheap
  double draft_share =
      0;  // what a pass of the costly drafters reads, of what one of the target does; 0: none
};

struct PolicyRow {
  std::string_view name;
  std::string_view summary;
  bool wants_costs;
  std::unique_ptr<Policy> (*make)(const PolicySetup&);
};
std::span<const PolicyRow> policy_rows();

// An unknown name is refused with the choices there are.
Result<const PolicyRow*> find_policy(std::string_view name);

}  // namespace coppice::core
