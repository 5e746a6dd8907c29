// The shape of a model, as its architecture's row (architectures.cc) read it from the file. One forward pass
// serves all architectures: flags, not subclasses.
#pragma once

#include <coppice/error.h>

#include <cstdint>
#include <string>
#include <vector>

namespace coppice::core {

enum class Norm : std::uint8_t { rms, layer };
// Of what `up` gives, or of what `gate` gives, times `up`. gelu is the form with a tanh, gelu_exact that with
// an error function.
enum class Activation : std::uint8_t { silu_gated, gelu_gated, gelu, gelu_exact };
enum class Positions : std::uint8_t { rope, learned };
// Which two dimensions of a head RoPE turns together: (2i, 2i + 1), or (i, i + dims / 2).
enum class RopePairs : std::uint8_t { interleaved, halves };
// Whether matrices have biases; optional: as block 0 of the file says.
enum class Bias : std::uint8_t { none, required, optional };

constexpr bool gated(Activation activation) {
  return activation == Activation::silu_gated || activation == Activation::gelu_gated;
}

// What all models of an architecture have in common.
struct BlockFlags {
  Norm norm = Norm::rms;
  Activation activation = Activation::silu_gated;
  Positions positions = Positions::rope;
  RopePairs pairs = RopePairs::interleaved;
  Bias bias_qkv = Bias::none, bias_output = Bias::none, bias_feed_forward = Bias::none;
  bool fused_qkv = false;         // one tensor instead of three
  bool fused_gate_up = false;     // one tensor, gate first
  bool whole_query_norm = false;  // norms of queries and keys span all heads, not each
  bool parallel = false;          // attention and feed-forward part read the same residual stream
};

// RoPE for contexts longer than the one first trained on. The angle of pair i is position * frequency i.
struct RopeScaling {
  enum class Kind : std::uint8_t { none, linear, yarn, longrope };
  Kind kind = Kind::none;
  double factor = 1;         // linear, yarn: how much longer
  int original_context = 0;  // yarn, longrope
  double magnitude = 1;      // of cosines and sines
  double beta_fast = 32,
         beta_slow = 1;  // yarn: turns in the original context above and below which a frequency
                         // stays, or is divided by the factor (arXiv:2309.00071, section 3.2)
};

// Widths at which the weights of one file were trained, the narrowest first: width w uses the first hidden[w]
// dimensions of the residual stream and the first feed_forward[w] of the feed-forward part in every tensor;
// the last is the model itself. Empty where there is only one. docs/file-formats.md, "Slimmable drafts".
struct SlimWidths {
  std::vector<int> hidden, feed_forward;
  std::vector<float> factors;  // what they are called, rising; about hidden[w] / hidden of factor 1
  int exit_layer = 0;          // blocks the early exit runs; 0: there is none
  int exit_width = 0;          // of the exit, an index
};

struct ModelConfig : BlockFlags {
  std::string architecture;  // "llama", "gpt2"
  std::string name;          // general.name
  int vocab = 0;
  int hidden = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int feed_forward = 0;    // of one expert, where there are any
  int context_length = 0;  // trained
  bool qkv_biases = false, output_bias = false, feed_forward_biases = false;
  bool tied_head = false;  // no output.weight: the token embedding is the head
  float norm_eps = 1e-5f;

  double rope_base = 10000.0;
  int rope_dims = 0;
  RopeScaling rope_scaling;
  bool rope_factors = false;    // frequencies are divided by factors of their own (weights.h)
  double window_rope_base = 0;  // of layers with a window, and without scaling; 0: as all others

  int window = 0;                      // positions that a row of a windowed layer sees, its own included
  std::vector<std::uint8_t> windowed;  // [layers], or empty: no layer is

  std::vector<std::uint8_t> unturned;  // [layers], those without RoPE; or empty: all have it

  double attention_scale = 0;          // of scores; 0: 1 / sqrt(head_dim)
  float embedding_scale = 1;           // of token embeddings
  float residual_scale = 1;            // of what a block adds to the residual stream
  float logit_scale = 1;               // of logits, before they are capped
  float score_cap = 0, logit_cap = 0;  // cap * tanh(x / cap); 0: none

  int experts = 0;       // of a layer; 0: its feed-forward part is dense
  int experts_used = 0;  // by a row

  SlimWidths slim;

  bool has_window(int layer) const {
    return !windowed.empty() && windowed[static_cast<std::size_t>(layer)] != 0;
  }
  bool has_rope(int layer) const {
    return positions == Positions::rope &&
           (unturned.empty() || unturned[static_cast<std::size_t>(layer)] == 0);
  }
};

// A llama without any of the extensions above: what train/ can make drafts for, and draft heads can read.
bool plain_llama(const ModelConfig& config);

}  // namespace coppice::core
