// Weights of GGUF files as f32, to begin training with.
#pragma once

#include <coppice/error.h>
#include <coppice/token.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "model/config.h"

namespace coppice::core::train {

// The values of a tensor of this shape (ne[0] first; left-out dimensions are 1). Errors name file and tensor.
Result<std::vector<float>> read_values(const gguf::File& file, const std::string& name,
                                       std::vector<std::int64_t> shape);

// I64: ids of tokens.
const Format& integer_format();

// A llama-shaped model to learn from: RMS norms, gated SiLU, RoPE, no biases, separate matrices. Others are
// refused.
struct Target {
  std::shared_ptr<const gguf::File> file;
  ModelConfig config;
  std::vector<Token> end_tokens;
  std::uint64_t vocabulary_hash = 0;
  std::string hash;  // of the file, as corpora name it

  static Result<Target> open(const std::string& path);
  // "attn_q" of block 3: [inputs, outputs] as `shape` says.
  Result<std::vector<float>> block(int layer, const char* role, std::vector<std::int64_t> shape) const;
  Result<std::vector<float>> embedding() const;    // [vocab, hidden]
  Result<std::vector<float>> output() const;       // [vocab, hidden]; the embedding where the head is tied
  Result<std::vector<float>> output_norm() const;  // [hidden]
};

}  // namespace coppice::core::train
