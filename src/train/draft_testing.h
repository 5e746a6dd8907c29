// Small targets, drafts and batches for the tests of drafts.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gguf/file.h"
#include "model/architectures.h"
#include "model/random_model.h"
#include "train/draft_init.h"
#include "train/draft_step.h"

namespace coppice::core::train::testing {

template <class T>
T value_of(Result<T> result) {
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message);
  return std::move(*result);
}

inline void expect_ok(const Status& status) { EXPECT_TRUE(status) << (status ? "" : status.error().message); }

// A target of 3 layers, 96 dimensions, 3 heads on 1 KV head, with f32 weights.
struct SmallTarget {
  std::vector<std::byte> bytes;
  std::shared_ptr<const gguf::File> file;
  ModelConfig config;
};

inline SmallTarget make_target(bool tied = true) {
  RandomModelOptions options;
  options.hidden = 96;
  options.layers = 3;
  options.heads = 3;
  options.kv_heads = 1;
  options.feed_forward = 192;
  options.formats = {"F32"};
  options.embedding_format = "F32";
  options.tied_head = tied;
  SmallTarget target;
  target.bytes = value_of(random_model(options));
  target.file = value_of(gguf::File::parse(target.bytes, "target.gguf"));
  target.config = value_of(read_config(*target.file));
  return target;
}

inline torch::Tensor some_text(std::int64_t texts, std::int64_t length, int vocab, std::uint64_t seed = 1) {
  torch::manual_seed(seed);
  return torch::randint(vocab, {texts, length}, torch::kInt64);
}

// The first `count` tokens.
inline std::vector<std::int32_t> first_tokens(int count) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

// Three widths (32, 64, 96), two layers, an exit after the first at the middle one; a head of 200 tokens.
inline std::shared_ptr<SlimDraft> make_draft(const SmallTarget& target) {
  DraftShapeOptions options;
  options.factors = {0.5, 1.0, 1.5};
  options.exit_factor = 1.0;
  const DraftShape shape = value_of(make_draft_shape(options, target.config, 200));
  const std::vector<torch::Tensor> texts = {some_text(4, 32, target.config.vocab)};
  return value_of(init_draft(*target.file, shape, first_tokens(200), texts)).draft;
}

// Texts in which the next token is a function of the last, and a teacher who is sure of it.
inline DraftBatch make_batch(int vocab, std::int64_t texts, std::int64_t length, std::uint64_t seed = 3) {
  DraftBatch batch;
  batch.tokens = some_text(texts, length, vocab, seed);
  auto tokens = batch.tokens.accessor<std::int64_t, 2>();
  for (std::int64_t b = 0; b < texts; ++b) {
    for (std::int64_t i = 1; i < length; ++i) tokens[b][i] = (tokens[b][i - 1] * 7 + 3) % 150;
  }
  std::vector<std::int64_t> positions, rows;
  std::vector<float> probabilities;
  for (std::int64_t b = 0; b < texts; ++b) {
    for (std::int64_t i = 4; i + 1 < length; ++i) {
      positions.push_back(b * length + i);
      rows.insert(rows.end(), {tokens[b][i + 1], (tokens[b][i + 1] + 31) % 190, -1});
      probabilities.insert(probabilities.end(), {0.8f, 0.1f, 0.05f});
    }
  }
  batch.positions = torch::tensor(positions);
  batch.teacher.rows = torch::tensor(rows).view({-1, 3});
  batch.teacher.probabilities = torch::tensor(probabilities).view({-1, 3});
  return batch;
}

}  // namespace coppice::core::train::testing
