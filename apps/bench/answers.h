// Prompts answered in several ways, each of which must write what plain decoding wrote: the common ground of
// the long benches.
#pragma once

#include <coppice/coppice.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/config.h"

namespace coppice::app {

// One way of decoding. budget.nodes = 0: plain.
struct Contender {
  std::string name, drafters, prior;
  DraftBudget budget;
  std::string policy = "fixed";
};
Contender plain_contender();
Contender contender_of(const Mode& mode, const std::string& sampling);

struct TaskPrompt {
  std::string set, form, name;  // "humaneval", "raw" or "chat", "HumanEval/0"
  std::vector<Token> tokens;
  AnswerForm answer = AnswerForm::chat;
  std::uint32_t number = 0;  // of the noise's stream, and who begins
  std::string category;      // within the set, where it has some
  std::string stop;          // the answer ends before it; empty: at its own end
};

struct TaskText {
  std::string set, form, name, text;
};
// In its form; an error where it is too long.
Result<TaskPrompt> task_prompt(const Model& model, const TaskText& text, int context);

// What plain decoding wrote, and how much of it counts.
struct Reference {
  std::vector<Token> ids;
  std::size_t drawn = 0;
  AnswerCut cut;
  double surprisal = 0, entropy = 0;  // nats a token
};

inline constexpr std::size_t kShortestAnswer = 8;  // tokens; below there is nothing to measure

// Hears every event of an answer; with `trees` those of the passes too, which takes time.
struct Listener {
  std::function<void(const Event&)> hear;
  bool trees = false;
};

class Answers {
 public:
  // What contenders share: those of equal drafters, prior and policy one engine, with what it has read and
  // learned; or nothing.
  enum class Engines { shared, own };
  Answers(const Model& model, EngineOptions options, Engines engines)
      : model_(model), options_(std::move(options)), engines_kind_(engines) {}

  // Makes the engine of a contender; done before long work, so that what is wrong is said at once.
  Status prepare(const Contender& contender);
  Result<Generation> answer(const TaskPrompt& prompt, const Sampling& sampling, const Contender& contender,
                            const Listener& listener = {});
  // Not timed: it also says how sure the target was. By an engine that nobody else uses.
  Result<const Reference*> reference(const TaskPrompt& prompt, const Sampling& sampling);
  // Which drafter of the mix first guessed each token (-1: nobody, the target drew it), and what each cycle
  // cost: {"sources", "pieces": [[text, source]], "cycles": [[tokens, guesses, draft passes, their rows]]}.
  Result<nlohmann::ordered_json> paint(const TaskPrompt& prompt, const Sampling& sampling,
                                       const Contender& contender);
  std::vector<std::string> sources(const Contender& contender) const;  // of a prepared one

 private:
  std::vector<std::string> key(const Contender& contender) const;
  Result<Engine*> engine(const Contender& contender);

  const Model& model_;
  EngineOptions options_;
  Engines engines_kind_;
  std::map<std::vector<std::string>, Engine> engines_;
  std::map<std::string, Reference> references_;
};

bool same_ids(const std::vector<Token>& plain, const std::vector<EmittedToken>& other);
// What was counted and not timed.
nlohmann::ordered_json counts_json(const Stats& stats);
// What is the same for all contenders: tokens of prompt and answer, why it ends there, entropy, text.
nlohmann::ordered_json reference_json(const Model& model, const TaskPrompt& prompt,
                                      const Reference& reference);
// "greedy"; "top-k": the 50 likeliest at temperature 1.
Result<Sampling> bench_sampling(const std::string& name, std::uint64_t seed, int tokens);

}  // namespace coppice::app
