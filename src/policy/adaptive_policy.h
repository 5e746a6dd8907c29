// The policy `adaptive`: the rules of "Sub-second speculative decoding for latency-optimized neural
// inference", each with its options (adaptive_options.h). It looks at confidence and acceptance and at no
// clock. docs/policies.md says what each rule does, and what was chosen where the paper is silent.
//
// plan(): the analyser decides once whether a request drafts at all; who was stopped rests or probes; the
// gate says how wide the draft is; the window how much may grow. trim(): candidates of all requests become
// one batch. learn(): acceptance, perplexities and the window. No rule looks at what was drawn in the same
// cycle where trees must not follow from that (Decoding::by_value).
#pragma once

#include <optional>
#include <vector>

#include "policy/adaptive_options.h"
#include "policy/gate.h"
#include "policy/policy.h"
#include "policy/sliding_mean.h"
#include "policy/verification_batch.h"

namespace coppice::core {

class AdaptivePolicy : public Policy {
 public:
  // A gate needs setup.target, which it fits (Gate::check).
  AdaptivePolicy(AdaptiveOptions options, const PolicySetup& setup, std::optional<Gate> gate = {});

  PolicyWants wants() const override;
  void begin(int slot, int prompt) override;
  void plan(std::span<Decoding> requests) override;
  void trim(std::span<Decoding> requests, int prompt_rows) override;
  void learn(std::span<const Decoding> requests, const PassTimes& times) override;

 private:
  enum class Mode { drafting, resting, probing, target_only };

  struct Memory {
    explicit Memory(const AdaptiveOptions& options);
    Mode mode = Mode::drafting;
    // Acceptance.
    SlidingMean taken;           // 1 or 0 for each guess
    long judged = 0, right = 0;  // all of them since it began to draft
    double before = 1;           // acceptance before the last cycle
    int rested = 0, tries = 0;   // tokens; cycles of a probe
    // Window.
    int window = 1;
    int deepest = 0;        // of the tree in the pass
    double confidence = 0;  // mean chance of its guesses
    // Draft.
    SlidingMean draft, target;  // -ln p of what was drawn
    bool failing = false;
    float alpha = 1;      // before upgrades
    int raised = 0;       // steps
    std::size_t who = 0;  // of setup_.drafts
    int since_gate = 0;   // tokens
    bool ask_gate = true;
    bool at_exit = false;
  };

  Memory& memory_of(const Decoding& request) { return memory_[static_cast<std::size_t>(request.slot)]; }
  void analyse(const Decoding& request, Memory& memory) const;
  bool drafts_now(const Decoding& request, Memory& memory) const;
  void ask_gate(const Decoding& request, Memory& memory);
  void set_width(Decoding& request, Memory& memory);
  void set_amount(Decoding& request, const Memory& memory, int sharing) const;
  float alpha_of(const Memory& memory) const;
  bool slims(const Memory& memory) const;
  void look_at_tree(const Decoding& request, Memory& memory) const;
  void judge_acceptance(const Decoding& request, Memory& memory, int submitted, int accepted);
  void end_drafting(const Decoding& request, Memory& memory, double rate) const;
  void judge_probe(const Decoding& request, Memory& memory);
  void move_window(const Decoding& request, Memory& memory, int accepted) const;
  void compare(const Decoding& request, Memory& memory);
  bool upgrade(const Decoding& request, Memory& memory, double excess) const;
  bool downgrade(const Decoding& request, Memory& memory, double excess) const;

  AdaptiveOptions options_;
  PolicySetup setup_;
  std::optional<Gate> gate_;
  std::vector<float> embedding_;  // [hidden] of the last token, for the gate
  std::vector<Memory> memory_;    // [slot]
  VerificationBatch batch_;
};

// Rows of the table (policies.cc).
Status check_adaptive(const DrafterNode& expression, bool files);
Result<std::unique_ptr<Policy>> make_adaptive(const DrafterNode& expression, const PolicySetup& setup);

}  // namespace coppice::core
