// What the policy `adaptive` decides by, fitted without a training library: the gate, which says how wide a
// slimmable draft should be, and the analyser's threshold tau, which says whether to draft at all.
#pragma once

#include <coppice/error.h>
#include <coppice/model.h>
#include <coppice/speculation.h>
#include <coppice/token.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace coppice {

struct TrainGateOptions {
  std::string target, draft;       // GGUF files; the draft has widths
  std::vector<std::string> texts;  // token files and corpora (docs/file-formats.md) that the target wrote
  std::string output;
  std::string command;   // for the file's provenance
  double compute = 0.6;  // the work of the whole draft that may be spent. (0, 1)
  int layer = -1;        // of the target, whose states are read; -1: two thirds up
  int units = 32;        // of the hidden layer
  int every = 8;         // tokens from one decision to the next
  int depth = 8;         // guesses of a chain
  double reject = 0.3;   // the least chance of a guess that is submitted
  double exit = 0.7;     // alpha under which the early exit is chosen; 0: never
  int epochs = 24;
  std::uint64_t tokens = 100'000;  // to learn from
  double held_out = 0.2;           // share of the texts that is judged and not learned from. (0, 0.5]
  std::uint64_t judged = 40'000;   // tokens of them
  int context = 2048;              // positions; longer texts are cut there
  int threads = 0;                 // 0: what this process may use
  std::uint32_t seed = 1;
  // What goes on, and how far; false stops (nothing is written then).
  std::function<bool(const std::string& what, double fraction)> progress;
};

// Held-out text with one way to choose widths.
struct GateJudgement {
  std::string name;
  double alpha = 0;     // of a constant
  double pass = 0;      // what its pass streams, of what one of the whole draft does
  double compute = 0;   // the draft's work along the text, of the whole draft's along it
  double accepted = 0;  // guesses taken a cycle
  double share = 0;     // of the gate's decisions that are this one
};

struct TrainGateReport {
  bool stopped = false;
  std::uint64_t texts = 0, learned = 0, judged = 0;  // texts in all; tokens
  std::uint64_t decisions = 0;                       // learned from
  double price = 0;                                  // passes of the target that one of the draft may cost
  int layer = 0;
  std::vector<GateJudgement> constants;  // every variant; the whole draft among them
  GateJudgement whole, gate;
  double constant_accepted = 0;  // of the best constant, or two in turn, at the gate's compute
  // What the gate accepts a cycle beyond that, and where 95% of resampled texts see it.
  double gain = 0, gain_low = 0, gain_high = 0;
  bool beats = false;         // gain_low is above 0: the gate is what was written
  double constant_alpha = 0;  // else a constant of this alpha
};

// Errors name the file and line, or the field.
Result<TrainGateReport> train_gate(const TrainGateOptions& options);

struct TrainTauOptions {
  Speculation speculation;  // its mix holds a draft model
  std::vector<std::vector<Token>> prompts;
  std::string output;                // lines `name = value`
  std::string remark;                // for the file's provenance: lines
  int tokens = 64;                   // of each answer, greedy
  int rounds = 3;                    // each times every prompt both ways
  std::vector<int> analyse = {128};  // last tokens of a prompt that its confidence is of; the best stays
  int context = 2048;
  std::function<bool(const std::string& what, double fraction)> progress;  // false stops
};

struct TauPrompt {
  double confidence = 0;  // 1 - ln(perplexity under the draft) / ln(vocabulary)
  double reading = 0;     // seconds the draft takes to read it: in vain where the answer is then plain
  double plain = 0, drafted = 0;  // seconds of decoding, medians; reading is in the second
  std::uint64_t tokens = 0;
};

struct TrainTauReport {
  bool stopped = false;
  double tau = 0;        // draft where the confidence is at least this; 0: always, nobody is asked
  int analyse = 0;       // that stayed
  bool constant = true;  // no threshold was better than it on prompts it was not fitted on: tau is 0 or 1
  std::vector<TauPrompt> prompts;  // in the order given
  // [said: plain, drafted][truly faster: plain, drafted]
  std::array<std::array<int, 2>, 2> confusion{};
  // Seconds of all prompts: by tau; by thresholds each fitted without the prompt they judge; never; always;
  // best. Whoever chooses by confidence pays for reading where the answer is plain; never and best do not.
  double by_tau = 0, by_others = 0, never = 0, always = 0, best = 0;
};

Result<TrainTauReport> train_tau(const Model& model, const TrainTauOptions& options);

}  // namespace coppice
