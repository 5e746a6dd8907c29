// How much to draft. A policy sees the requests that decode three times in each pass: before their trees grow
// (plan), when they have grown (trim), and when the target has drawn (learn). None of it changes a text. The
// table of policies is policies.cc: one row per name.
#pragma once

#include <coppice/decision.h>
#include <coppice/error.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "draft/drafter.h"
#include "draft/expression.h"
#include "policy/cost_model.h"
#include "tree/token_tree.h"

namespace coppice::core {

class Model;

// What is said about a request's decisions. Its memory is had when the request starts.
struct DecisionLog {
  static constexpr std::size_t kMost = 64;  // between two events; more are counted only
  std::vector<Decision> recent;             // since the last event
  std::array<std::uint64_t, kRules>* counts = nullptr;
  std::uint64_t cycle = 0;

  void add(Decision decision) {
    decision.cycle = cycle;
    (*counts)[static_cast<std::size_t>(decision.rule)] += static_cast<std::uint64_t>(decision.times);
    if (recent.size() < recent.capacity()) recent.push_back(decision);
  }
};

// ln of the chance that the target and the draft gave a token that was drawn, filtered and tempered alike.
struct TokenChance {
  float target = 0, draft = 0;
};

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
  int rejected = 0;              // trim(): guesses that were under budget.least_chance and not grown
  std::span<const Token> drawn;  // learn(): what the target drew, below the root
  // For a policy that wants() it, else empty.
  bool first = false;             // plan(): of the request's first pass
  std::optional<float> surprise;  // plan(), first: Grower::surprise of the prompt; empty: no draft can say
  std::span<const float> state;   // plan(): the target's residual stream at the token before the root; empty:
                                  // it was not computed
  std::span<const TokenChance> chances;  // learn(): of those drawn at whose place a draft was asked
  DecisionLog* log = nullptr;            // may be null
};

struct PassTimes {
  double drafting = 0;  // seconds of growing and of what drafters learned, passes of drafts included
  double pass = 0;      // of the target
  PassCost draft;       // of those passes
  int prompt_rows = 0;  // beside the trees, at most
};

// What the engine must find out for a policy.
struct PolicyWants {
  int surprise = 0;      // of so many last tokens of the prompt; 0: no
  bool chances = false;  // TokenChance
  int state_layer = -1;  // of the residual stream; -1: no
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual PolicyWants wants() const { return {}; }                        // always the same
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

// A drafter of the mix that runs a model.
struct CostlyDrafter {
  int bit = 0;         // in the mix
  double share = 0;    // what a pass reads, of what one of the target does
  bool slims = false;  // Drafter::slims()
};

struct PolicySetup {
  int requests = 1;   // slots
  CostTable costs;    // for policies that want costs
  bool cheap = true;  // some drafter is cheap
  double draft_share =
      0;  // what a pass of the costly drafters reads, of what one of the target does; 0: none
  std::vector<CostlyDrafter> drafts = {};  // those, the one that reads least first
  int vocab = 0;                           // of the target
  const Model* target = nullptr;           // lives as long as the policy
};

struct PolicyRow {
  std::string_view name;
  std::string_view summary;
  bool wants_costs;
  Status (*check)(const DrafterNode& expression, bool files);  // its options; reads no file without `files`
  Result<std::unique_ptr<Policy>> (*make)(const DrafterNode& expression, const PolicySetup& setup);
};
std::span<const PolicyRow> policy_rows();

// A policy as it is named: "auto", "adaptive-paper(batch=8)".
struct ChosenPolicy {
  const PolicyRow* row = nullptr;
  DrafterNode expression;

  Status check_files() const { return row->check(expression, true); }
  Result<std::unique_ptr<Policy>> make(const PolicySetup& setup) const {
    return row->make(expression, setup);
  }
};
// An unknown name is refused with the choices there are, an option with what it can be.
Result<ChosenPolicy> choose_policy(std::string_view text);

}  // namespace coppice::core
