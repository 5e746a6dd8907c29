// Files that are not what they say are refused with one sentence that names the key or the tensor.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>

#include "gguf/writer.h"
#include "model/architectures.h"
#include "model/testing.h"

namespace coppice::core {
namespace {

using testing::load_bytes;
using testing::message;

// A copy of a random model with a change: keys and tensors for which `replace_*` returns true are left to it.
struct Change {
  std::function<bool(gguf::Writer&, const gguf::Key&)> key;
  std::function<bool(gguf::Writer&, const gguf::Tensor&)> tensor;
  std::function<void(gguf::Writer&)> more;
};

class Load : public ::testing::Test {
 protected:
  std::vector<std::byte> changed(const Change& change, RandomModelOptions options = {}) {
    const auto bytes = *random_model(options);
    const auto file = *gguf::File::parse(bytes, "whole.gguf");
    gguf::Writer writer;
    for (const gguf::Key& key : file->keys())
      if (!change.key || !change.key(writer, key)) writer.copy(key);
    for (const gguf::Tensor& tensor : file->tensors())
      if (!change.tensor || !change.tensor(writer, tensor)) writer.copy(tensor);
    if (change.more) change.more(writer);
    return writer.to_bytes();
  }
  std::string refusal(const Change& change, RandomModelOptions options = {}) {
    return message(load_bytes(changed(change, options), pool_));
  }
  std::string with_u32(const std::string& name, std::uint32_t value, RandomModelOptions options = {}) {
    bool found = false;
    Change change;
    change.key = [&](gguf::Writer& writer, const gguf::Key& key) {
      if (key.name != name) return false;
      found = true;
      writer.add_u32(name, value);
      return true;
    };
    change.more = [&](gguf::Writer& writer) {
      if (!found) writer.add_u32(name, value);
    };
    return refusal(change, options);
  }
  std::string without_tensor(const std::string& name, RandomModelOptions options = {}) {
    Change change;
    change.tensor = [&](gguf::Writer&, const gguf::Tensor& tensor) { return tensor.name == name; };
    return refusal(change, options);
  }

  ThreadPool pool_{2};
};

#define EXPECT_SAYS(text, what) EXPECT_NE((text).find(what), std::string::npos) << text

TEST_F(Load, AnUnknownArchitectureIsRefusedWithThoseThereAre) {
  Change change;
  change.key = [](gguf::Writer& writer, const gguf::Key& key) {
    if (key.name != "general.architecture") return false;
    writer.add_text("general.architecture", "mamba");
    return true;
  };
  const std::string text = refusal(change);
  EXPECT_SAYS(text, "\"mamba\"");
  EXPECT_SAYS(text, "llama, gpt2");
}

TEST_F(Load, EveryMissingTensorIsNamed) {
  for (const Architecture& row : architectures()) {
    RandomModelOptions options;
    options.architecture = row.name;
    options.kv_heads = 4;
    const auto bytes = *random_model(options);
    const auto file = *gguf::File::parse(bytes, "whole.gguf");
    for (const gguf::Tensor& tensor : file->tensors()) {
      const std::string name(tensor.name);
      // Where biases are optional, block 0 says whether there are any.
      const bool optional = row.flags.bias_qkv == Bias::optional;
      if (optional && name.starts_with("blk.0.") && name.ends_with(".bias")) continue;
      const std::string text = without_tensor(name, options);
      EXPECT_SAYS(text, name);
      EXPECT_SAYS(text, "missing");
    }
  }
}

TEST_F(Load, ATensorOfAnotherShapeIsNamedWithBothShapes) {
  Change change;
  change.tensor = [](gguf::Writer& writer, const gguf::Tensor& tensor) {
    if (tensor.name != "blk.1.attn_k.weight") return false;
    const std::vector<float> values(64 * 64, 0.5f);
    writer.add_values("blk.1.attn_k.weight", *tensor.format, {64, 64}, values);
    return true;
  };
  const std::string text = refusal(change);
  EXPECT_SAYS(text, "blk.1.attn_k.weight");
  EXPECT_SAYS(text, "64 x 64");
  EXPECT_SAYS(text, "64 x 32");
}

TEST_F(Load, AScaleThatIsNotFiniteIsNamedWithItsRow) {
  Change change;
  change.tensor = [](gguf::Writer& writer, const gguf::Tensor& tensor) {
    if (tensor.name != "blk.0.ffn_up.weight") return false;
    std::vector<std::byte> bytes(tensor.data, tensor.data + tensor.bytes);
    const std::uint16_t infinity = 0x7c00;
    std::memcpy(bytes.data() + 100 * 68, &infinity, 2);  // Q8_0: 34 bytes a block, two blocks a row
    writer.add_tensor("blk.0.ffn_up.weight", *tensor.format, {64, 128}, std::move(bytes));
    return true;
  };
  const std::string text = refusal(change);
  EXPECT_SAYS(text, "blk.0.ffn_up.weight");
  EXPECT_SAYS(text, "not finite");
  EXPECT_SAYS(text, "row 100");
}

TEST_F(Load, ANormThatIsNotFiniteOrQuantisedIsRefused) {
  for (const bool quantised : {false, true}) {
    Change change;
    change.tensor = [&](gguf::Writer& writer, const gguf::Tensor& tensor) {
      if (tensor.name != "output_norm.weight") return false;
      std::vector<float> values(64, quantised ? 1.0f : NAN);
      writer.add_values("output_norm.weight", *find_format(quantised ? "Q8_0" : "F32"), {64}, values);
      return true;
    };
    const std::string text = refusal(change);
    EXPECT_SAYS(text, "output_norm.weight");
    EXPECT_SAYS(text, quantised ? "must be F32, F16 or BF16" : "not finite at index 0");
  }
}

TEST_F(Load, SizesThatContradictEachOtherAreNamedByKey) {
  EXPECT_SAYS(with_u32("llama.attention.head_count_kv", 3), "llama.attention.head_count_kv is 3");
  EXPECT_SAYS(with_u32("llama.attention.head_count_kv", 4), "blk.0.attn_k.weight has the shape 64 x 32");
  EXPECT_SAYS(with_u32("llama.attention.head_count", 0), "llama.attention.head_count is 0");
  EXPECT_SAYS(with_u32("llama.attention.key_length", 15), "llama.attention.value_length");
  EXPECT_SAYS(with_u32("llama.embedding_length", 80), "multiple of 32");
  EXPECT_SAYS(with_u32("llama.block_count", 3), "blk.2.attn_norm.weight is missing");
  EXPECT_SAYS(with_u32("llama.block_count", 1u << 20), "llama.block_count is 1048576");
  EXPECT_SAYS(with_u32("llama.block_count", 1), "blk.1.");
  EXPECT_SAYS(with_u32("llama.feed_forward_length", 0xffffffffu), "llama.feed_forward_length is 4294967295");
  EXPECT_SAYS(with_u32("llama.rope.dimension_count", 18), "llama.rope.dimension_count is 18");
  EXPECT_SAYS(with_u32("llama.expert_count", 8), "llama.expert_used_count");
  EXPECT_SAYS(with_u32("llama.expert_count", 1), "llama.expert_count is 1, but must be from 2");
  EXPECT_SAYS(with_u32("llama.some.new_key", 1), "llama.some.new_key is not a key that is known of llama");
}

TEST_F(Load, MissingKeysAreNamed) {
  for (const char* name :
       {"llama.block_count", "llama.embedding_length", "llama.feed_forward_length",
        "llama.attention.head_count", "llama.context_length", "llama.attention.layer_norm_rms_epsilon"}) {
    Change change;
    change.key = [&](gguf::Writer&, const gguf::Key& key) { return key.name == name; };
    EXPECT_SAYS(refusal(change), name);
  }
}

TEST_F(Load, ScaledPositionsThatContradictThemselvesAreRefused) {
  Change change;
  change.more = [](gguf::Writer& writer) { writer.add_text("llama.rope.scaling.type", "dynamic"); };
  EXPECT_SAYS(refusal(change), "\"dynamic\"");
  change.more = [](gguf::Writer& writer) {
    writer.add_text("llama.rope.scaling.type", "none");
    writer.add_f32("llama.rope.scaling.factor", 4);
  };
  EXPECT_SAYS(refusal(change), "llama.rope.scaling.factor is not 1");
  change.more = [](gguf::Writer& writer) { writer.add_text("llama.rope.scaling.type", "longrope"); };
  EXPECT_SAYS(refusal(change), "rope_factors_long.weight");
  change.more = [](gguf::Writer& writer) {
    writer.add_values("rope_freqs.weight", *find_format("F32"), {4}, std::vector<float>(4, 1.0f));
  };
  EXPECT_SAYS(refusal(change), "rope_freqs.weight has the shape 4, but must have 8");
  change.more = [](gguf::Writer& writer) {
    writer.add_values("rope_freqs.weight", *find_format("F32"), {8}, std::vector<float>(8, 0.0f));
  };
  EXPECT_SAYS(refusal(change), "must have positive factors");
}

TEST_F(Load, AWindowWhereNoneIsKnownIsRefused) {
  RandomModelOptions options;
  options.architecture = "qwen2";
  options.window = 64;
  EXPECT_SAYS(message(load_bytes(*random_model(options), pool_)), "qwen2.attention.sliding_window is not 0");
}

TEST_F(Load, ATensorNobodyUsesIsRefused) {
  Change change;
  change.more = [](gguf::Writer& writer) {
    writer.add_values("blk.0.attn_sinks.weight", *find_format("F32"), {4}, std::vector<float>(4, 1.0f));
  };
  EXPECT_SAYS(refusal(change), "blk.0.attn_sinks.weight");
  change.more = [](gguf::Writer& writer) {  // a bias of one matrix alone
    writer.add_values("blk.0.attn_q.bias", *find_format("F32"), {64}, std::vector<float>(64, 1.0f));
  };
  EXPECT_SAYS(refusal(change), "blk.0.attn_k.bias is missing");
}

TEST_F(Load, AVocabularyOfAnotherSizeIsRefused) {
  Change change;
  change.key = [](gguf::Writer& writer, const gguf::Key& key) {
    if (key.name != "tokenizer.ggml.tokens") return false;
    writer.add_texts("tokenizer.ggml.tokens", {"a", "b"});
    return true;
  };
  const std::string text = refusal(change);
  EXPECT_SAYS(text, "2 tokens");
  EXPECT_SAYS(text, "320 rows");
}

TEST_F(Load, ATrimmedHeadMustNameItsTokensInOrder) {
  RandomModelOptions untied;
  untied.tied_head = false;
  const auto with = [&](std::vector<std::int32_t> tokens) {
    Change change;
    change.more = [&](gguf::Writer& writer) { writer.add_i32s("coppice.head.tokens", tokens); };
    return refusal(change, untied);
  };
  EXPECT_SAYS(with({3, 3}), "has 3 at index 1");
  EXPECT_SAYS(with({-1}), "has -1 at index 0");
  EXPECT_SAYS(with({320}), "has 320 at index 0");
  EXPECT_SAYS(with({1, 2}), "output.weight has the shape 64 x 320, but must have 64 x 2");
  Change change;
  change.more = [](gguf::Writer& writer) { writer.add_i32s("coppice.head.tokens", {1}); };
  EXPECT_SAYS(refusal(change), "needs a tensor output.weight");
}

TEST_F(Load, SharedRowsOfTheEmbeddingMustBeThere) {
  RandomModelOptions untied;
  untied.tied_head = false;
  const auto with = [&](std::vector<std::int32_t> rows) {
    Change change;
    change.more = [&](gguf::Writer& writer) { writer.add_i32s("coppice.embedding.rows", rows); };
    return change;
  };
  std::vector<std::int32_t> rows(320, 7);
  rows[5] = 320;
  EXPECT_SAYS(refusal(with(rows), untied), "has row 320 for token 5; the embedding has 320 rows");
  EXPECT_SAYS(refusal(with({1, 2}), untied), "2");
  EXPECT_SAYS(refusal(with({}), untied), "coppice.embedding.rows must list the row of every token");
  EXPECT_SAYS(refusal(with(std::vector<std::int32_t>(320, 7))), "needs a tensor output.weight");
}

TEST_F(Load, APassWhoseValuesOverflowNamesTheLayerAndCommitsNothing) {
  for (const char* format : {"Q8_0", "F32"}) {
    RandomModelOptions options;
    options.formats = {format};
    Change change;
    change.tensor = [](gguf::Writer& writer, const gguf::Tensor& tensor) {
      if (tensor.name != "blk.1.ffn_norm.weight") return false;
      writer.add_values("blk.1.ffn_norm.weight", *tensor.format, {64}, std::vector<float>(64, 3e38f));
      return true;
    };
    const auto model = load_bytes(changed(change, options), pool_);
    ASSERT_TRUE(model);
    auto context = testing::make_context(*model, pool_);
    const int sequence = *context->cache().open();
    testing::expect_ok(context->cache().reserve(sequence, 8));
    const Row row = {sequence, 5, 0, kCommitted, kCommitted, kLogits};
    EXPECT_SAYS(message(context->forward({&row, 1})), "layer 1 is not finite");
    EXPECT_EQ(context->cache().length(sequence), 0);
  }
}

TEST_F(Load, OptionsOfRandomModelsAreChecked) {
  const auto with = [](auto change) {
    RandomModelOptions options;
    change(options);
    return message(random_model(options));
  };
  EXPECT_SAYS(with([](auto& o) { o.architecture = "mamba"; }), "there is llama, gpt2");
  EXPECT_SAYS(with([](auto& o) { o.vocab = 259; }), "vocab = 259");
  EXPECT_SAYS(with([](auto& o) { o.hidden = 40; }), "hidden = 40");
  EXPECT_SAYS(with([](auto& o) { o.kv_heads = 3; }), "kv_heads = 3: it must be a divisor of the 4 heads");
  EXPECT_SAYS(with([](auto& o) { o.formats = {"Q9_9"}; }), "formats = Q9_9");
  EXPECT_SAYS(with([](auto& o) { o.head_dim = 3; }), "head_dim = 3");
  EXPECT_SAYS(with([](auto& o) { o.head_dim = 6; }), "head_dim = 6: it must be such that 4 heads");
  EXPECT_SAYS(with([](auto& o) { o.heads = 1 << 30; }), "heads = 1073741824");
}

TEST_F(Load, TheSameOptionsGiveTheSameBytes) {
  RandomModelOptions options;
  EXPECT_EQ(*random_model(options), *random_model(options));
  const auto first = *random_model(options);
  options.seed = 2;
  EXPECT_NE(*random_model(options), first);
}

TEST_F(Load, ARandomModelOnDiskIsTheOneInMemoryWithAnyNumberOfThreads) {
  RandomModelOptions options;
  options.hidden = 96;
  options.heads = 3, options.kv_heads = 1;
  options.vocab = 20011;  // more than is made at once
  options.formats = {"Q4_1", "F16"};
  const auto wanted = *random_model(options);
  const std::string path = ::testing::TempDir() + "coppice-random-model.gguf";
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    double last = 0;
    const auto size = write_random_model(options, path, pool, [&](double done) {
      EXPECT_GT(done, last);
      last = done;
      return true;
    });
    ASSERT_TRUE(size) << size.error().message;
    const std::string text = read_file(path).value();
    EXPECT_EQ(size->bytes, text.size());
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(text)), wanted)) << threads;
  }
  std::remove(path.c_str());
}

TEST_F(Load, AStoppedRandomModelLeavesNoFile) {
  const std::string path = ::testing::TempDir() + "coppice-stopped-model.gguf";
  EXPECT_SAYS(message(write_random_model({}, path, pool_, [](double) { return false; })), "stopped");
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace coppice::core
