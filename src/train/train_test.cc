// The loop and the head, on a small random target and a small made-up corpus.
#include <ATen/Parallel.h>
#include <coppice/train.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/os.h"
#include "draft/katz.h"
#include "model/random_model.h"
#include "text/vocabulary.h"
#include "train/attention.h"
#include "train/ops.h"
#include "train/testing.h"
#include "train/weights.h"

namespace coppice::core::train {
namespace {

using torch::Tensor;

struct Files {
  std::string folder, target, corpus;
};

Files make_files(const std::string& name) {
  RandomModelOptions options;
  auto bytes = random_model(options);
  EXPECT_TRUE(bytes);
  Files files;
  files.folder = testing::fresh_folder(name);
  files.target = files.folder + "/target.gguf";
  EXPECT_TRUE(write_file(files.target, [&](const Append& append) { return append(*bytes); }));
  testing::TinyCorpus tiny;
  const auto target = Target::open(files.target);
  EXPECT_TRUE(target) << (target ? "" : target.error().message);
  tiny.vocabulary_hash = target->vocabulary_hash;
  files.corpus = testing::write_corpus(tiny, name + "_corpus");
  return files;
}

HeadTraining tiny_head(const Files& files, const std::string& out, std::int64_t steps) {
  HeadTraining head;
  head.target = files.target;
  head.corpora = {files.corpus};
  head.out = files.folder + "/" + out;
  head.vocabulary = 64;
  head.negatives = 16;
  head.format = "F32";
  head.loop = testing::small_loop(steps);
  return head;
}

TrainReport run(const HeadTraining& options) {
  auto report = train_head(options);
  EXPECT_TRUE(report) << (report ? "" : report.error().message);
  return report ? *report : TrainReport{};
}

// Keys such as minutes differ from run to run; tensors must not.
void expect_same_tensors(const std::string& a, const std::string& b) {
  const auto x = gguf::File::open(a), y = gguf::File::open(b);
  ASSERT_TRUE(x && y);
  ASSERT_EQ((*x)->tensors().size(), (*y)->tensors().size());
  for (const gguf::Tensor& tensor : (*x)->tensors()) {
    const gguf::Tensor* other = (*y)->tensor(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    ASSERT_EQ(tensor.bytes, other->bytes);
    EXPECT_EQ(std::memcmp(tensor.data, other->data, tensor.bytes), 0) << tensor.name;
  }
}

TEST(TrainHead, LearnsWhatFollows) {
  const Files files = make_files("learns");
  const TrainReport begin = run(tiny_head(files, "begin.gguf", 1));
  const TrainReport end = run(tiny_head(files, "end.gguf", 120));
  EXPECT_LT(end.loss, 0.7 * begin.loss);
  ASSERT_EQ(end.agreement.size(), 4u);
  EXPECT_GT(end.agreement[0].top1, 0.6);
  EXPECT_GT(end.accepted, begin.accepted);
}

TEST(TrainHead, ARunThatStoppedGoesOnAsIfItHadNot) {
  const Files files = make_files("resume");
  run(tiny_head(files, "whole.gguf", 12));
  HeadTraining part = tiny_head(files, "part.gguf", 12);
  int asked = 0;
  part.loop.stop = [&asked] { return ++asked == 5; };
  EXPECT_TRUE(run(part).stopped);
  part.loop.stop = {};
  part.loop.resume = true;
  EXPECT_EQ(run(part).steps, 12);
  expect_same_tensors(files.folder + "/whole.gguf.checkpoint", files.folder + "/part.gguf.checkpoint");
}

TEST(TrainHead, AFileIsGoneOnFrom) {
  if (find_format("I64") == nullptr) GTEST_SKIP() << "maps of tokens cannot be read yet";
  const Files files = make_files("from");
  const TrainReport first = run(tiny_head(files, "first.gguf", 60));
  HeadTraining next = tiny_head(files, "next.gguf", 1);
  next.from = files.folder + "/first.gguf";
  next.loop.rate = 1e-6;
  const TrainReport second = run(next);
  EXPECT_NEAR(second.agreement[0].top1, first.agreement[0].top1, 0.02);
}

TEST(TrainHead, WhatCannotBeUsedIsNamed) {
  const Files files = make_files("refused");
  HeadTraining head = tiny_head(files, "x.gguf", 1);
  head.objective = "best";
  EXPECT_NE(train_head(head).error().message.find("objective = best"), std::string::npos);
  head = tiny_head(files, "x.gguf", 0);
  EXPECT_NE(train_head(head).error().message.find("budget"), std::string::npos);
  head = tiny_head(files, "x.gguf", 1);
  head.from = files.target;
  EXPECT_NE(train_head(head).error().message.find("d2t"), std::string::npos);
  testing::TinyCorpus bare;
  bare.features = false;
  head = tiny_head(files, "x.gguf", 1);
  head.corpora = {testing::write_corpus(bare, "refused_bare")};
  EXPECT_NE(train_head(head).error().message.find("vocabulary"), std::string::npos);
}

// The gradient that distil() makes by hand is the loss's own: central differences.
TEST(Distil, GradientsAreThoseOfTheLoss) {
  torch::manual_seed(3);
  for (const Objective objective : {Objective::kl, Objective::tv, Objective::lk}) {
    for (const double temperature : {1.0, 0.5}) {
      const Tensor logits = torch::randn({3, 7}, torch::kFloat64);
      const Tensor at = torch::tensor({2, 0, -1, 5, 6, 1, 3, -1, 4}, torch::kInt64).reshape({3, 3});
      const Tensor logp =
          torch::tensor({.5, .2, .1, .4, .3, .05, .9, .05, .01}, torch::kFloat64).log().reshape({3, 3});
      const Teacher teacher{at, logp, temperature, objective};
      Tensor leaf = logits.clone().set_requires_grad(true);
      distil(leaf, teacher).backward();
      for (int64_t i = 0; i < logits.numel(); ++i) {
        const auto moved = [&](double by) {
          Tensor other = logits.clone();
          other.reshape({-1})[i] += by;
          return distil(other, teacher).item<double>();
        };
        const double slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
        EXPECT_NEAR(leaf.grad().reshape({-1})[i].item<double>(), slope, 1e-6)
            << static_cast<int>(objective) << " " << temperature << " " << i;
      }
    }
  }
}

// With a mask written out row by row, as the head's own pass in the engine will see it.
TEST(ChainAttention, ARowSeesThePastOfDepthOneAndItsOwnChain) {
  torch::manual_seed(5);
  const int64_t rows = 6, heads = 4, kv = 2, d = 8;
  ChainAttention attention(static_cast<int>(heads / kv));
  std::vector<Tensor> keys, values;
  for (int64_t depth = 1; depth <= 3; ++depth) {
    const Tensor query = torch::randn({1, rows, heads, d});
    keys.push_back(torch::randn({1, rows, kv, d}));
    values.push_back(torch::randn({1, rows, kv, d}));
    const Tensor out = attention.step(query, keys.back(), values.back());
    for (int64_t p = depth - 1; p < rows; ++p) {
      for (int64_t h = 0; h < heads; ++h) {
        std::vector<Tensor> seen_keys, seen_values;
        const auto see = [&](int64_t level, int64_t row) {
          seen_keys.push_back(keys[static_cast<std::size_t>(level) - 1][0][row][h / 2]);
          seen_values.push_back(values[static_cast<std::size_t>(level) - 1][0][row][h / 2]);
        };
        for (int64_t past = 0; past <= p - depth + 1; ++past) see(1, past);
        for (int64_t level = 2; level <= depth; ++level) see(level, p - depth + level);
        const Tensor scores =
            torch::stack(seen_keys).matmul(query[0][p][h]) / std::sqrt(static_cast<double>(d));
        const Tensor expected = torch::softmax(scores, 0).matmul(torch::stack(seen_values));
        EXPECT_TRUE(torch::allclose(out[0][p][h], expected, 1e-4, 1e-5)) << depth << " " << p << " " << h;
      }
    }
  }
}

TEST(SampledRows, NamedRowsAreThereAndTheOthersStandForTheRest) {
  const DraftVocabulary vocabulary = make_vocabulary({2, 3, 5, 7, 11, 13, 17, 19}, 20);
  const Tensor top = torch::tensor({3, 4, 19, 3}, torch::kInt64).reshape({2, 2});
  Random random(1, 1);
  const SampledRows sampled = sample_rows(vocabulary, top, 3, random);
  EXPECT_EQ(sampled.rows.size(0), 5);  // rows 1 and 7, and three of the other six
  EXPECT_EQ(sampled.rows[0].item<int64_t>(), 1);
  EXPECT_EQ(sampled.at[0][1].item<int64_t>(), -1);
  EXPECT_EQ(sampled.at[1][1].item<int64_t>(), sampled.at[0][0].item<int64_t>());
  EXPECT_NEAR(sampled.log_weight[4].item<double>(), std::log(2.0), 1e-6);
  EXPECT_EQ(sample_rows(vocabulary, top, 0, random).rows.size(0), 8);
}

}  // namespace
}  // namespace coppice::core::train
