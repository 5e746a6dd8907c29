// Fitting a gate: gradient descent with Adam (arXiv:1412.6980) on
//
//   cycles + price * work,      both of the window behind a decision, expected under p(choice | alpha)
//
// where p falls with the distance of a choice's alpha, as if alpha were rounded with an error. The price of
// the draft's work, in passes of the target, is moved until the work is the wanted share of the whole draft's
// (a Lagrange multiplier). After every epoch the output's bias is set so that on windows of texts which are
// not learned from, with alpha rounded as in use, the work is just that; the epoch with the fewest cycles
// there stays.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "policy/gate.h"
#include "policy/gate_cycles.h"

namespace coppice::core {

// Decisions and what would have come of them.
struct GateExamples {
  int inputs = 0, choices = 0;
  std::vector<float> x;       // [decisions, inputs], the embedding first
  std::vector<float> cycles;  // [decisions, choices], of the window
  std::vector<float> work;    // [decisions, choices], in passes of the whole draft
  std::vector<float> whole;   // [decisions], the work of the whole draft there

  std::size_t size() const { return inputs > 0 ? x.size() / static_cast<std::size_t>(inputs) : 0; }
};

struct GateFitOptions {
  int layer = 0;
  int units = 32;
  double compute = 0.6;  // the work of the whole draft that may be spent. (0, 1]
  int epochs = 24;
  float rate = 2e-3f;  // at the start; it falls to a hundredth
  float decay = 0.02f;
  int batch = 128;  // decisions
  std::uint32_t seed = 1;
  std::function<bool(double fraction)> progress;  // false stops: the gate is as far as it is
};

struct GateFit {
  GateWeights weights;
  double price = 0;   // passes of the target that one of the whole draft may cost
  double cycles = 0;  // a decision, where not learned from
  int epoch = 0;      // that stayed
};

// What an alpha stands for.
struct GateRounding {
  std::vector<float> alphas;               // of the choices, rising
  std::function<int(float alpha)> choose;  // the choice an alpha is rounded to
};

// Both sets of examples have decisions; their inputs are standardised on the way.
GateFit fit_gate(GateExamples learned, GateExamples checked, const GateRounding& rounding,
                 const GateFitOptions& options);

}  // namespace coppice::core
