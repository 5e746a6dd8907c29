// One prompt, answered by everybody in turn: what `coppice bench staged` repeats.
#pragma once

#include <coppice/coppice.h>

#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/staged_config.h"

namespace coppice::app {

// One way of decoding. budget.nodes = 0: plain.
struct StagedContender {
  std::string name, drafters, prior;
  DraftBudget budget;
};
StagedContender plain_contender();

struct StagedPrompt {
  std::string set, form, name;  // "humaneval", "raw" or "chat", "HumanEval/0"
  std::vector<Token> tokens;
  AnswerForm answer = AnswerForm::chat;
  std::uint32_t number = 0;  // of the noise's stream, and who begins
};

inline constexpr std::size_t kShortestAnswer = 8;  // tokens; below there is nothing to measure

class StagedBench {
 public:
  StagedBench(const Model& model, EngineOptions options) : model_(model), options_(std::move(options)) {}

  // Makes the engine of a contender; done before long work, so that what is wrong is said at once.
  Status prepare(const StagedContender& contender);

  // Plain decoding writes the answer, it is cut, and everybody writes as much of it, `rounds` times, who
  // begins rotating. -> {"tokens", "cut", "text", "surprisal", "entropy", "modes": {name: counts, "seconds":
  // [[decode, draft, verify, sample] of each round], "same": ids equal to plain}, ...}. With `painted` also
  // who made which token, and the cycles. No "modes" where the answer is shorter than kShortestAnswer.
  Result<nlohmann::ordered_json> measure(const StagedPrompt& prompt, const Sampling& sampling,
                                         std::span<const StagedContender> contenders, int rounds,
                                         bool painted);

 private:
  Result<Engine*> engine(const StagedContender& contender);
  Result<Generation> answer(const StagedPrompt& prompt, const Sampling& sampling,
                            const StagedContender& contender, std::function<bool(const Event&)> hear = {});
  struct Reference {  // what plain decoding wrote, and how much of it counts
    std::vector<Token> ids;
    std::size_t drawn = 0;
    AnswerCut cut;
    double surprisal = 0, entropy = 0;  // nats a token
  };
  Result<const Reference*> reference(const StagedPrompt& prompt, const Sampling& sampling);
  Result<nlohmann::ordered_json> paint(const StagedPrompt& prompt, const Sampling& sampling,
                                       const StagedContender& contender);

  const Model& model_;
  EngineOptions options_;
  std::map<std::pair<std::string, std::string>, Engine> engines_;  // by drafters and prior
  std::map<std::string, Reference> references_;
};

}  // namespace coppice::app
