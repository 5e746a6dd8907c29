// Models with random weights and a valid byte-level BPE vocabulary: small ones for tests of the laws, and any
// shape for measuring. The same options give the same bytes on every machine, with any number of threads.
// Their logits are spread out and depend on the context, so greedy text does not repeat one token.
#pragma once

#include <coppice/error.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "model/config.h"

namespace coppice::core {

struct RandomModelOptions {
  std::string architecture = "llama";  // a row of architectures.cc
  std::uint64_t seed = 1;
  int vocab = 320;  // 256 bytes, 3 control tokens, the rest merges: at least 260
  int hidden = 64;  // widths are multiples of 32
  int layers = 2;
  int heads = 4;
  int kv_heads = 2;
  int head_dim = 0;  // 0: hidden / heads
  int feed_forward = 128;
  int context_length = 512;
  int window = 0;   // positions of layers with a sliding window; 0: the file names none
  int experts = 0;  // of each layer; 0: it is dense, or has 4 where the architecture must have some
  int experts_used = 2;
  std::vector<std::string> formats = {"Q8_0"};  // of the blocks' matrices, in turn
  std::string embedding_format = "Q8_0";
  bool tied_head = true;
  SlimWidths slim;  // llama only; not empty: a slimmable model (slim.h), of which hidden is the widest
  std::string pre = "gpt-2";  // tokenizer.ggml.pre; or "smollm"
};

// A GGUF file's bytes.
Result<std::vector<std::byte>> random_model(const RandomModelOptions& options);
// The same bytes into a file, on all threads of the pool, a few megabytes of it in memory at a time. Errors
// name the option or the file; nothing is left of a file that is not whole. `progress` gets the fraction
// done; false stops.
struct RandomModelSize {
  std::uint64_t parameters = 0, bytes = 0;
};
Result<RandomModelSize> write_random_model(const RandomModelOptions& options, const std::string& path,
                                           ThreadPool& pool,
                                           const std::function<bool(double)>& progress = {});

}  // namespace coppice::core
