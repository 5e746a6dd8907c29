// Small models with random weights and a valid byte-level BPE vocabulary: for tests of the laws, and for
// anybody who wants to try the program without a download. The same options give the same bytes on every
// machine. Their logits are spread out and depend on the context, so greedy text does not repeat one token.
#pragma once

#include <coppice/error.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace coppice::core {

struct RandomModelOptions {
  std::string architecture = "llama";  // or "gpt2"
  std::uint64_t seed = 1;
  int vocab = 320;  // 256 bytes, 3 control tokens, the rest merges: at least 260
  int hidden = 64;  // widths are multiples of 32
  int layers = 2;
  int heads = 4;
  int kv_heads = 2;  // gpt2: equal to heads
  int head_dim = 0;  // 0: hidden / heads
  int feed_forward = 128;
  int context_length = 512;
  std::vector<std::string> formats = {"Q8_0"};  // of the blocks' matrices, in turn
  std::string embedding_format = "Q8_0";
  bool tied_head = true;
  std::string pre = "gpt-2";  // tokenizer.ggml.pre; or "smollm"
};

// A GGUF file's bytes.
Result<std::vector<std::byte>> random_model(const RandomModelOptions& options);

}  // namespace coppice::core
