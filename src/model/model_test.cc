// A row's logits do not depend on how the pass was cut, threaded or kept: every comparison is of bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/testing.h"

namespace coppice::core {
namespace {

using testing::copy;
using testing::make_context;
using testing::make_model;
using testing::run_chain;
using testing::some_tokens;

struct Kind {
  const char* name;
  RandomModelOptions options;
  CacheType cache;
};

std::vector<Kind> kinds() {
  RandomModelOptions llama;
  llama.formats = {"Q4_1", "Q8_0", "Q4_0"};
  RandomModelOptions floats;
  floats.formats = {"F32", "F16", "BF16"};
  floats.embedding_format = "F16";
  floats.tied_head = false;
  RandomModelOptions gpt2;
  gpt2.architecture = "gpt2";
  gpt2.kv_heads = 4;
  gpt2.vocab = 301;  // not a multiple of 16
  RandomModelOptions wide_heads;
  wide_heads.head_dim = 32;
  wide_heads.kv_heads = 1;
  wide_heads.layers = 1;
  return {{"llama", llama, CacheType::f16},
          {"floats", floats, CacheType::f32},
          {"gpt2", gpt2, CacheType::f16},
          {"wide_heads", wide_heads, CacheType::q8_0}};
}

class ModelKinds : public ::testing::TestWithParam<Kind> {
 protected:
  ContextOptions options() const {
    ContextOptions options;
    options.kv.type = GetParam().cache;
    options.kv.sequences = 3;
    options.kv.positions = 256;
    return options;
  }
};

TEST_P(ModelKinds, ChunksAndThreadsDoNotChangeLogits) {
  ThreadPool one(1);
  const auto model = make_model(GetParam().options, one);
  const auto tokens = some_tokens(50, model->config().vocab);
  std::vector<std::vector<float>> expected;
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (const int chunk : {1, 7, 16, 50}) {
      auto context = make_context(model, pool, options());
      const int sequence = *context->cache().open();
      const auto logits = run_chain(*context, sequence, tokens, chunk);
      if (expected.empty()) expected = logits;
      EXPECT_EQ(logits, expected) << threads << " threads, chunks of " << chunk;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ModelKinds, ::testing::ValuesIn(kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace coppice::core
