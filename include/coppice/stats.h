// What happened, counted. Every number on a page, in a summary line and in a bench comes from here.
#pragma once

#include <coppice/decision.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace coppice {

struct SourceStats {
  std::string name;            // of the drafter in the mix, "lookup"
  std::uint64_t proposed = 0;  // guesses it made or shared
  std::uint64_t accepted = 0;  // of those, taken by the target
  std::uint64_t failures = 0;  // calls of a custom drafter (drafter.h) that failed: no guess
  std::string problem = {};    // the first of them, as a sentence
};

struct Stats {
  static constexpr int kDepths = 64;

  std::uint64_t requests = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t reused_tokens = 0;  // of the prompt, found in the cache
  std::uint64_t tokens = 0;         // generated, the end-of-text token included
  std::uint64_t cycles = 0;         // target passes that drew tokens, counted once per request in them
  std::uint64_t target_passes = 0;  // the same, but a shared pass counts for one of them
  std::uint64_t guesses = 0;        // tree nodes verified, roots not counted
  std::uint64_t accepted = 0;       // of those, taken
  std::uint64_t wanted = 0;         // guesses made before the policy left out what does not pay
  std::uint64_t plain_cycles = 0;   // cycles without a guess
  std::uint64_t costly_cycles = 0;  // cycles before which draft models were asked
  std::uint64_t probes = 0;         // cycles in which the policy tried what it did not think best
  std::uint64_t draft_passes = 0;   // of all draft models; shared ones the same way
  std::uint64_t target_bytes = 0;   // weights and cache read while decoding
  std::uint64_t draft_bytes = 0;
  // Seconds that a request waited; drafting includes what drafters learn and what the policy decides.
  double prefill_seconds = 0, draft_seconds = 0, verify_seconds = 0, sample_seconds = 0;
  double policy_seconds = 0;  // of those, deciding how much to draft; a shared pass counts for one request
  double decode_seconds = 0;  // all of the above but prefill, and what lies between
  std::array<std::uint64_t, kDepths> reached_at_depth{};  // cycles whose tree had a node there under the path
  std::array<std::uint64_t, kDepths> accepted_at_depth{};  // ... and it was taken
  std::array<std::uint64_t, kRules> decisions{};           // of the policy `adaptive`, by Rule
  std::vector<SourceStats> sources;

  std::uint64_t decided(Rule rule) const { return decisions[static_cast<std::size_t>(rule)]; }
  double tokens_per_pass() const { return cycles ? double(tokens) / double(cycles) : 0; }
  double mean_accepted() const { return cycles ? double(accepted) / double(cycles) : 0; }
  double tokens_per_second() const { return decode_seconds > 0 ? double(tokens) / decode_seconds : 0; }
  double bytes_per_token() const { return tokens ? double(target_bytes + draft_bytes) / double(tokens) : 0; }
  void add(const Stats& other);  // sources are matched by name, those of one name in order
};

}  // namespace coppice
