// The shape of a model, as its architecture's row (architectures.cc) read it from the file. One forward pass
// serves all architectures: flags, not subclasses.
#pragma once

#include <coppice/error.h>

#include <cstdint>
#include <string>
#include <vector>

namespace coppice::core {

enum class Norm : std::uint8_t { rms, layer };
enum class Activation : std::uint8_t { silu_gated, gelu };
enum class Positions : std::uint8_t { rope, learned };

// Widths at which the weights of one file were trained, the narrowest first: width w uses the first hidden[w]
// dimensions of the residual stream and the first feed_forward[w] of the feed-forward part in every tensor;
// the last is the model itself. Empty where there is only one. docs/file-formats.md, "Slimmable drafts".
struct SlimWidths {
  std::vector<int> hidden, feed_forward;
  std::vector<float> factors;  // what they are called, rising; about hidden[w] / hidden of factor 1
  int exit_layer = 0;          // blocks the early exit runs; 0: there is none
  int exit_width = 0;          // of the exit, an index
};

struct ModelConfig {
  std::string architecture;  // "llama", "gpt2"
  std::string name;          // general.name
  int vocab = 0;
  int hidden = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int feed_forward = 0;
  int context_length = 0;  // trained
  Norm norm = Norm::rms;
  Activation activation = Activation::silu_gated;
  Positions positions = Positions::rope;
  bool fused_qkv = false;  // one tensor attn_qkv
  bool biases = false;     // every matmul of a block has a bias
  bool tied_head = false;  // no output.weight: the token embedding is the head
  float norm_eps = 1e-5f;
  double rope_base = 10000.0;
  int rope_dims = 0;
  SlimWidths slim;
};

}  // namespace coppice::core
