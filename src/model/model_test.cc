// A row's logits do not depend on how the pass was cut, threaded, branched or kept: comparisons are of bits.
#include "model/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "gguf/writer.h"
#include "model/testing.h"

namespace coppice::core {
namespace {

using namespace testing;

using Logits = std::vector<std::vector<float>>;

class ModelKinds : public ::testing::TestWithParam<Kind> {
 protected:
  ModelKinds() : pool_(2), model_(make_model(GetParam().model, pool_)) {
    options_.kv.type = GetParam().cache;
    options_.kv.sequences = 3;
    options_.kv.positions = 256;
    options_.kv.slots = 48;
  }
  int vocab() const { return model_->config().vocab; }
  // Logits after the last of `tokens`, computed in a context of its own.
  std::vector<float> alone(std::span<const Token> tokens) {
    auto context = make_context(model_, pool_, options_);
    return run_chain(*context, *context->cache().open(), tokens, 8).back();
  }

  ThreadPool pool_;
  std::shared_ptr<const Model> model_;
  ContextOptions options_;
};

TEST_P(ModelKinds, ChunksAndThreadsDoNotChangeLogits) {
  const auto tokens = some_tokens(40, vocab());
  Logits expected;
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (const int chunk : {1, 7, 40}) {
      auto context = make_context(model_, pool, options_);
      const Logits logits = run_chain(*context, *context->cache().open(), tokens, chunk);
      if (expected.empty()) expected = logits;
      EXPECT_EQ(logits, expected) << threads << " threads, chunks of " << chunk;
    }
  }
}

// A random tree in random slots, cut into passes at random places, beside rows of another sequence.
struct RandomTree {
  std::vector<Row> rows;
  std::vector<std::vector<Token>> paths;  // of each row, from below the committed tokens
};

RandomTree random_tree(int sequence, int length, int nodes, int vocab, int slots, Dice& dice) {
  std::vector<int> free(slots);
  for (int i = 0; i < slots; ++i) free[i] = i;
  RandomTree tree;
  for (int i = 0; i < nodes; ++i) {
    const int parent = i == 0 ? -1 : dice.below(i + 1) - 1;
    const int pick = dice.below(static_cast<int>(free.size()));
    Row row;
    row.sequence = sequence;
    row.token = dice.below(vocab);
    row.slot = free[pick];
    free.erase(free.begin() + pick);
    row.position = parent < 0 ? length : tree.rows[parent].position + 1;
    row.parent_slot = parent < 0 ? kCommitted : tree.rows[parent].slot;
    row.wants = kLogits;
    tree.paths.push_back(parent < 0 ? std::vector<Token>() : tree.paths[parent]);
    tree.paths.back().push_back(row.token);
    tree.rows.push_back(row);
  }
  return tree;
}

TEST_P(ModelKinds, EveryNodeOfARandomTreeSaysWhatItsPathAloneWouldSay) {
  Dice dice(3);
  for (const int length : {0, 5, 16, 33}) {
    auto context = make_context(model_, pool_, options_);
    const int other = *context->cache().open(), sequence = *context->cache().open();
    const auto prompt = some_tokens(length, vocab(), 11);
    run_chain(*context, other, some_tokens(9, vocab(), 12));
    run_chain(*context, sequence, prompt);
    RandomTree tree = random_tree(sequence, length, 16, vocab(), context->cache().slots(), dice);
    for (std::size_t done = 0; done < tree.rows.size();) {
      const std::size_t count = std::min<std::size_t>(1 + dice.below(12), tree.rows.size() - done);
      std::vector<Row> rows(tree.rows.begin() + done, tree.rows.begin() + done + count);
      Row neighbour;
      neighbour.sequence = other;
      neighbour.token = dice.below(vocab());
      neighbour.position = context->cache().length(other);
      expect_ok(context->cache().reserve(other, neighbour.position + 1));
      rows.insert(rows.begin() + dice.below(static_cast<int>(count)), neighbour);
      expect_ok(context->forward(rows));
      for (std::size_t i = 0, node = done; i < rows.size(); ++i) {
        if (rows[i].sequence == other) continue;
        std::vector<Token> tokens = prompt;
        tokens.insert(tokens.end(), tree.paths[node].begin(), tree.paths[node].end());
        EXPECT_EQ(copy(context->logits(static_cast<int>(i))), alone(tokens))
            << "length " << length << " node " << node;
        ++node;
      }
      done += count;
    }
  }
}

TEST_P(ModelKinds, KeepingAPathGivesTheSequenceThatWasNeverBranched) {
  Dice dice(5);
  auto context = make_context(model_, pool_, options_);
  const int sequence = *context->cache().open();
  std::vector<Token> tokens = some_tokens(13, vocab());
  run_chain(*context, sequence, tokens);
  for (int cycle = 0; cycle < 6; ++cycle) {
    const int length = context->cache().length(sequence);
    expect_ok(context->cache().reserve(sequence, length + 20));
    RandomTree tree = random_tree(sequence, length, 20, vocab(), context->cache().slots(), dice);
    expect_ok(context->forward(tree.rows));
    const int node = dice.below(20);
    std::vector<int> path;
    std::map<int, int> parents;
    for (const Row& row : tree.rows) parents[row.slot] = row.parent_slot;
    for (int slot = tree.rows[node].slot; slot != kCommitted; slot = parents[slot])
      path.insert(path.begin(), slot);
    context->cache().keep(sequence, path);
    tokens.insert(tokens.end(), tree.paths[node].begin(), tree.paths[node].end());
    EXPECT_EQ(context->cache().length(sequence), static_cast<int>(tokens.size()));
  }
  const Token next[] = {3};
  tokens.push_back(3);
  EXPECT_EQ(run_chain(*context, sequence, next).back(), alone(tokens));
}

TEST_P(ModelKinds, RewindAndShareGiveWhatComputingAnewGives) {
  auto context = make_context(model_, pool_, options_);
  const int first = *context->cache().open(), second = *context->cache().open();
  const auto prompt = some_tokens(45, vocab());
  run_chain(*context, first, prompt);
  for (const int length : {40, 32, 19, 0}) {
    const auto tail = some_tokens(20, vocab(), 100 + length);
    std::vector<Token> tokens(prompt.begin(), prompt.begin() + length);
    tokens.insert(tokens.end(), tail.begin(), tail.end());
    const auto expected = alone(tokens);
    expect_ok(context->cache().share(first, second, length));
    EXPECT_EQ(run_chain(*context, second, tail).back(), expected) << "shared " << length;
    context->cache().rewind(second, length);
    EXPECT_EQ(run_chain(*context, second, tail).back(), expected) << "rewound to " << length;
    context->cache().rewind(second, 0);
  }
  const Token next[] = {5};
  std::vector<Token> tokens = prompt;
  tokens.push_back(5);
  EXPECT_EQ(run_chain(*context, first, next).back(), alone(tokens))
      << "the first sequence was written by another";
}

TEST_P(ModelKinds, RowsNobodyAsksAboutDoNotChangeTheOthers) {
  const auto tokens = some_tokens(12, vocab());
  auto context = make_context(model_, pool_, options_);
  const int sequence = *context->cache().open();
  const Logits expected = run_chain(*context, sequence, tokens, 12);
  const auto hidden = copy(context->hidden(7));
  context->cache().rewind(sequence, 0);
  expect_ok(context->cache().reserve(sequence, 12));
  std::vector<Row> rows(12);
  for (int i = 0; i < 12; ++i) rows[i] = {sequence, tokens[i], i, kCommitted, kCommitted, kNothing};
  rows[3].wants = rows[11].wants = kLogits;
  rows[7].wants = kHidden;
  expect_ok(context->forward(rows));
  EXPECT_EQ(copy(context->logits(3)), expected[3]);
  EXPECT_EQ(copy(context->logits(11)), expected[11]);
  EXPECT_EQ(copy(context->hidden(7)), hidden);
}

// Keeps the residual stream of every layer, as the tap shows it.
struct ResidualTap : LayerTap {
  std::map<int, std::vector<float>> layers;
  std::size_t hidden;
  void matmul(const char*, const MatmulTask&, const float*) override {}
  void residual(int layer, const float* x, int rows) override {
    layers[layer].insert(layers[layer].end(), x, x + static_cast<std::size_t>(rows) * hidden);
  }
};

TEST_P(ModelKinds, FeaturesAreTheResidualStreamWhateverTheThreadsAndChunks) {
  const auto tokens = some_tokens(40, vocab());
  const auto hidden = static_cast<std::size_t>(model_->config().hidden);
  const int layers = model_->config().layers;
  ContextOptions options = options_;
  options.feature_layers = {layers, 0, layers - 1};
  std::vector<float> expected;  // [tokens, feature layers, hidden]
  {
    ResidualTap tap;
    tap.hidden = hidden;
    auto context = make_context(model_, pool_, options_);
    context->set_tap(&tap);
    run_chain(*context, *context->cache().open(), tokens, 40);
    for (std::size_t i = 0; i < tokens.size(); ++i)
      for (const int layer : options.feature_layers) {
        const float* from = tap.layers[layer].data() + i * hidden;
        expected.insert(expected.end(), from, from + hidden);
      }
  }
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (const std::size_t chunk : {1, 7, 40}) {
      auto context = make_context(model_, pool, options);
      const int sequence = *context->cache().open();
      expect_ok(context->cache().reserve(sequence, 40));
      std::vector<float> features;
      for (std::size_t first = 0; first < 40; first += chunk) {
        std::vector<Row> rows;
        for (std::size_t i = first; i < std::min<std::size_t>(40, first + chunk); ++i)
          rows.push_back(
              {sequence, tokens[i], static_cast<int>(i), kCommitted, kCommitted, kFeatures | kLogits});
        expect_ok(context->forward(rows));
        const auto count = static_cast<int>(rows.size());
        std::ranges::fill(rows, Row{});  // features() must not look at them any more
        for (int i = 0; i < count; ++i)
          features.insert(features.end(), context->features(i).begin(), context->features(i).end());
      }
      EXPECT_EQ(features, expected) << threads << " threads, chunks of " << chunk;
    }
  }
}

TEST_P(ModelKinds, FeaturesOfAFewRowsChangeNothingElse) {
  const auto tokens = some_tokens(12, vocab());
  const int layers = model_->config().layers;
  for (const std::vector<int>& feature_layers : {std::vector<int>{0}, std::vector<int>{0, layers}}) {
    ContextOptions options = options_;
    options.feature_layers = feature_layers;
    auto context = make_context(model_, pool_, options);
    const int sequence = *context->cache().open();
    const auto run = [&](std::vector<std::pair<int, unsigned>> wanted) {
      std::vector<Row> rows(12);
      for (int i = 0; i < 12; ++i) rows[i] = {sequence, tokens[i], i, kCommitted, kCommitted, kNothing};
      for (const auto& [row, wants] : wanted) rows[row].wants = wants;
      context->cache().rewind(sequence, 0);
      expect_ok(context->cache().reserve(sequence, 12));
      expect_ok(context->forward(rows));
    };
    run({{3, kLogits}, {7, kHidden}, {5, kFeatures}, {11, kFeatures | kLogits}});
    const auto five = copy(context->features(5)), eleven = copy(context->features(11));
    const auto three = copy(context->logits(3)), seven = copy(context->hidden(7));
    run({{3, kLogits}, {7, kHidden}});
    EXPECT_EQ(copy(context->logits(3)), three);
    EXPECT_EQ(copy(context->hidden(7)), seven);
    run({{5, kFeatures}});
    EXPECT_EQ(copy(context->features(5)), five);
    run({{11, kFeatures}});
    EXPECT_EQ(copy(context->features(11)), eleven);
  }
}

TEST_P(ModelKinds, LogitsAreSpreadAndGreedyTextIsNotOneTokenForever) {
  auto context = make_context(model_, pool_, options_);
  const int sequence = *context->cache().open();
  std::vector<float> logits = run_chain(*context, sequence, some_tokens(4, vocab())).back();
  double mean = 0, square = 0;
  for (const float logit : logits) mean += logit, square += static_cast<double>(logit) * logit;
  mean /= vocab(), square /= vocab();
  EXPECT_GT(std::sqrt(square - mean * mean), 1.0);
  std::set<Token> seen;
  for (int i = 0; i < 40; ++i) {
    const Token token = static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    seen.insert(token);
    logits = run_chain(*context, sequence, {&token, 1}).back();
  }
  EXPECT_GE(seen.size(), 5u);
}

INSTANTIATE_TEST_SUITE_P(All, ModelKinds, ::testing::ValuesIn(kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

class ModelTest : public ::testing::Test {
 protected:
  ThreadPool pool_{2};
  RandomModelOptions shape_;
};

TEST_F(ModelTest, ASiblingIsInvisible) {
  auto context = make_context(make_model(shape_, pool_), pool_);
  const int sequence = *context->cache().open();
  run_chain(*context, sequence, some_tokens(6, 320));
  std::vector<float> seen[2];
  for (const Token sibling : {20, 300}) {
    const Row rows[] = {{sequence, sibling, 6, 0, kCommitted, kLogits},
                        {sequence, 50, 6, 1, kCommitted, kLogits}};
    expect_ok(context->forward(rows));
    seen[sibling == 300] = copy(context->logits(1));
    context->cache().keep(sequence, {});
  }
  EXPECT_EQ(seen[0], seen[1]);
}

TEST_F(ModelTest, ANodesPositionCountsAndNotItsRow) {
  auto context = make_context(make_model(shape_, pool_), pool_);
  const int sequence = *context->cache().open();
  run_chain(*context, sequence, some_tokens(6, 320));
  const Row siblings[] = {{sequence, 9, 6, 4, kCommitted, kLogits},
                          {sequence, 9, 6, 30, kCommitted, kLogits}};
  expect_ok(context->forward(siblings));
  EXPECT_EQ(copy(context->logits(0)), copy(context->logits(1)));
  const Row child[] = {{sequence, 9, 7, 5, 4, kLogits}};
  const auto before = copy(context->logits(0));
  expect_ok(context->forward(child));
  EXPECT_NE(copy(context->logits(0)), before);
}

TEST_F(ModelTest, StatisticsCountWhatThePassesRead) {
  const auto model = make_model(shape_, pool_);
  auto context = make_context(model, pool_);
  const int sequence = *context->cache().open();
  run_chain(*context, sequence, some_tokens(1, 320));
  const std::size_t embedding_row = 64 / 32 * 34;
  EXPECT_EQ(context->stats().weight_bytes, model->weight_bytes() + embedding_row);
  const std::uint64_t one = context->stats().kv_bytes;
  context->reset_stats();
  const Row rows[] = {{sequence, 9, 1, 3, kCommitted, kLogits},
                      {sequence, 8, 1, 4, kCommitted, kLogits},
                      {sequence, 7, 2, 5, 4, kLogits}};
  expect_ok(context->forward(rows));
  EXPECT_EQ(context->stats().weight_bytes, model->weight_bytes() + 3 * embedding_row);  // once for three rows
  EXPECT_EQ(context->stats().kv_bytes, 4 * one);  // one committed position and three slots, each once
  EXPECT_EQ(context->stats().rows, 3u);
  EXPECT_EQ(context->stats().passes, 1u);
}

TEST_F(ModelTest, ATrimmedHeadAnswersInFullTokenIds) {
  shape_.tied_head = false;
  const auto whole_bytes = *random_model(shape_);
  const std::vector<std::int32_t> kept = {0, 2, 17, 100, 101, 250, 319};
  const auto whole = *load_bytes(whole_bytes, pool_);
  const auto trimmed = load_bytes(with_trimmed_head(whole_bytes, kept), pool_);
  ASSERT_TRUE(trimmed) << trimmed.error().message;
  EXPECT_EQ((*trimmed)->head_tokens().size(), kept.size());
  const auto tokens = some_tokens(9, 320);
  auto full = make_context(whole, pool_), part = make_context(*trimmed, pool_);
  const Logits expected = run_chain(*full, *full->cache().open(), tokens);
  const Logits logits = run_chain(*part, *part->cache().open(), tokens);
  for (std::size_t row = 0; row < tokens.size(); ++row)
    for (Token token = 0; token < 320; ++token) {
      const bool there = std::find(kept.begin(), kept.end(), token) != kept.end();
      EXPECT_EQ(logits[row][token], there ? expected[row][token] : -INFINITY);
    }
}

TEST_F(ModelTest, TokensMayShareRowsOfTheEmbedding) {
  shape_.tied_head = false;
  const auto bytes = *random_model(shape_);
  const auto file = *gguf::File::parse(bytes, "whole.gguf");
  constexpr int kRows = 100;  // of the 320; the others take them in turn
  std::vector<std::int32_t> row_of(320);
  for (int token = 0; token < 320; ++token) row_of[token] = token % kRows;
  gguf::Writer few, repeated;
  for (const gguf::Key& key : file->keys()) {
    few.copy(key);
    repeated.copy(key);
  }
  few.add_i32s("coppice.embedding.rows", row_of);
  for (const gguf::Tensor& tensor : file->tensors()) {
    if (tensor.name != "token_embd.weight") {
      few.copy(tensor);
      repeated.copy(tensor);
      continue;
    }
    const std::size_t row = tensor.bytes / 320;
    std::vector<std::byte> rows(tensor.data, tensor.data + kRows * row), all;
    for (const std::int32_t at : row_of)
      all.insert(all.end(), tensor.data + at * row, tensor.data + (at + 1) * row);
    few.add_tensor("token_embd.weight", *tensor.format, {64, kRows}, std::move(rows));
    repeated.add_tensor("token_embd.weight", *tensor.format, {64, 320}, std::move(all));
  }
  const auto shared = load_bytes(few.to_bytes(), pool_), whole = load_bytes(repeated.to_bytes(), pool_);
  ASSERT_TRUE(shared) << shared.error().message;
  EXPECT_EQ((*shared)->config().vocab, 320);
  const auto tokens = some_tokens(9, 320);
  auto a = make_context(*shared, pool_), b = make_context(*whole, pool_);
  EXPECT_EQ(run_chain(*a, *a->cache().open(), tokens), run_chain(*b, *b->cache().open(), tokens));
}

TEST_F(ModelTest, ATapSeesEveryMatmulByTheNameOfItsTensor) {
  struct Names : LayerTap {
    std::multiset<std::string> names;
    void matmul(const char* tensor, const MatmulTask& task, const float* x) override {
      EXPECT_NE(x, nullptr);
      EXPECT_EQ(task.rows, 2);
      names.insert(tensor);
    }
  } tap;
  auto context = make_context(make_model(shape_, pool_), pool_);
  const int sequence = *context->cache().open();
  context->set_tap(&tap);
  run_chain(*context, sequence, some_tokens(2, 320));
  EXPECT_EQ(tap.names.size(), 2u * 7 + 1);
  for (const char* name : {"blk.0.attn_q.weight", "blk.1.ffn_down.weight", "token_embd.weight"})
    EXPECT_EQ(tap.names.count(name), 1u) << name;
}

TEST_F(ModelTest, ContextsThatCannotBeHadAreRefused) {
  const auto model = make_model(shape_, pool_);
  ContextOptions options;
  options.kv.type = CacheType::q8_0;  // heads of 16
  EXPECT_NE(message(Context::make(model, options, pool_)).find("multiple of 32"), std::string::npos);
  options.kv.type = CacheType::f32;
  options.kv.positions = 1 << 28;
  options.kv.sequences = 65536;
  options.kv.slots = 65536;
  EXPECT_NE(message(Context::make(model, options, pool_)).find("bytes of memory"), std::string::npos);
  options = {};
  options.max_logits = options.max_rows + 1;
  EXPECT_NE(message(Context::make(model, options, pool_)).find("max_logits"), std::string::npos);
  options = {};
  options.feature_layers = {0, 3};  // of two blocks
  EXPECT_NE(message(Context::make(model, options, pool_)).find("feature layer 3"), std::string::npos);
  options.feature_layers = std::vector<int>(kMaxFeatureLayers + 1, 0);
  EXPECT_NE(message(Context::make(model, options, pool_)).find("at most 16"), std::string::npos);
}

TEST(Passes, MaximaAreTheLargestOfEach32Logits) {
  ThreadPool pool(2);
  RandomModelOptions options;
  options.vocab = 321;  // the last group is not whole: its padding, zeros, is no logit
  const auto context = testing::make_context(testing::make_model(options, pool), pool);
  const int sequence = *context->cache().open();
  expect_ok(context->cache().reserve(sequence, 7));
  std::vector<Row> rows(7);
  for (int i = 0; i < 7; ++i) rows[i] = {sequence, 3 * i + 1, i, kCommitted, kCommitted, kNothing};
  for (const int i : {1, 2, 3, 5, 6}) rows[i].wants = kLogits;
  bool below_padding = false;
  expect_ok(context->forward(rows));
  for (const int row : {1, 2, 3, 5, 6}) {
    const std::span<const float> logits = context->logits(row), maxima = context->maxima(row);
    ASSERT_EQ(maxima.size(), 11u);
    for (std::size_t g = 0; g < maxima.size(); ++g) {
      const std::span<const float> group =
          logits.subspan(32 * g, std::min<std::size_t>(32, logits.size() - 32 * g));
      EXPECT_EQ(maxima[g], *std::max_element(group.begin(), group.end())) << row << " " << g;
    }
    below_padding = below_padding || maxima.back() < 0;
  }
  EXPECT_TRUE(below_padding) << "these rows would not notice padding among the logits";
}

}  // namespace
}  // namespace coppice::core
