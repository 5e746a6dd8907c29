// One prompt in one round, answered by everybody in turn: what `coppice bench adaptive` repeats.
#pragma once

#include <coppice/coppice.h>

#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "bench/answers.h"

namespace coppice::app {

struct Turn {
  const TaskPrompt* prompt = nullptr;
  Sampling sampling;
  int round = 0;         // shifts who begins
  bool painted = false;  // who made which token too, and the cycles, for a replay
};

class AdaptiveBench {
 public:
  // Engines are not shared: whoever reads a prompt second must not find it read.
  AdaptiveBench(const Model& model, EngineOptions options)
      : model_(model), answers_(model, std::move(options), Answers::Engines::own) {}

  Status prepare(const Contender& contender);

  // As StagedBench::measure(), for one round. -> {"prompt_tokens", "tokens", "cut", "text", "entropy", ...,
  // "modes": {name: counts, "seconds": [[decode, draft, verify, sample, policy, prefill, latency, first]],
  // "marks": [[tokens, seconds since the prompt came]], "reused": prompt tokens found in the cache, "same":
  // ids equal to plain's, and of a policy that says what it decided "rules": {rule: times}, "analyser":
  // {"confidence", "tau", "led"}, "upgrades": [[rule, seconds of the cycle behind it, of the median
  // cycle]]}}. No "modes" where the answer is shorter than kShortestAnswer.
  Result<nlohmann::ordered_json> measure(const Turn& asked, std::span<const Contender> contenders);

 private:
  Result<nlohmann::ordered_json> answer(const Turn& turn, const Contender& contender,
                                        const Reference& reference);

  const Model& model_;
  Answers answers_;
};

}  // namespace coppice::app
