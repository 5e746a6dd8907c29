// The table of architectures: one row per family. A row says how to read the shape from the file, what its
// blocks do, and what the tensors are called; weights.cc and forward.cc follow the flags and never ask for a
// name.
#pragma once

#include <coppice/error.h>

#include <span>
#include <string>
#include <string_view>

#include "gguf/file.h"
#include "model/config.h"
#include "model/shape_keys.h"

namespace coppice::core {

// Tensor names by role, without ".weight" and ".bias". Null: the architecture has none. Those of a block
// stand behind "blk.N.".
struct TensorNames {
  const char* token_embedding = "token_embd";
  const char* position_embedding = nullptr;
  const char* attention_norm = "attn_norm";     // null: attention reads the residual stream as it is
  const char* second_attention_norm = nullptr;  // where a file has it, attention reads this one, and the
                                                // feed-forward part the first
  const char* query = "attn_q";
  const char* key = "attn_k";
  const char* value = "attn_v";
  const char* query_key_value = nullptr;  // one tensor instead of three
  const char* query_norm = nullptr;       // before RoPE
  const char* key_norm = nullptr;
  const char* attention_output = "attn_output";
  const char* attention_post_norm = nullptr;   // of what attention adds to the residual stream
  const char* feed_forward_norm = "ffn_norm";  // null: as attention_norm
  const char* gate = "ffn_gate";
  const char* up = "ffn_up";  // or gate and up in one
  const char* down = "ffn_down";
  const char* feed_forward_post_norm = nullptr;
  const char* output_norm = "output_norm";
  const char* head = "output";  // optional: without it the token embedding is the head
  // Of models with experts, instead of gate, up and down: [experts] matrices in one tensor.
  const char* router = nullptr;
  const char* expert_gates = nullptr;
  const char* expert_ups = nullptr;
  const char* expert_downs = nullptr;
};

// f32 [rope_dims / 2], outside the blocks: what RoPE's frequencies are divided by. The long and short ones
// come together: which a context uses depends on how long its sequences may become.
inline constexpr const char* kRopeFactors = "rope_freqs.weight";
inline constexpr const char* kRopeFactorsLong = "rope_factors_long.weight";
inline constexpr const char* kRopeFactorsShort = "rope_factors_short.weight";

// i32 [vocab]: the row of token_embd that each token has, where tokens share rows.
inline constexpr const char* kEmbeddingRowsKey = "coppice.embedding.rows";
// i32: the full token ids of a trimmed head's rows, rising.
inline constexpr const char* kHeadTokensKey = "coppice.head.tokens";

struct Architecture {
  std::string_view name;
  BlockFlags flags = {};
  // Sliding windows, where the file states one: of every layer (1), of all but each n-th layer (n), of none
  // (0: such a file is refused).
  int window_period = 0;
  int unturned_period = 0;  // each n-th layer has no RoPE; 0: all have it
  // Reads and checks what only this family states; null: nothing. The error names file and key.
  Status (*read)(const ShapeKeys& keys, ModelConfig& config) = nullptr;
  TensorNames tensors = {};
};

std::span<const Architecture> architectures();
// By general.architecture; an unknown one is refused with those there are.
Result<const Architecture*> find_architecture(const gguf::File& file);
// The shape of a model, without touching its weights.
Result<ModelConfig> read_config(const gguf::File& file);

// What a row's flags and the file's keys say, checked; also that no key of the architecture is left unread.
Result<ModelConfig> read_shape(const gguf::File& file, const Architecture& row);
// Which layers have a window of config.window positions: all but each `period`-th. With its own key the file
// may say otherwise.
Status read_windowed(const ShapeKeys& keys, int period, ModelConfig& config);

}  // namespace coppice::core
