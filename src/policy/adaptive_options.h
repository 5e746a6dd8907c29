// The options of the policy `adaptive`: every rule of "Sub-second speculative decoding for latency-optimized
// neural inference", with the paper's number as default; where the paper is silent, ours. What each does, and
// the paper's section: docs/policies.md.
#pragma once

#include <coppice/error.h>

#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "draft/expression.h"

namespace coppice::core {

struct AdaptiveOptions {
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  static constexpr int kMostTokens = 4096;  // of options that count tokens, the most

  // Perplexity analyser.
  // The least confidence (prompt_confidence) to draft at all; 0: always, 1: never, both without analysis.
  double tau = 0.7;
  int analyse = 128;  // last tokens of the prompt
  // Adaptive draft selection.
  std::string gate;     // a gate's file; empty: none
  double alpha = 1.0;   // without a gate
  double exit = 0.7;    // below it the early exit
  int every = 8;        // tokens between two decisions of the gate
  double again = 0.85;  // acceptance under which it decides at once
  // Batched verification.
  int batch = 16;       // guesses a pass, of all requests; 0: any number, and no grouping
  double reject = 0.3;  // the least chance of a guess
  double patience = 2;  // of a run (verification_batch.h)
  int pool = 2;         // candidates grown for each place in the window
  bool dynamic = true;  // the window follows confidence
  int first = 8;        // window of a request: guesses a pass, at first
  double sure = 0.7;  // mean chance of its guesses from which the window may grow and under which it shrinks
  // Confidence evaluation.
  double upgrade = 0.2;   // excess of the draft's perplexity that makes the draft larger
  double failure = 0.35;  // ... that is the failure mode
  double step = 0.25;     // of alpha, when the draft is made larger
  int compare = 32;       // tokens whose perplexities are compared
  double stop = 0.7;      // acceptance under which speculation ends
  int monitor = 32;       // guesses it is judged by
  bool sliding = true;    // the last of them; false: all since speculation began
  int rest = 32;          // tokens without speculation
  int probe = 8;          // guesses, or cycles, that show whether to resume
};

// [0, 1]: 1 for a prompt that the draft foresaw, 0 for one that is noise to it. `surprise`: the mean of -ln p
// of its tokens, the logarithm of its perplexity; 1 - ln(perplexity) / ln(vocabulary).
double prompt_confidence(double surprise, int vocab);

// One option, for help and documents.
struct AdaptiveOption {
  std::string_view name, values, summary;
};
std::span<const AdaptiveOption> adaptive_option_rows();

// The options of an expression: of its preset (adaptive, adaptive-paper, adaptive-fitted), then of the file
// from=FILE, then those written out. An unknown name, a number out of range, a file that is none: a sentence.
// `read_files` false: from=FILE is not looked at.
Result<AdaptiveOptions> read_adaptive_options(const DrafterNode& expression, bool read_files = true);

}  // namespace coppice::core
