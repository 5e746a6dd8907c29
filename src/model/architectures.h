// The table of architectures: one row per family. A row says how to read the shape from the file and what
// the tensors are called; weights.cc and forward.cc follow the flags and never ask for a name.
#pragma once

#include <coppice/error.h>

#include <span>
#include <string>
#include <string_view>

#include "gguf/file.h"
#include "model/config.h"

namespace coppice::core {

// Tensor names by role, without ".weight" and ".bias". Null: the architecture has none. Those of a block
// stand behind "blk.N.".
struct TensorNames {
  const char* token_embedding;
  const char* position_embedding;
  const char* attention_norm;
  const char* query;
  const char* key;
  const char* value;
  const char* query_key_value;  // one tensor instead of three
  const char* attention_output;
  const char* feed_forward_norm;
  const char* gate;
  const char* up;
  const char* down;
  const char* output_norm;
  const char* head;  // optional: without it the token embedding is the head
};

// i32 [vocab]: the row of token_embd that each token has, where tokens share rows.
inline constexpr const char* kEmbeddingRowsKey = "coppice.embedding.rows";
// i32: the full token ids of a trimmed head's rows, rising.
inline constexpr const char* kHeadTokensKey = "coppice.head.tokens";

struct Architecture {
  std::string_view name;
  // Reads and checks every size; the error names file and key.
  Result<ModelConfig> (*read)(const gguf::File& file, const Architecture& row);
  TensorNames tensors;
};

std::span<const Architecture> architectures();
// By general.architecture; an unknown one is refused with those there are.
Result<const Architecture*> find_architecture(const gguf::File& file);
// The shape of a model, without touching its weights.
Result<ModelConfig> read_config(const gguf::File& file);

}  // namespace coppice::core
