#include <coppice/request.h>
#include <coppice/stats.h>

#include <algorithm>

namespace coppice {

void Stats::add(const Stats& other) {
  requests += other.requests;
  prompt_tokens += other.prompt_tokens;
  reused_tokens += other.reused_tokens;
  tokens += other.tokens;
  cycles += other.cycles;
  target_passes += other.target_passes;
  guesses += other.guesses;
  accepted += other.accepted;
  wanted += other.wanted;
  plain_cycles += other.plain_cycles;
  costly_cycles += other.costly_cycles;
  probes += other.probes;
  draft_passes += other.draft_passes;
  target_bytes += other.target_bytes;
  draft_bytes += other.draft_bytes;
  prefill_seconds += other.prefill_seconds;
  draft_seconds += other.draft_seconds;
  verify_seconds += other.verify_seconds;
  sample_seconds += other.sample_seconds;
  policy_seconds += other.policy_seconds;
  decode_seconds += other.decode_seconds;
  for (std::size_t d = 0; d < kDepths; ++d) {
    reached_at_depth[d] += other.reached_at_depth[d];
    accepted_at_depth[d] += other.accepted_at_depth[d];
  }
  for (std::size_t rule = 0; rule < kRules; ++rule) decisions[rule] += other.decisions[rule];
  for (std::size_t i = 0; i < other.sources.size(); ++i) {
    const SourceStats& theirs = other.sources[i];
    // A mix may have several drafters of one name: the second is added to the second.
    auto skip = std::count_if(other.sources.begin(), other.sources.begin() + static_cast<std::ptrdiff_t>(i),
                              [&](const auto& s) { return s.name == theirs.name; });
    auto ours = std::find_if(sources.begin(), sources.end(),
                             [&](const auto& s) { return s.name == theirs.name && skip-- == 0; });
    if (ours == sources.end()) {
      sources.push_back(theirs);
    } else {
      ours->proposed += theirs.proposed;
      ours->accepted += theirs.accepted;
      ours->failures += theirs.failures;
      if (ours->problem.empty()) ours->problem = theirs.problem;
    }
  }
}

std::string_view to_string(Rule rule) {
  static constexpr std::string_view kNames[kRules] = {
      "draft_led",     "target_only",   "analyser_silent", "gate",      "exit",
      "batch",         "left_out",      "early_rejection", "window_up", "window_down",
      "upgrade_width", "upgrade_draft", "downgrade",       "failure",   "stop",
      "probe",         "resume"};
  return kNames[static_cast<std::size_t>(rule)];
}

std::string_view to_string(StopReason reason) {
  switch (reason) {
    case StopReason::none:
      return "none";
    case StopReason::end_of_text:
      return "end_of_text";
    case StopReason::stop_string:
      return "stop_string";
    case StopReason::max_tokens:
      return "max_tokens";
    case StopReason::context_full:
      return "context_full";
    case StopReason::cancelled:
      return "cancelled";
    case StopReason::timed_out:
      return "timed_out";
    case StopReason::failed:
      return "failed";
  }
  return "none";
}

}  // namespace coppice
