// Small random models, and passes over them, for the tests of this room and of those below.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "model/architectures.h"
#include "model/model.h"
#include "model/random_model.h"

namespace coppice::core::testing {

inline Result<std::shared_ptr<const Model>> load_bytes(std::span<const std::byte> bytes, ThreadPool& pool) {
  auto file = gguf::File::parse(bytes, "test.gguf");
  if (!file) return tl::unexpected(file.error());
  return Model::load(*file, pool);
}

inline std::shared_ptr<const Model> make_model(const RandomModelOptions& options, ThreadPool& pool) {
  auto bytes = random_model(options);
  EXPECT_TRUE(bytes.has_value()) << (bytes ? "" : bytes.error().message);
  auto model = load_bytes(*bytes, pool);
  EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().message);
  return *model;  // the weights are packed: the bytes may go
}

inline std::unique_ptr<Context> make_context(std::shared_ptr<const Model> model, ThreadPool& pool,
                                             ContextOptions options = {}) {
  auto context = Context::make(std::move(model), options, pool);
  EXPECT_TRUE(context.has_value()) << (context ? "" : context.error().message);
  return std::move(*context);
}

// The same file with a head of these tokens alone, ascending.
inline std::vector<std::byte> with_trimmed_head(std::span<const std::byte> bytes,
                                                const std::vector<std::int32_t>& kept) {
  const auto file = *gguf::File::parse(bytes, "whole.gguf");
  gguf::Writer writer;
  for (const gguf::Key& key : file->keys()) writer.copy(key);
  writer.add_i32s("coppice.head.tokens", kept);
  for (const gguf::Tensor& tensor : file->tensors()) {
    if (tensor.name != "output.weight") {
      writer.copy(tensor);
      continue;
    }
    const std::size_t row = tensor.bytes / static_cast<std::size_t>(tensor.shape[1]);
    std::vector<std::byte> rows;
    for (const std::int32_t token : kept)
      rows.insert(rows.end(), tensor.data + token * row, tensor.data + (token + 1) * row);
    writer.add_tensor("output.weight", *tensor.format,
                      {tensor.shape[0], static_cast<std::int64_t>(kept.size())}, std::move(rows));
  }
  return writer.to_bytes();
}

inline void expect_ok(const Status& status) { EXPECT_TRUE(status) << (status ? "" : status.error().message); }

// The error's message; a test failure when there is none.
template <class T>
std::string message(const Result<T>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? "" : result.error().message;
}

inline std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

// Logits of the last pass, by row.
inline std::vector<std::vector<float>> all_logits(const Context& context, std::size_t rows) {
  std::vector<std::vector<float>> logits;
  for (std::size_t i = 0; i < rows; ++i) logits.push_back(copy(context.logits(static_cast<int>(i))));
  return logits;
}

// Commits `tokens` to the sequence in passes of `chunk` rows. Logits after each of them.
inline std::vector<std::vector<float>> run_chain(Context& context, int sequence,
                                                 std::span<const Token> tokens, int chunk = 16) {
  std::vector<std::vector<float>> logits;
  const int start = context.cache().length(sequence), count = static_cast<int>(tokens.size());
  expect_ok(context.cache().reserve(sequence, start + count));
  for (int first = 0; first < count; first += chunk) {
    std::vector<Row> rows;
    for (int i = first; i < std::min(count, first + chunk); ++i) {
      Row row;
      row.sequence = sequence;
      row.token = tokens[i];
      row.position = start + i;
      row.wants = kLogits | kHidden;
      rows.push_back(row);
    }
    expect_ok(context.forward(rows));
    for (auto& row : all_logits(context, rows.size())) logits.push_back(std::move(row));
  }
  return logits;
}

// A small linear generator: the same numbers everywhere.
class Dice {
 public:
  explicit Dice(unsigned seed) : state_(seed * 2654435761u + 1) {}
  int below(int n) {
    state_ = state_ * 1664525u + 1013904223u;
    return static_cast<int>((state_ >> 8) % static_cast<unsigned>(n));
  }

 private:
  unsigned state_;
};

inline std::vector<Token> some_tokens(int count, int vocab, unsigned seed = 7) {
  Dice dice(seed);
  std::vector<Token> tokens(count);
  for (Token& token : tokens) token = dice.below(vocab);
  return tokens;
}

// The shapes that differ in kind: every architecture, every format, every cache type, tied and not.
struct Kind {
  const char* name;
  RandomModelOptions model;
  CacheType cache;
};

inline std::vector<Kind> kinds() {
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
  std::vector<Kind> kinds = {{"llama", llama, CacheType::f16},
                             {"floats", floats, CacheType::f32},
                             {"gpt2", gpt2, CacheType::f16},
                             {"wide_heads", wide_heads, CacheType::q8_0}};
  RandomModelOptions window;
  window.window = 10;
  kinds.push_back({"window", window, CacheType::f16});
  RandomModelOptions experts;
  experts.experts = 5;
  experts.formats = {"Q4_1", "F32", "Q8_0"};
  kinds.push_back({"experts", experts, CacheType::f16});
  for (const Architecture& row : architectures()) {
    if (row.name == "llama" || row.name == "gpt2") continue;
    RandomModelOptions options;
    options.architecture = row.name;
    options.layers = 3;
    options.formats = {"Q8_0", "Q4_0", "F16"};
    options.window = row.window_period > 0 ? 10 : 0;
    kinds.push_back({row.name.data(), options, CacheType::f16});
  }
  return kinds;
}

}  // namespace coppice::core::testing
