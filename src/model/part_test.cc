// Parts of a model that are its own draft: some of its blocks, and a window of the positions.
#include <gtest/gtest.h>

#include "gguf/writer.h"
#include "model/testing.h"

namespace coppice::core {
namespace {

using namespace testing;

using Logits = std::vector<std::vector<float>>;

RandomModelOptions five_blocks() {
  RandomModelOptions shape;
  shape.layers = 5;
  shape.formats = {"Q4_1", "Q8_0"};
  return shape;
}

// A file that has only these blocks.
std::vector<std::byte> file_of_blocks(std::span<const std::byte> bytes, std::span<const int> blocks) {
  const auto file = *gguf::File::parse(bytes, "whole.gguf");
  gguf::Writer writer;
  for (const gguf::Key& key : file->keys()) {
    if (key.name == "llama.block_count")
      writer.add_u32(std::string(key.name), static_cast<unsigned>(blocks.size()));
    else
      writer.copy(key);
  }
  for (const gguf::Tensor& tensor : file->tensors()) {
    const std::vector<std::byte> own(tensor.data, tensor.data + tensor.bytes);
    const std::vector<std::int64_t> shape(tensor.shape, tensor.shape + tensor.rank);
    const std::string name(tensor.name);
    if (!name.starts_with("blk.")) writer.add_tensor(name, *tensor.format, shape, own);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::string prefix = "blk." + std::to_string(blocks[i]) + ".";
      if (name.starts_with(prefix))
        writer.add_tensor("blk." + std::to_string(i) + "." + name.substr(prefix.size()), *tensor.format,
                          shape, own);
    }
  }
  return writer.to_bytes();
}

Logits logits_of(std::shared_ptr<const Model> model, std::span<const Token> tokens, ThreadPool& pool,
                 const ContextOptions& options = {}, int chunk = 16) {
  auto context = make_context(std::move(model), pool, options);
  return run_chain(*context, *context->cache().open(), tokens, chunk);
}

TEST(OfBlocks, SomeBlocksOfAModelAreBitEqualToAFileThatHasOnlyThem) {
  ThreadPool pool(2);
  const auto bytes = *random_model(five_blocks());
  auto whole = *load_bytes(bytes, pool);
  const auto tokens = some_tokens(20, 320);
  for (const std::vector<int>& blocks : {std::vector<int>{0, 1, 4}, {2}, {0, 1, 2, 3, 4}}) {
    auto part = Model::of_blocks(whole, blocks);
    auto alone = *load_bytes(file_of_blocks(bytes, blocks), pool);
    EXPECT_EQ(logits_of(part, tokens, pool), logits_of(alone, tokens, pool)) << blocks.size() << " blocks";
    EXPECT_EQ(part->weight_bytes(), alone->weight_bytes());
  }
}

TEST(OfBlocks, ThePartKeepsTheWholeAlive) {
  ThreadPool pool(1);
  auto whole = make_model(five_blocks(), pool);
  const std::weak_ptr<const Model> watched = whole;
  auto part = Model::of_blocks(std::move(whole), std::vector<int>{0, 4});
  whole.reset();
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(logits_of(part, some_tokens(3, 320), pool).size(), 3u);
  part.reset();
  EXPECT_TRUE(watched.expired());
}

class Window : public ::testing::Test {
 protected:
  Window() : pool_(2), model_(make_model(one_block(), pool_)) { options_.kv.positions = 512; }
  // One block: what a position says depends on other positions only by attention to their tokens.
  static RandomModelOptions one_block() {
    RandomModelOptions shape;
    shape.layers = 1;
    return shape;
  }
  Logits run(std::span<const Token> tokens, int sink, int recent, int chunk = 16) {
    options_.window.sink = sink;
    options_.window.recent = recent;
    return logits_of(model_, tokens, pool_, options_, chunk);
  }
  std::vector<float> last_with(int changed, std::vector<Token> tokens) {
    tokens[static_cast<std::size_t>(changed)] ^= 1;
    return run(tokens, 16, 64).back();
  }

  ThreadPool pool_;
  std::shared_ptr<const Model> model_;
  ContextOptions options_;
};

TEST_F(Window, AWindowThatHoldsEverythingChangesNothing) {
  const auto tokens = some_tokens(150, 320);
  EXPECT_EQ(run(tokens, 16, 150), run(tokens, 0, 0));
  EXPECT_EQ(run(tokens, 96, 64), run(tokens, 0, 0));  // all that is before the window is kept
}

// The last of 170 positions sees 0 .. 15 and, 106 not being the first of a block, 96 .. 169.
TEST_F(Window, ARowSeesTheFirstPositionsAndTheLastOnesAndNothingBetween) {
  const auto tokens = some_tokens(170, 320);
  const auto last = run(tokens, 16, 64).back();
  EXPECT_NE(last, run(tokens, 0, 0).back());
  for (const int seen : {0, 15, 96, 150, 169}) EXPECT_NE(last_with(seen, tokens), last) << seen;
  for (const int left_out : {16, 17, 50, 95}) EXPECT_EQ(last_with(left_out, tokens), last) << left_out;
}

TEST_F(Window, ChunksDoNotChangeWhatARowSees) {
  const auto tokens = some_tokens(200, 320);
  const Logits expected = run(tokens, 16, 64, 1);
  for (const int chunk : {7, 16, 64}) EXPECT_EQ(run(tokens, 16, 64, chunk), expected) << chunk;
}

TEST_F(Window, ATreeSeesWhatTheSameChainCommittedSees) {
  const auto tokens = some_tokens(190, 320);
  const Logits expected = run(tokens, 16, 64);
  auto context = make_context(model_, pool_, options_);
  const int sequence = *context->cache().open();
  run_chain(*context, sequence, std::span(tokens).first(150));
  std::vector<Row> rows;
  for (int i = 0; i < 40; ++i) {
    const int slot = 39 - i;  // in any order
    rows.push_back({sequence, tokens[static_cast<std::size_t>(150 + i)], 150 + i, slot,
                    i == 0 ? kCommitted : slot + 1, kLogits});
  }
  expect_ok(context->forward(rows));
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(copy(context->logits(i)), expected[static_cast<std::size_t>(150 + i)]) << i;
}

TEST_F(Window, LessOfTheCacheIsRead) {
  const auto tokens = some_tokens(321, 320);
  const auto read = [&](int recent) {
    options_.window = {16, recent};
    auto context = make_context(model_, pool_, options_);
    const int sequence = *context->cache().open();
    run_chain(*context, sequence, std::span(tokens).first(320));
    context->reset_stats();
    run_chain(*context, sequence, std::span(tokens).subspan(320));
    return context->stats().kv_bytes;
  };
  EXPECT_EQ(read(0) * 81, read(64) * 321);  // 0 .. 15 and 256 .. 320
}

TEST_F(Window, AWindowTooSmallForATreeIsRefused) {
  options_.window.recent = 63;
  EXPECT_EQ(message(Context::make(model_, options_, pool_)),
            "the attention window is 63 positions, but must be at least 64, or 0 for none");
}

}  // namespace
}  // namespace coppice::core
