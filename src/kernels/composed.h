// Functions of rows that are made of the table's functions and of single IEEE operations in a stated order:
// written once, with the same bits on every table (docs/numerics.md, 15). For what is small beside a pass.
#pragma once

#include <span>

#include "kernels/kernels.h"

namespace coppice::core {

// x * Phi(x), the exact form, to about 1e-7. out may be x. The order:
//   e = exp2(x * x * kGaussian); t = 1 / (1 + |x| * kErfStep)
//   q = ((((b5 t + b4) t + b3) t + b2) t + b1) t * e            about Phi(-|x|)
//   x < 0: x * q, else x - x * q
// (Abramowitz and Stegun, 7.1.26)
void gelu_exact(const Kernels& kernels, const float* x, float* out, int n);

// x = cap * tanh(x / cap), as cap - (cap + cap) / (1 + exp2(x * (2 log2(e) / cap))), the factor made in f64
// and rounded once.
void soft_cap(const Kernels& kernels, float cap, float* x, int n);

// The `count` largest logits, each the lowest index among equals, in order, and their weights: a softmax over
// these alone, exp2((logit - largest) * log2(e)), each divided by the sum in order. count <= logits.size().
struct ExpertChoice {
  int expert;
  float weight;
};
void choose_experts(std::span<const float> logits, int count, ExpertChoice* choices);

}  // namespace coppice::core
