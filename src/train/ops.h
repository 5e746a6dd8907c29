// Pieces of models for training: products in bf16 with f32 sums, norms, rotary positions, and the loss of a
// draft that learns a target's stored log-probabilities. All of them differentiable, on any device.
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "train/random.h"
#include "train/torch.h"
#include "train/trainable.h"

namespace coppice::core::train {

// LibTorch throws; no exception crosses a room. The first line of what it says.
tl::unexpected<Error> torch_failed(const std::exception& error);

// How project() multiplies. bf16: operands are rounded, sums and results f32. Set once, before training.
enum class Precision { f32, bf16 };
void set_precision(Precision precision);
Precision precision();

// x [..., in] f32, weight [out, in] f32 -> [..., out] f32.
torch::Tensor project(const torch::Tensor& x, const torch::Tensor& weight);
// x / rms(x) * gain over the last dimension.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& gain, double eps);
// silu(gate) * up, elementwise.
torch::Tensor gated(const torch::Tensor& gate, const torch::Tensor& up);

// Rotary positions for pairs (2i, 2i + 1), as llama files of GGUF have them.
struct Rope {
  Rope(double base, int dims, int positions);  // positions 0 to positions - 1
  torch::Tensor cosine, sine;                  // [positions, dims / 2]
  // x [B, T, heads, head_dim] at positions first, first + 1, ...
  torch::Tensor turn(const torch::Tensor& x, int first = 0) const;
};

// A trimmed vocabulary: the most used tokens.
struct DraftVocabulary {
  std::vector<Token> tokens;  // full ids of the rows, ascending
  torch::Tensor rows;         // [vocab] int64: a full id's row, or -1
  std::int64_t size() const { return static_cast<std::int64_t>(tokens.size()); }
};
// The `size` most used ones (all of them where size is 0 or too large); `always` are among them.
DraftVocabulary choose_vocabulary(const std::vector<std::uint64_t>& counts, int size,
                                  const std::vector<Token>& always);
DraftVocabulary make_vocabulary(std::vector<Token> tokens, std::int64_t vocab);

enum class Objective {
  kl,  // forward KL divergence, what no stored token has in one bucket
  tv,  // total variation: 1 - sum of min(p, q), the share that sampling would refuse (arXiv:2211.17192)
  lk,  // -log of sum of min(p, q)
};
Result<Objective> find_objective(std::string_view name);

// Which rows of the head a step computes: those that some position's teacher names, and as many others drawn
// at random, which stand for all the rest.
struct SampledRows {
  torch::Tensor rows;        // [R] int64, rows of the head
  torch::Tensor log_weight;  // [R] f32: how many rows each stands for, as a logarithm (0 for the named ones)
  torch::Tensor at;  // [N, K] int64: where among `rows` a teacher's token is, or -1 (not in the vocabulary)
};
// top [N, K] int64 full ids. negatives = 0: all rows of the head.
SampledRows sample_rows(const DraftVocabulary& vocabulary, const torch::Tensor& top, int negatives,
                        Random& random);

struct Teacher {
  torch::Tensor at;    // [N, K] int64, columns of the logits, or -1
  torch::Tensor logp;  // [N, K] f32, best first
  double temperature =
      1;  // 0.5: the target's distribution squared and normalised (what is not stored: bounded)
  Objective objective = Objective::kl;
};
// The mean loss over positions. logits [N, R] f32, log weights already added. The gradient is made in the
// forward pass, so that nothing but it is kept.
torch::Tensor distil(const torch::Tensor& logits, const Teacher& teacher);

// Adds what logits [N, rows of the vocabulary] say about the teacher's tokens: top [N, K] full ids, best
// first.
void count_agreement(const torch::Tensor& logits, const DraftVocabulary& vocabulary, const torch::Tensor& top,
                     const torch::Tensor& logp, Agreement& sum);

}  // namespace coppice::core::train
