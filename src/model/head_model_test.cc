// A draft head's file and its pass. That the numbers are those of the paper's head is judged by numpy
// (tests/judge/head_judge.py).
#include "model/head_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/allocation_count.h"
#include "gguf/writer.h"
#include "model/random_head.h"
#include "model/testing.h"

namespace coppice::core {
namespace {

using namespace testing;

Result<std::shared_ptr<const HeadModel>> load_head(std::span<const std::byte> bytes,
                                                   std::shared_ptr<const Model> target, ThreadPool& pool) {
  auto file = gguf::File::parse(bytes, "head.gguf");
  if (!file) return tl::unexpected(file.error());
  return HeadModel::load(**file, std::move(target), pool);
}

// A copy of the file with some of it changed.
struct Edit {
  std::function<void(gguf::Writer&)> add = [](gguf::Writer&) {};
  std::string leave_out;  // a key or tensor
};
std::vector<std::byte> edited(std::span<const std::byte> bytes, const Edit& edit) {
  const auto file = *gguf::File::parse(bytes, "head.gguf");
  gguf::Writer writer;
  for (const gguf::Key& key : file->keys())
    if (key.name != edit.leave_out) writer.copy(key);
  for (const gguf::Tensor& tensor : file->tensors())
    if (tensor.name != edit.leave_out) writer.copy(tensor);
  edit.add(writer);
  return writer.to_bytes();
}

class Heads : public ::testing::Test {
 protected:
  void SetUp() override {
    RandomModelOptions shape;
    shape.layers = 3;
    shape.head_dim = 32;
    target_ = make_model(shape, pool_);
  }
  std::vector<std::byte> bytes(const RandomHeadOptions& options = {}) {
    return *random_head(target_->config(), options);
  }
  std::string refusal(std::span<const std::byte> file) { return message(load_head(file, target_, pool_)); }
  std::shared_ptr<const HeadModel> head(const RandomHeadOptions& options = {}) {
    const auto file = bytes(options);
    auto model = load_head(file, target_, pool_);
    EXPECT_TRUE(model.has_value()) << (model ? "" : model.error().message);
    return *model;
  }

  ThreadPool pool_{2};
  std::shared_ptr<const Model> target_;
};

// Rows over made-up features: a text of `tokens`, committed in passes of `chunk`, then a small tree below it.
struct Replay {
  std::unique_ptr<HeadContext> context;
  std::vector<float> features;  // [positions, features]
  std::vector<Token> tokens;
  int sequence = 0;

  Replay(std::shared_ptr<const HeadModel> model, ThreadPool& pool, int positions,
         CacheType cache = CacheType::f16) {
    ContextOptions options;
    options.kv = {cache, 2, 64, 16};
    auto made = HeadContext::make(std::move(model), options, pool);
    EXPECT_TRUE(made.has_value());
    context = std::move(*made);
    sequence = *context->cache().open();
    tokens = some_tokens(positions + 1, context->model().config().block.vocab);
    Dice dice(5);
    for (int i = 0; i < positions * context->model().config().features(); ++i)
      features.push_back(static_cast<float>(dice.below(2001) - 1000) / 500.0f);
  }

  HeadRow committed(int position, unsigned wants) const {
    HeadRow row;
    row.row = {sequence, tokens[position + 1], position, kCommitted, kCommitted, wants};
    row.position = position;
    row.features =
        features.data() + static_cast<std::size_t>(position) * context->model().config().features();
    return row;
  }
  HeadRow guess(int position, Token token, int slot, int parent_slot, const float* hidden) const {
    HeadRow row;
    row.row = {sequence, token, position, slot, parent_slot, kLogits};
    row.position = position;
    row.hidden = hidden;
    return row;
  }

  // All logits, and those of two guesses below the last row and one below the first of them.
  std::vector<std::vector<float>> run(int chunk) {
    std::vector<std::vector<float>> logits;
    const int count = static_cast<int>(tokens.size()) - 1;
    expect_ok(context->cache().reserve(sequence, count));
    std::vector<float> root, child;
    for (int first = 0; first < count; first += chunk) {
      std::vector<HeadRow> rows;
      for (int p = first; p < std::min(count, first + chunk); ++p) rows.push_back(committed(p, kLogits));
      expect_ok(context->forward(rows));
      for (int i = 0; i < static_cast<int>(rows.size()); ++i) logits.push_back(copy(context->logits(i)));
      root = copy(context->hidden(static_cast<int>(rows.size()) - 1));
    }
    const HeadRow level[] = {guess(count, 7, 3, kCommitted, root.data()),
                             guess(count, 9, 0, kCommitted, root.data())};
    expect_ok(context->forward(level));
    for (int i = 0; i < 2; ++i) logits.push_back(copy(context->logits(i)));
    child = copy(context->hidden(0));
    const HeadRow below[] = {guess(count + 1, 8, 5, 3, child.data())};
    expect_ok(context->forward(below));
    logits.push_back(copy(context->logits(0)));
    return logits;
  }
};

TEST_F(Heads, ARowDoesNotKnowItsNeighboursThreadsOrChunks) {
  RandomHeadOptions options;
  options.formats = {"Q4_1", "Q8_0", "F16", "Q4_0", "F32"};
  options.rows = 100;
  options.standardised = true;
  const auto model = head(options);
  const auto expected = Replay(model, pool_, 20).run(20);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    for (const int chunk : {1, 7, 20})
      EXPECT_EQ(Replay(model, pool, 20).run(chunk), expected) << threads << " " << chunk;
  }
}

TEST_F(Heads, EveryInstructionSetGivesTheSameBits) {
  RandomHeadOptions options;
  options.formats = {"Q4_1", "Q8_0", "BF16"};
  const std::string first(kernels().name);
  std::vector<std::vector<float>> expected;
  for (const Kernels* table : all_kernels()) {
    if (!usable(*table)) continue;
    ASSERT_TRUE(force_kernels(table->name));
    const auto logits = Replay(head(options), pool_, 12).run(5);
    if (expected.empty()) expected = logits;
    EXPECT_EQ(logits, expected) << table->name;
  }
  force_kernels(first);
}

TEST_F(Heads, RowsNobodyAsksChangeNothing) {
  const auto model = head();
  Replay all(model, pool_, 10), last(model, pool_, 10);
  const auto expected = all.run(10)[9];
  expect_ok(last.context->cache().reserve(last.sequence, 10));
  std::vector<HeadRow> rows;
  for (int p = 0; p < 10; ++p) rows.push_back(last.committed(p, p == 9 ? kLogits : kNothing));
  expect_ok(last.context->forward({rows.data(), 4}));
  expect_ok(last.context->forward({rows.data() + 4, 6}));
  EXPECT_EQ(copy(last.context->logits(5)), expected);
}

TEST_F(Heads, OlderFilesSayTheSameInOtherWords) {
  RandomHeadOptions options;
  options.rows = 90;
  const auto expected = Replay(head(options), pool_, 8).run(8);
  options.old_names = true;
  EXPECT_EQ(Replay(head(options), pool_, 8).run(8), expected);
  // Offsets under the newer name: many neighbours have the same, which ids never have.
  const auto old = bytes(options);
  const auto file = *gguf::File::parse(old, "head.gguf");
  const gguf::Tensor& norm = *file->tensor("blk.0.hidden_norm.weight");
  std::vector<std::int64_t> offsets(90, 3);
  std::vector<std::byte> raw(90 * 8), gains(norm.data, norm.data + norm.bytes);
  std::memcpy(raw.data(), offsets.data(), raw.size());
  const auto renamed = edited(edited(old, {.leave_out = "blk.0.hidden_norm.weight"}),
                              {[&](gguf::Writer& w) {
                                 w.add_tensor("blk.0.attn_norm_2.weight", *norm.format, {64}, gains);
                                 w.add_tensor("d2t", *find_format("I64"), {90}, raw);
                               },
                               "d2t"});
  auto model = load_head(renamed, target_, pool_);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ((*model)->weights().tokens.front(), 3);
  EXPECT_EQ((*model)->weights().tokens.back(), 92);
}

TEST_F(Heads, ATrimmedOutputSpeaksOfItsTokensOnlyAndItsMaximaAreTheirs) {
  RandomHeadOptions options;
  options.rows = 40;
  const auto model = head(options);
  Replay replay(model, pool_, 4);
  replay.run(4);
  const auto logits = replay.context->logits(0), maxima = replay.context->maxima(0);
  int spoken = 0;
  std::vector<float> expected(maxima.size(), -INFINITY);
  for (std::size_t id = 0; id < logits.size(); ++id) {
    spoken += std::isfinite(logits[id]);
    expected[id / 32] = std::max(expected[id / 32], logits[id]);
  }
  EXPECT_EQ(spoken, 40);
  for (const Token token : model->weights().tokens) EXPECT_TRUE(std::isfinite(logits[token])) << token;
  EXPECT_EQ(copy(maxima), expected);
}

TEST_F(Heads, ShareTheTargetsEmbeddingAndHeadWhereTheyHaveNone) {
  RandomHeadOptions options;
  options.own_output = false;
  const auto model = head(options);
  EXPECT_EQ(&model->embedding(), &target_->weights().embedding.packed);
  EXPECT_EQ(&model->output(), &target_->weights().head());
  Replay(model, pool_, 5).run(5);
  options.hidden = 96;  // narrower than the target would do too
  options.own_output = options.own_embedding = true;
  options.norm_before_residual = true;
  EXPECT_EQ(Replay(head(options), pool_, 5).run(2), Replay(head(options), pool_, 5).run(5));
}

TEST_F(Heads, PassesAllocateNothing) {
  const auto model = head();
  Replay replay(model, pool_, 30);
  expect_ok(replay.context->cache().reserve(replay.sequence, 30));
  int failures = 0;
  const HeadRow first[] = {replay.committed(0, kLogits)};
  expect_ok(replay.context->forward(first));
  const AllocationCount count;
  for (int p = 1; p < 30; ++p) {
    const HeadRow rows[] = {replay.committed(p, kLogits),
                            replay.guess(p + 1, 5, 2, kCommitted, replay.features.data())};
    failures += replay.context->forward(rows) ? 0 : 1;
    replay.context->cache().keep(replay.sequence, {});
  }
  EXPECT_EQ(count.so_far(), 0);
  EXPECT_EQ(failures, 0);
}

TEST_F(Heads, FilesThatDoNotFitTheTargetAreRefusedWithTheReason) {
  RandomHeadOptions options;
  options.rows = 50;
  const auto good = bytes(options);
  const auto without = [&](const char* name) { return refusal(edited(good, {.leave_out = name})); };
  EXPECT_NE(without("fc.weight").find("tensor fc.weight is missing"), std::string::npos);
  EXPECT_NE(without("blk.0.attn_norm_2.weight").find("attn_norm_2"), std::string::npos);
  EXPECT_NE(without("output.weight").find("cannot stand for 50 of 64"), std::string::npos);
  EXPECT_NE(without("d2t").find("output.weight has the shape 64 x 50"), std::string::npos);
  EXPECT_NE(without("eagle3.target_layers").find("target_layers is missing"), std::string::npos);
  const auto with = [&](const char* replaced, std::function<void(gguf::Writer&)> add) {
    return refusal(edited(good, {std::move(add), replaced}));
  };
  EXPECT_NE(with("",
                 [](auto& w) {
                   w.add_i32s("eagle3.target_layers", {0, 4});
                 })
                .find("names layer 4, but the target has 0 to 3"),
            std::string::npos);
  EXPECT_NE(
      with("", [](auto& w) { w.add_u32("eagle3.target_hidden_size", 96); }).find("made for another model"),
      std::string::npos);
  EXPECT_NE(with("", [](auto& w) { w.add_u32("eagle3.block_count", 2); }).find("has 1 block"),
            std::string::npos);
  EXPECT_NE(with("", [](auto& w) { w.add_bool("eagle3.norm_before_fc", true); }).find("not supported"),
            std::string::npos);
  EXPECT_NE(with("",
                 [](auto& w) {
                   w.add_values("enc.norm.weight", *find_format("F32"), {2}, std::vector<float>{1, 1});
                 })
                .find("enc.norm.weight is not one that a draft head has"),
            std::string::npos);
  EXPECT_NE(with("output_norm.weight",
                 [](auto& w) {
                   w.add_values("output_norm.weight", *find_format("F32"), {64}, std::vector<float>(64, NAN));
                 })
                .find("not finite"),
            std::string::npos);
  const auto map = [&](std::vector<std::int64_t> ids) {
    std::vector<std::byte> raw(ids.size() * 8);
    std::memcpy(raw.data(), ids.data(), raw.size());
    return with("d2t", [&](auto& w) {
      w.add_tensor("d2t", *find_format("I64"), {static_cast<std::int64_t>(ids.size())}, raw);
    });
  };
  std::vector<std::int64_t> ids(50);
  for (int i = 0; i < 50; ++i) ids[i] = 2 * i;
  ids[49] = 320;
  EXPECT_NE(map(ids).find("row 49 to token 320"), std::string::npos);
  ids[49] = INT64_MIN;
  EXPECT_NE(map(ids).find("row 49"), std::string::npos);
  ids.assign(50, 0), ids[7] = -1;  // as offsets they send rows 6 and 7 to token 6
  EXPECT_NE(map(ids).find("row 1 to token 0"), std::string::npos);
  EXPECT_NE(map(std::vector<std::int64_t>(400, 0)).find("400 entries"), std::string::npos);
  auto target = random_model({});
  EXPECT_NE(refusal(*target).find("a draft head's is \"eagle3\""), std::string::npos);
}

TEST_F(Heads, AFileCutAnywhereIsRefused) {
  RandomHeadOptions options;
  options.rows = 50;
  const auto good = bytes(options);
  for (std::size_t size = 0; size < good.size(); size += 1 + size / 7)
    EXPECT_FALSE(load_head(std::span(good).first(size), target_, pool_)) << size;
}

TEST_F(Heads, AreNoModelsByThemselves) {
  const auto file = bytes();
  EXPECT_NE(message(load_bytes(file, pool_)).find("eagle3"), std::string::npos);
}

}  // namespace
}  // namespace coppice::core
