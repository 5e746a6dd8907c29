// What the policy `adaptive` decided, rule by rule (docs/policies.md): counted in Stats, and with the numbers
// it looked at in Event::decisions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coppice {

enum class Rule : std::uint8_t {
  draft_led,        // the analyser: the draft is confident of the prompt
  target_only,      // ... it is not: plain decoding
  analyser_silent,  // ... no draft can say: draft-led
  gate,             // alpha for the next tokens
  exit,             // ... so low that the draft stops at its early exit
  batch,            // guesses grouped into what a pass takes
  left_out,         // guesses that found no place there
  early_rejection,  // guesses too unlikely to be verified
  window_up,        // more guesses a pass
  window_down,      // fewer
  upgrade_width,    // the draft's perplexity is too far above the target's: a wider draft
  upgrade_draft,    // ... the next larger draft
  downgrade,        // ... it is near again: one step back
  failure,          // ... it is so far above that the paper calls it the failure mode
  stop,             // too few guesses are taken: no more speculation for now
  probe,            // a try whether they are again
  resume,           // they are
};
inline constexpr std::size_t kRules = static_cast<std::size_t>(Rule::resume) + 1;
std::string_view to_string(Rule rule);  // "early_rejection"

struct Decision {
  Rule rule = Rule::draft_led;
  std::uint64_t cycle = 0;  // cycles of the request before it
  double number = 0;        // what the rule looked at
  double threshold = 0;     // what it compared that with
  double decided = 0;       // what came of it: alpha, a window, how many
  int times = 1;            // it counts for, in Stats::decisions
};

}  // namespace coppice
