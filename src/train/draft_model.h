// The slimmable draft in LibTorch. Weights are f32, and matrices are multiplied in the type the
// caller asks for (bf16 is twice as fast on CPUs that have it); the residual stream and the norms stay f32.
//
// A head's dimensions stand in halves here (i with i + head_dim / 2), where files have them in pairs (2i with
// 2i + 1): rotating halves needs no strided reads. draft_tensors.h puts the rows of wq and wk in order.
#pragma once

#include <cstdint>
#include <vector>

#include "train/draft_shape.h"
#include "train/torch.h"
#include "train/trainable.h"

namespace coppice::core::train {

struct DraftBlock {
  torch::Tensor wq, wk, wv;  // [heads or kv_heads * head_dim, hidden]
  torch::Tensor wo;          // [hidden, heads * head_dim]
  torch::Tensor gate, up;    // [feed_forward, hidden]
  torch::Tensor down;        // [hidden, feed_forward]
  // A gain of its own for every width: [widths] vectors of [hidden of that width].
  std::vector<torch::Tensor> attention_norm, feed_forward_norm;
};

// Keys (rotated) and values of a block: [texts, kv_heads, tokens, head_dim].
struct DraftKv {
  torch::Tensor k, v;
};

// K and V of other passes over the same texts, to be read instead of one's own where `take` says so.
struct OtherKv {
  std::vector<DraftKv> blocks;  // of each block
  torch::Tensor take;           // bool [texts, 1, tokens, 1]
};

// What passes inside a draft at one width, for whoever measures it (all f32, detached).
struct DraftTap {
  virtual ~DraftTap() = default;
  virtual void residual(const torch::Tensor& x) = 0;  // [texts, tokens, hidden] before a norm
  virtual void feed_forward(int block,
                            const torch::Tensor& a) = 0;  // [texts, tokens, feed_forward] before down
};

struct DraftPass {
  torch::Tensor hidden;     // [texts, tokens, hidden of the width], behind the last norm, in the compute type
  std::vector<DraftKv> kv;  // of every block
};

class SlimDraft {
 public:
  // Zero matrices and gains of one; draft_init.h and draft_file.h fill them. `head_tokens` [head_rows] are
  // the full ids of the head's rows, ascending.
  SlimDraft(DraftShape shape, std::vector<std::int32_t> head_tokens);

  // tokens: int64 [texts, tokens], at positions 0, 1, ... `mode.exit`: only the blocks below the exit run,
  // and the others' K and V are made from its state.
  DraftPass forward(const torch::Tensor& tokens, DraftMode mode, DraftTap* tap = nullptr);
  // The same over embeddings [texts, tokens, hidden], of which the width takes the first dimensions.
  DraftPass forward_embedded(const torch::Tensor& embedded, DraftMode mode, const OtherKv* other = nullptr,
                             DraftTap* tap = nullptr);
  // hidden [..., h] -> logits [..., rows]. `rows` [rows, hidden]: rows of the head; undefined: all of them.
  torch::Tensor logits(const torch::Tensor& hidden, const torch::Tensor& rows = {});
  // Embeddings of int64 [n] tokens at full width: [n, hidden], without gradient.
  torch::Tensor embed(const torch::Tensor& tokens) const;
  // int64 [n]: a token's row in used_embedding, or -1 - its row in rare_embedding where it has one of its
  // own.
  torch::Tensor place(const torch::Tensor& tokens) const { return place_.index_select(0, tokens); }

  // All weights but the rare tokens' embeddings; they share memory with the members below.
  std::vector<Parameter>& parameters() { return parameters_; }

  void set_compute_type(torch::ScalarType type) { compute_ = type; }
  torch::ScalarType compute_type() const { return compute_; }
  const DraftShape& shape() const { return shape_; }
  const std::vector<std::int32_t>& head_tokens() const { return head_tokens_; }
  // [vocab] row of the head, or -1.
  const torch::Tensor& row_of_token() const { return row_of_token_; }

  // The embedding of all tokens, [vocab, hidden]: a copy, out of the two parts below.
  torch::Tensor embedding() const;
  void set_embedding(const torch::Tensor& values);
  // From now on tokens outside the head have no embedding of their own but share one of the head's tokens:
  // `rows` int64 [vocab], the row of every token, those of the head's tokens their own.
  void share_embedding(const torch::Tensor& rows);
  bool shares_embedding() const { return rare_embedding.size(0) == 0 && shape_.head_rows < shape_.vocab; }
  // Embeddings of the head's tokens are trained (or not); the others stay what they are.
  torch::Tensor used_embedding;  // [head_rows, hidden]
  torch::Tensor rare_embedding;  // [vocab - head_rows, hidden], never trained; none where they are shared
  torch::Tensor head;            // [head_rows, hidden]
  std::vector<DraftBlock> blocks;
  std::vector<torch::Tensor> output_norm;  // [widths] vectors
  torch::Tensor exit_norm;                 // [hidden of the exit's width]; undefined without an exit

 private:
  struct Rotation {
    torch::Tensor cos, sin;  // [tokens, head_dim], the sine's first half negative
  };

  torch::Tensor matrix(const torch::Tensor& weight, std::int64_t outputs, std::int64_t inputs) const;
  torch::Tensor norm(const torch::Tensor& x, const torch::Tensor& gain) const;
  DraftKv keys_values(const DraftBlock& block, const torch::Tensor& normed, const Rotation& rotation) const;
  torch::Tensor attend(const DraftBlock& block, const torch::Tensor& normed, const DraftKv& kv,
                       const Rotation& rotation) const;
  torch::Tensor feed_forward(int block, const torch::Tensor& normed, int width, DraftTap* tap) const;
  const Rotation& rotation(std::int64_t tokens);

  DraftShape shape_;
  std::vector<std::int32_t> head_tokens_;
  torch::Tensor row_of_token_;  // int64 [vocab]
  torch::Tensor place_;         // int64 [vocab]: row in used_embedding, or -1 - row in rare_embedding
  Rotation rotation_;
  std::vector<Parameter> parameters_;
  torch::ScalarType compute_ = torch::kFloat32;
};

}  // namespace coppice::core::train
