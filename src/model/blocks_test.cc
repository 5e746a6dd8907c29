#include "model/blocks.h"

#include <gtest/gtest.h>

#include "gguf/writer.h"
#include "model/testing.h"

namespace coppice::core {
namespace {

using namespace testing;

// Four blocks of which `silent` adds nothing to the residual stream.
std::shared_ptr<const Model> model_with_a_silent_block(int silent, ThreadPool& pool) {
  RandomModelOptions shape;
  shape.layers = 4;
  const auto bytes = *random_model(shape);
  const auto file = *gguf::File::parse(bytes, "whole.gguf");
  gguf::Writer writer;
  for (const gguf::Key& key : file->keys()) writer.copy(key);
  for (const gguf::Tensor& tensor : file->tensors()) {
    const std::string name(tensor.name), prefix = "blk." + std::to_string(silent) + ".";
    std::vector<std::byte> own(tensor.data, tensor.data + tensor.bytes);
    if (name == prefix + "attn_output.weight" || name == prefix + "ffn_down.weight")
      std::fill(own.begin(), own.end(), std::byte{0});
    writer.add_tensor(name, *tensor.format, {tensor.shape, tensor.shape + tensor.rank}, std::move(own));
  }
  const auto changed = writer.to_bytes();
  return *load_bytes(changed, pool);
}

TEST(Blocks, ABlockThatAddsNothingHasNoInfluence) {
  ThreadPool pool(2);
  for (const int silent : {1, 2}) {
    const auto influence =
        *block_influence(model_with_a_silent_block(silent, pool), some_tokens(150, 320), pool);
    ASSERT_EQ(influence.size(), 4u);
    for (int i = 0; i < 4; ++i) {
      if (i == silent)
        EXPECT_NEAR(influence[static_cast<std::size_t>(i)], 0.0, 1e-12);
      else
        EXPECT_GT(influence[static_cast<std::size_t>(i)], 1e-3) << i;
    }
    const auto kept = most_influential(influence, 3);
    EXPECT_EQ(std::count(kept.begin(), kept.end(), silent), 0);
  }
}

TEST(Blocks, TheOneMissedLeastIsRemovedFirst) {
  ThreadPool pool(2);
  const auto tokens = some_tokens(70, 320);
  const auto order = *removal_order(model_with_a_silent_block(2, pool), tokens, 9, pool);
  ASSERT_EQ(order.size(), 3u);  // one block is left
  EXPECT_EQ(order[0].block, 2);
  EXPECT_EQ(order[0].agreement, 1.0);
  EXPECT_LT(order[1].agreement, 1.0);
}

TEST(Blocks, AStoppedSearchGivesWhatItFound) {
  ThreadPool pool(1);
  const auto model = model_with_a_silent_block(1, pool);
  const auto order =
      *removal_order(model, some_tokens(20, 320), 3, pool, [](double done) { return done < 0.5; });
  EXPECT_EQ(order.size(), 1u);
}

TEST(Blocks, TheFirstAndTheLastStay) {
  const std::vector<double> influence = {0.0, 0.5, 0.4, 0.6, 0.0};
  EXPECT_EQ(most_influential(influence, 3), (std::vector<int>{0, 3, 4}));
  EXPECT_EQ(most_influential(influence, 1), (std::vector<int>{0}));
  EXPECT_EQ(most_influential(influence, 5), (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(Blocks, ATextOfOneTokenIsRefused) {
  ThreadPool pool(1);
  EXPECT_EQ(message(block_influence(make_model({}, pool), some_tokens(1, 320), pool)),
            "the text has fewer than 2 tokens; at least 2 are needed");
}

}  // namespace
}  // namespace coppice::core
