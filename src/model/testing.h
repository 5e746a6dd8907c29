// Small random models, and passes over them, for the tests of this room and of those below.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "model/model.h"
#include "model/random_model.h"

namespace coppice::core::testing {

// A model and the bytes it was read from.
struct TestModel {
  std::vector<std::byte> bytes;
  std::shared_ptr<const gguf::File> file;
  std::shared_ptr<const Model> model;
};

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

inline std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

// Logits after each of `tokens`, committed to a new sequence in chunks of `chunk`.
inline std::vector<std::vector<float>> run_chain(Context& context, int sequence,
                                                 std::span<const Token> tokens, int chunk) {
  std::vector<std::vector<float>> logits;
  const int start = context.cache().length(sequence);
  EXPECT_TRUE(context.cache().reserve(sequence, start + static_cast<int>(tokens.size())).has_value());
  for (std::size_t first = 0; first < tokens.size(); first += chunk) {
    std::vector<Row> rows;
    for (std::size_t i = first; i < std::min(tokens.size(), first + chunk); ++i)
      rows.push_back({.sequence = sequence,
                      .token = tokens[i],
                      .position = start + static_cast<int>(i),
                      .wants = kLogits | kHidden});
    const Status status = context.forward(rows);
    EXPECT_TRUE(status.has_value()) << (status ? "" : status.error().message);
    for (std::size_t i = 0; i < rows.size(); ++i) logits.push_back(copy(context.logits(static_cast<int>(i))));
  }
  return logits;
}

inline std::vector<Token> some_tokens(int count, int vocab, unsigned seed = 7) {
  std::vector<Token> tokens;
  for (int i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    tokens.push_back(static_cast<Token>((seed >> 8) % static_cast<unsigned>(vocab)));
  }
  return tokens;
}

}  // namespace coppice::core::testing
