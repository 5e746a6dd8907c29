// A head that reads the target's states: one block over (embedding of the next token, states of this one), as
// EAGLE-3 has it (arXiv:2503.01840, section 3), unrolled over its own output so that chains of guesses stay
// good
// ("training-time test").
//
// Row p takes the target's states behind token p and the embedding of token p + 1, stands at rotary position
// p, and foretells token p + 2. At depth k > 1 the states are unknown and the block's own output at row p -
// 1, depth k - 1, stands for them; such a row sees, of the past, the keys of depth 1 up to row p - k + 1 and
// the keys of its own chain.
#pragma once

#include <string>
#include <vector>

#include "train/ops.h"
#include "train/trainable.h"
#include "train/weights.h"

namespace coppice::core::train {

struct HeadShape {
  int hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, feed_forward = 0, features = 0;  // features: F * H
  double norm_eps = 1e-5, rope_base = 10000;
  int context_length = 0;
  std::vector<int> layers;  // whose states are read
};

struct HeadRecipe {
  int depth = 3;
  double narrowing = 0.5;     // share of a batch's stretches that goes on to the next depth
  double depth_weight = 0.8;  // of the loss, from depth to depth
  int negatives = 1024;
  double temperature = 1;
  Objective objective = Objective::kl;
  bool train_output = true;
  std::string format = "Q8_0";
};

// What the head begins with; f32, as the file's tensors.
struct HeadWeights {
  torch::Tensor mean, scale;                        // [F * H]
  torch::Tensor fc;                                 // [h, F * H]
  torch::Tensor embedding_norm, hidden_norm;        // [h]
  torch::Tensor query, key, value;                  // [heads * head_dim, 2 h]: embedding's half first
  torch::Tensor attention_output;                   // [h, heads * head_dim]
  torch::Tensor feed_forward_norm, gate, up, down;  // [h], [ff, h] twice, [h, ff]
  torch::Tensor output_norm, output;                // [h], [rows, h]
};

class HeadModel : public Trainable {
 public:
  HeadModel(HeadShape shape, HeadRecipe recipe, HeadWeights weights, DraftVocabulary vocabulary,
            torch::Tensor embedding);  // [vocab, h], the target's

  std::vector<Parameter>& parameters() override { return parameters_; }
  double learn(const Batch& batch, Random& random) override;
  void judge(const Batch& batch, std::vector<Agreement>& sums) override;
  double accepted(const std::vector<Agreement>& sums) const override;
  Status export_to(gguf::Writer& writer) const override;

 private:
  // Block outputs [rows_k, R, h] at depths 1 to `depth`, of the first `rows_k` stretches each.
  std::vector<torch::Tensor> unroll(const Batch& batch, int depth, double narrowing) const;

  HeadShape shape_;
  HeadRecipe recipe_;
  HeadWeights weights_;
  DraftVocabulary vocabulary_;
  torch::Tensor embedding_;
  std::vector<Parameter> parameters_;
};

}  // namespace coppice::core::train
