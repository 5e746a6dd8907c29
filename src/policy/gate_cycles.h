// What a gate learns from and is judged by: cycles of a chain of guesses, played along texts of which it is
// known what every variant of the draft would have guessed at every token (draft_along.h).
//
// A cycle costs one pass of the target and, for each guess that was asked for, one of the draft. Which
// guesses follow a wrong one is not known; the draft is taken to be as sure of them as it was along the text.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "draft/draft_along.h"

namespace coppice::core {

// A variant of the draft, and the alphas that choose it.
struct GateChoice {
  std::string name;
  int variant = 0;
  float alpha = 1;  // in the middle of those
  double cost = 1;  // what a pass streams, of what one of the whole draft does
};

struct GateRules {
  float exit = 0.7f;    // alpha under which the early exit is chosen, where there is one
  int every = 8;        // tokens from one decision to the next
  int depth = 8;        // guesses of a chain
  float reject = 0.3f;  // the least chance of a guess that is submitted
};

// Those that some alpha from 0.5 to 1.5 chooses, by alpha. A draft of one width has one.
std::vector<GateChoice> gate_choices(const Model& draft, const GateRules& rules);
// Index of the choice of this alpha. The same as a policy's: the exit, else the nearest width.
int choice_of(const Model& draft, const GateRules& rules, std::span<const GateChoice> choices, float alpha);
// Every variant, chosen by no alpha or some: what constants can be had.
std::vector<GateChoice> all_variants(const Model& draft);

using Guesses = std::vector<DraftAlong::Guess>;

// [variant], each a guess a token of what was generated.
struct GuessedText {
  std::vector<Guesses> by_variant;

  std::size_t tokens() const { return by_variant.empty() ? 0 : by_variant.front().size(); }
};

struct CycleSum {
  double tokens = 0;
  double cycles = 0;  // passes of the target
  double work = 0;    // of the draft, in passes of the whole draft

  void add(const CycleSum& other) {
    tokens += other.tokens;
    cycles += other.cycles;
    work += other.work;
  }
  double accepted() const { return cycles > 0 ? tokens / cycles - 1 : 0; }  // guesses taken a cycle
};

// The cycle that begins at the text's token `at`: its tokens (what is accepted, and one) and passes.
struct Chain {
  int tokens = 1, passes = 0;
};
Chain chain_at(std::span<const DraftAlong::Guess> guesses, std::size_t at, const GateRules& rules);

// The `every` tokens from `at` on with one choice; of a cycle that reaches further its part counts.
CycleSum window_at(const GuessedText& text, std::size_t at, const GateChoice& choice, const GateRules& rules);

// The whole text, as a policy walks: choose(at) is asked at its begin and then at the first cycle that begins
// `every` or more tokens after the last decision.
using ChooseAt = std::function<const GateChoice&(std::size_t at)>;
CycleSum walk(const GuessedText& text, const ChooseAt& choose, const GateRules& rules);

// The fewest cycles to be had at this much work, by one constant or by two in turn: on the lower hull of the
// constants' points. Less work than the cheapest constant's: that one's cycles. `constants` are not empty,
// and of the same text.
double cycles_of_constants(std::span<const CycleSum> constants, double work);

}  // namespace coppice::core
