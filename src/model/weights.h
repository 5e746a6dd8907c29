// The weights of a model by role: matrices in the kernel layout, norms and biases as f32. Separate query, key
// and value (and gate and up) stay separate matrices: the pass runs them as one stage, so nothing is saved by
// joining them, and each keeps its tensor's name.
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>

#include <functional>
#include <string>
#include <vector>

#include "base/os.h"
#include "base/thread_pool.h"
#include "gguf/file.h"
#include "model/architectures.h"
#include "model/config.h"
#include "model/packing.h"
#include "quant/packed.h"

namespace coppice::core {

struct PackedCache;  // packed_cache.h

// f32 values, 64-byte aligned; empty when the architecture has none here.
struct WeightVector {
  Buffer memory;
  std::size_t size = 0;
  const float* data() const { return reinterpret_cast<const float*>(memory.data()); }
};

struct WeightMatrix {
  std::string name;  // of the tensor, "blk.0.attn_q.weight"
  PackedMatrix packed;
  WeightVector bias;  // [outputs], or empty
};

struct NormWeights {
  WeightVector weight;  // [hidden]
  WeightVector bias;    // [hidden], layer norm only
  bool empty() const { return weight.size == 0; }
};

// What RoPE's frequencies are divided by, [rope_dims / 2] or empty (architectures.h).
struct RopeFactors {
  WeightVector all;
  WeightVector longer, shorter;  // for contexts beyond the original one, and for others
};

// gate and up: hidden -> feed_forward; down: back.
struct ExpertWeights {
  WeightMatrix gate, up, down;
};

struct LayerWeights {
  NormWeights attention_norm;                 // empty: none, as all other norms here
  std::vector<WeightMatrix> query_key_value;  // three, or one fused: [hidden -> q, k, v]
  NormWeights query_norm, key_norm;           // [head_dim], or of all heads
  WeightMatrix attention_output;              // heads * head_dim -> hidden
  NormWeights attention_post_norm;
  NormWeights feed_forward_norm;
  std::vector<WeightMatrix>
      gate_up;        // {gate, up}, or {up} where nothing gates, or one fused [hidden -> gate, up]
  WeightMatrix down;  // feed_forward -> hidden
  NormWeights feed_forward_post_norm;
  // Instead of gate_up and down; a matrix is named as its tensor, with the expert's number behind.
  WeightMatrix router;  // hidden -> experts
  std::vector<ExpertWeights> experts;
};

// What one row is multiplied by in a block, if it uses so many experts.
std::vector<const WeightMatrix*> matrices_of_a_row(const LayerWeights& layer, int experts_used);

// The norms of a narrower width of a slimmable model (slim.h).
struct NarrowNorms {
  std::vector<NormWeights> attention, feed_forward;  // [layers]
  NormWeights output;
};

struct ModelWeights {
  PackedWeights packed;                      // what every matrix's packed bytes lie in
  WeightMatrix embedding;                    // [vocab] rows of hidden, or fewer that tokens share
  std::vector<std::int32_t> embedding_rows;  // [vocab] the row of every token; empty: each has its own
  WeightVector positions;                    // [context_length, hidden], learned positions only
  RopeFactors rope_factors;
  std::vector<LayerWeights> layers;
  NormWeights output_norm;
  WeightMatrix own_head;  // empty when tied
  std::vector<Token>
      head_tokens;  // full ids of a trimmed head's rows, ascending; empty: the whole vocabulary

  std::vector<NarrowNorms> narrow;  // of every width but the widest
  NormWeights exit_norm;            // before the head of an early exit

  int embedding_row(Token token) const {
    return embedding_rows.empty() ? token : embedding_rows[static_cast<std::size_t>(token)];
  }
  const WeightMatrix& head() const { return own_head.name.empty() ? embedding : own_head; }

  // Every tensor's presence, shape, type and scales are checked; packed on all threads of the pool, or out of
  // `cache` where there is one.
  static Result<ModelWeights> load(const gguf::File& file, const Architecture& row, const ModelConfig& config,
                                   ThreadPool& pool, const std::function<void(double)>& progress,
                                   PackedCache* cache = nullptr);
};

}  // namespace coppice::core
