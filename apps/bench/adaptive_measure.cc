#include "bench/adaptive_measure.h"

#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "bench/benches.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMarks[] = {16, 32, 64, 128, 256, 512};  // tokens

double rounded(double seconds) { return std::round(seconds * 1e6) / 1e6; }

// When so many tokens were there, and what the policy decided until then.
class Watch {
 public:
  void hear(const Event& event) {
    for (const Decision& decision : event.decisions) hear(decision);
    if (event.tokens.empty()) return;
    const double now = elapsed();
    if (tokens_ == 0) first_ = now;
    ends_.push_back(now);
    tokens_ += event.tokens.size();
    while (next_ < std::size(kMarks) && tokens_ >= kMarks[next_])
      marks_.push_back({kMarks[next_++], rounded(now)});
  }
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  double first() const { return first_; }
  const ordered_json& marks() const { return marks_; }
  const ordered_json& analyser() const { return analyser_; }

  // [rule, seconds of the cycle behind it, of the median cycle] of each upgrade of the draft. The first cycle
  // counts for nobody: it has the prompt in it.
  ordered_json upgrades() const {
    std::vector<double> cycles;
    for (std::size_t i = 1; i < ends_.size(); ++i) cycles.push_back(ends_[i] - ends_[i - 1]);
    ordered_json all = ordered_json::array();
    for (const auto& [rule, cycle] : upgrades_) {
      if (cycle > 0 && cycle <= cycles.size())
        all.push_back({to_string(rule), rounded(cycles[cycle - 1]), rounded(median(cycles))});
    }
    return all;
  }

 private:
  void hear(const Decision& decision) {
    if (decision.rule == Rule::draft_led || decision.rule == Rule::target_only)
      analyser_ = {{"confidence", decision.number},
                   {"tau", decision.threshold},
                   {"led", decision.rule == Rule::draft_led}};
    if (decision.rule == Rule::upgrade_width || decision.rule == Rule::upgrade_draft)
      upgrades_.emplace_back(decision.rule, decision.cycle);
  }

  Clock::time_point start_ = Clock::now();
  double first_ = 0;
  std::size_t tokens_ = 0, next_ = 0;
  std::vector<double> ends_;                            // of each cycle
  std::vector<std::pair<Rule, std::size_t>> upgrades_;  // and the cycles before it
  ordered_json marks_ = ordered_json::array(), analyser_;
};

// Nothing where no rule decided.
void add_decisions(const Stats& stats, const Watch& watch, ordered_json& mode) {
  ordered_json rules = ordered_json::object();
  for (std::size_t r = 0; r < kRules; ++r) {
    if (stats.decisions[r] > 0) rules[std::string(to_string(static_cast<Rule>(r)))] = stats.decisions[r];
  }
  if (rules.empty()) return;
  mode["rules"] = std::move(rules);
  if (!watch.analyser().is_null()) mode["analyser"] = watch.analyser();
  if (ordered_json upgrades = watch.upgrades(); !upgrades.empty()) mode["upgrades"] = std::move(upgrades);
}

}  // namespace

Status AdaptiveBench::prepare(const Contender& contender) {
  if (Status made = answers_.prepare(contender); !made)
    return fail(fmt::format("mode \"{}\": {}", contender.name, made.error().message));
  return {};
}

Result<ordered_json> AdaptiveBench::answer(const Turn& turn, const Contender& contender,
                                           const Reference& reference) {
  Watch watch;
  auto made = answers_.answer(*turn.prompt, turn.sampling, contender,
                              {[&](const Event& event) { watch.hear(event); }, false});
  const double latency = watch.elapsed();
  if (!made) return tl::unexpected(made.error());
  const Stats& stats = made->stats;
  ordered_json mode = counts_json(stats);
  ordered_json seconds = ordered_json::array();
  for (const double value :
       {stats.decode_seconds, stats.draft_seconds, stats.verify_seconds, stats.sample_seconds,
        stats.policy_seconds, stats.prefill_seconds, latency, watch.first()})
    seconds.push_back(rounded(value));
  mode["seconds"].push_back(std::move(seconds));
  mode["marks"] = watch.marks();
  mode["reused"] = stats.reused_tokens;
  add_decisions(stats, watch, mode);
  mode["same"] = same_ids(reference.ids, made->tokens);
  return mode;
}

Result<ordered_json> AdaptiveBench::measure(const Turn& asked, std::span<const Contender> contenders) {
  auto plain = answers_.reference(*asked.prompt, asked.sampling);
  if (!plain) return tl::unexpected(plain.error());
  const Reference& reference = **plain;
  ordered_json record = reference_json(model_, *asked.prompt, reference);
  if (reference.ids.size() < kShortestAnswer) return record;
  Turn turn = asked;  // as much as counts
  turn.sampling.max_tokens = static_cast<int>(reference.ids.size());
  std::vector<ordered_json> modes(contenders.size());
  for (std::size_t k = 0; k < contenders.size(); ++k) {
    const std::size_t who =
        (k + turn.prompt->number + static_cast<std::size_t>(turn.round)) % contenders.size();
    auto mode = answer(turn, contenders[who], reference);
    if (!mode) return tl::unexpected(mode.error());
    modes[who] = std::move(*mode);
  }
  for (std::size_t who = 0; who < contenders.size(); ++who)
    record["modes"][contenders[who].name] = std::move(modes[who]);
  for (const Contender& contender : contenders) {
    if (!turn.painted || contender.budget.nodes == 0) continue;
    auto paints = answers_.paint(*turn.prompt, turn.sampling, contender);
    if (!paints) return tl::unexpected(paints.error());
    record["painted"][contender.name] = std::move(*paints);
  }
  return record;
}

}  // namespace coppice::app
