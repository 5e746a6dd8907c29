#include "policy/gate_cycles.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "draft/model_drafter.h"
#include "model/slim.h"
#include "policy/gate.h"

namespace coppice::core {
namespace {

int exit_of(const Model& draft) {
  const std::span<const Variant> variants = draft.variants();
  return variants.back().name == "exit" ? static_cast<int>(variants.size()) - 1 : -1;
}

int variant_of(const Model& draft, const GateRules& rules, float alpha) {
  const int exit = exit_of(draft);
  return exit >= 0 && alpha < rules.exit ? exit : width_for(draft, alpha);
}

double cost_of(const Model& draft, int variant) {
  const auto bytes = [&](int v) {
    return static_cast<double>(draft.variants()[static_cast<std::size_t>(v)].streamed_bytes());
  };
  return bytes(variant) / bytes(draft.whole());
}

std::string name_of(const Variant& variant) { return variant.name.empty() ? "1" : variant.name; }

}  // namespace

std::vector<GateChoice> gate_choices(const Model& draft, const GateRules& rules) {
  // Alphas are looked at one by one: whatever the policy's rule, these are the ones it chooses.
  constexpr int kSteps = 2000;
  std::vector<GateChoice> choices;
  float first = kLeastAlpha;
  for (int i = 0; i <= kSteps; ++i) {
    const float alpha = kLeastAlpha + (kMostAlpha - kLeastAlpha) * static_cast<float>(i) / kSteps;
    const int variant = variant_of(draft, rules, alpha);
    if (choices.empty() || choices.back().variant != variant) {
      const Variant& v = draft.variants()[static_cast<std::size_t>(variant)];
      choices.push_back({name_of(v), variant, alpha, cost_of(draft, variant)});
      first = alpha;
    }
    choices.back().alpha = (first + alpha) / 2;
  }
  return choices;
}

int choice_of(const Model& draft, const GateRules& rules, std::span<const GateChoice> choices, float alpha) {
  const int variant = variant_of(draft, rules, alpha);
  const auto found = std::find_if(choices.begin(), choices.end(),
                                  [variant](const GateChoice& choice) { return choice.variant == variant; });
  COPPICE_CHECK(found != choices.end());
  return static_cast<int>(found - choices.begin());
}

std::vector<GateChoice> all_variants(const Model& draft) {
  std::vector<GateChoice> choices;
  for (int v = 0; v < static_cast<int>(draft.variants().size()); ++v) {
    const Variant& variant = draft.variants()[static_cast<std::size_t>(v)];
    choices.push_back({name_of(variant), v, variant.factor, cost_of(draft, v)});
  }
  return choices;
}

Chain chain_at(std::span<const DraftAlong::Guess> guesses, std::size_t at, const GateRules& rules) {
  COPPICE_CHECK(at < guesses.size());
  // The draw after the last guess is free: none is asked for at the last token.
  const std::size_t most =
      std::min<std::size_t>(static_cast<std::size_t>(rules.depth), guesses.size() - at - 1);
  Chain chain;
  bool right = true;
  for (std::size_t k = 0; k < most; ++k) {
    ++chain.passes;
    const DraftAlong::Guess& guess = guesses[at + k];
    if (guess.chance < rules.reject) break;
    right = right && guess.right;
    if (right) ++chain.tokens;
  }
  return chain;
}

CycleSum window_at(const GuessedText& text, std::size_t at, const GateChoice& choice,
                   const GateRules& rules) {
  const Guesses& guesses = text.by_variant[static_cast<std::size_t>(choice.variant)];
  const std::size_t end = std::min(guesses.size(), at + static_cast<std::size_t>(rules.every));
  CycleSum sum;
  while (at < end) {
    const Chain chain = chain_at(guesses, at, rules);
    const double inside = static_cast<double>(std::min<std::size_t>(end - at, chain.tokens));
    const double part = inside / chain.tokens;
    sum.add({inside, part, part * chain.passes * choice.cost});
    at += static_cast<std::size_t>(chain.tokens);
  }
  return sum;
}

CycleSum walk(const GuessedText& text, const ChooseAt& choose, const GateRules& rules) {
  CycleSum sum;
  const GateChoice* choice = nullptr;
  std::size_t again = 0;
  for (std::size_t at = 0; at < text.tokens();) {
    if (at >= again) {
      choice = &choose(at);
      again = at + static_cast<std::size_t>(rules.every);
    }
    const Chain chain = chain_at(text.by_variant[static_cast<std::size_t>(choice->variant)], at, rules);
    sum.add({static_cast<double>(chain.tokens), 1, chain.passes * choice->cost});
    at += static_cast<std::size_t>(chain.tokens);
  }
  return sum;
}

double cycles_of_constants(std::span<const CycleSum> constants, double work) {
  COPPICE_CHECK(!constants.empty());
  double fewest = std::numeric_limits<double>::infinity();
  double cheapest = std::numeric_limits<double>::infinity(), of_cheapest = 0;
  for (const CycleSum& a : constants) {
    if (a.work < cheapest) cheapest = a.work, of_cheapest = a.cycles;
    if (a.work > work) continue;
    fewest = std::min(fewest, a.cycles);
    for (const CycleSum& b : constants)  // a and b in turn, so that the work is spent
      if (b.work > work)
        fewest = std::min(fewest, a.cycles + (b.cycles - a.cycles) * (work - a.work) / (b.work - a.work));
  }
  return work < cheapest ? of_cheapest : fewest;
}

}  // namespace coppice::core
