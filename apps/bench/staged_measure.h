// One prompt, answered by everybody in turn: what `coppice bench staged` repeats.
#pragma once

#include <coppice/coppice.h>

#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "bench/answers.h"

namespace coppice::app {

class StagedBench {
 public:
  StagedBench(const Model& model, EngineOptions options)
      : model_(model), answers_(model, std::move(options), Answers::Engines::shared) {}

  Status prepare(const Contender& contender);

  // Plain decoding writes the answer, it is cut, and everybody writes as much of it, `rounds` times, who
  // begins rotating. -> {"tokens", "cut", "text", "surprisal", "entropy", "modes": {name: counts, "seconds":
  // [[decode, draft, verify, sample] of each round], "same": ids equal to plain}, ...}. With `painted` also
  // who made which token, and the cycles. No "modes" where the answer is shorter than kShortestAnswer.
  Result<nlohmann::ordered_json> measure(const TaskPrompt& prompt, const Sampling& sampling,
                                         std::span<const Contender> contenders, int rounds, bool painted);

 private:
  const Model& model_;
  Answers answers_;
};

}  // namespace coppice::app
