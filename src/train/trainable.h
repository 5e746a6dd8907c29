// What a model must offer to be trained by the loop in trainer.h: its parameters, one step's loss, a
// judgement on text it has not seen, and the file it becomes. A head, a draft, a gate are one Trainable each.
#pragma once

#include <coppice/error.h>

#include <string>
#include <vector>

#include "gguf/writer.h"
#include "train/random.h"
#include "train/torch.h"

namespace coppice::core::train {

// B stretches of texts, each padded at its end to T tokens. What is padding in `ids` is 0, in `scored` false.
// Attention needs no mask but the causal one: padding comes last, and nobody asks what it says.
struct Batch {
  torch::Tensor ids;      // [B, T] int64
  torch::Tensor lengths;  // [B] int64, tokens that are no padding
  // Whether the target's distribution of this token, given those before it, is known and is to be learned.
  // Never at t = 0, and each generated token of a text is scored in exactly one of its stretches.
  torch::Tensor scored;    // [B, T] bool
  torch::Tensor top;       // [B, T, K] int64: the likeliest tokens AT t (given those before), best first
  torch::Tensor top_logp;  // [B, T, K] f32: natural logarithms of their probabilities at temperature 1
  torch::Tensor features;  // [B, T, F * H] f32, behind the pass over token t; undefined when not asked for

  std::int64_t tokens() const { return scored.sum().item<std::int64_t>(); }
};

struct Parameter {
  std::string name;     // the same in every run: checkpoints find it by name
  torch::Tensor value;  // f32 leaf with requires_grad; the trainer changes it in place
  bool decay = true;    // weight decay: matrices, not norms
  double rate = 1;      // times the learning rate
};

// How well it foretells the target's own choice (the likeliest token), over scored positions.
struct Agreement {
  std::string name;  // "depth 1", "width 0.75"
  double tokens = 0;
  double top1 = 0, top4 = 0, top8 = 0;  // the target's choice is among its first n: counts
  double overlap = 0;                   // sum of min(p, q): what sampling would accept

  void add(const Agreement& other);
  double of(double count) const { return tokens > 0 ? count / tokens : 0; }
};

class Trainable {
 public:
  virtual ~Trainable() = default;

  virtual std::vector<Parameter>& parameters() = 0;

  // Forward and backward passes of one step: adds gradients of the mean loss to the parameters' grad(), and
  // returns that loss. Everything random comes from `random`. May run several forward and backward passes.
  virtual double learn(const Batch& batch, Random& random) = 0;

  // Adds to `sums` (empty the first time; the same names in the same order every time). The first is the one
  // that stands in the log's columns. Called without gradients.
  virtual void judge(const Batch& batch, std::vector<Agreement>& sums) = 0;

  // Tokens a pass of the target would bring with a chain of guesses, estimated from what judge() counted. The
  // default takes the first agreement at every depth of a chain of 8.
  virtual double accepted(const std::vector<Agreement>& sums) const;

  // Adds every key and tensor of the file, but the provenance (coppice.train.*), which the trainer adds.
  virtual Status export_to(gguf::Writer& writer) const = 0;
};

}  // namespace coppice::core::train
