// A narrower width reads the first part of every matrix and gives the bits of a model that has only that
// part; widths may change from pass to pass; the exit leaves K and V for the layers above it.
#include "model/slim.h"

#include <gtest/gtest.h>

#include "model/slim_testing.h"

namespace coppice::core {
namespace {

using namespace testing;

using Logits = std::vector<std::vector<float>>;

class Slim : public ::testing::Test {
 protected:
  explicit Slim(RandomModelOptions shape = slimmable()) : pool_(2), bytes_(*random_model(shape)) {
    auto model = load_bytes(bytes_, pool_);
    EXPECT_TRUE(model) << (model ? "" : model.error().message);
    model_ = *model;
    options_.kv.sequences = 2;
    options_.kv.positions = 128;
  }
  std::unique_ptr<Context> context(std::shared_ptr<const Model> model) {
    return make_context(std::move(model), pool_, options_);
  }
  std::shared_ptr<const Model> cut(std::size_t w) {
    auto model = load_bytes(cut_to_width(bytes_, w), pool_);
    EXPECT_TRUE(model) << (model ? "" : model.error().message);
    return *model;
  }
  // The exit's width with blocks above the exit that add nothing: they see its state.
  std::shared_ptr<const Model> silent_above_exit() {
    auto model = load_bytes(cut_to_width(bytes_, {1, 4, "exit_norm.weight", 2}), pool_);
    EXPECT_TRUE(model) << (model ? "" : model.error().message);
    return *model;
  }
  // Logits of tokens of which each stretch is computed by another model of the same cache, or another
  // variant.
  struct Stretch {
    int variant;
    int count;
  };
  Logits by_variants(std::span<const Stretch> stretches, std::span<const Token> tokens, int chunk) {
    auto one = context(model_);
    const int sequence = *one->cache().open();
    Logits logits;
    for (std::size_t at = 0; const Stretch& stretch : stretches) {
      one->set_variant(stretch.variant);
      const auto count = static_cast<std::size_t>(stretch.count);
      for (auto& row : run_chain(*one, sequence, tokens.subspan(at, count), chunk))
        logits.push_back(std::move(row));
      at += count;
    }
    return logits;
  }
  Logits by_models(std::span<const Stretch> stretches, std::span<const Token> tokens) {
    Logits logits;
    std::vector<std::byte> cache;
    for (std::size_t at = 0; const Stretch& stretch : stretches) {
      auto one = context(cut(static_cast<std::size_t>(stretch.variant)));
      const int sequence = *one->cache().open();
      if (!cache.empty()) expect_ok(one->cache().load(sequence, cache));
      const auto count = static_cast<std::size_t>(stretch.count);
      for (auto& row : run_chain(*one, sequence, tokens.subspan(at, count), 5))
        logits.push_back(std::move(row));
      at += count;
      cache.clear();
      expect_ok(one->cache().save(sequence, [&](std::span<const std::byte> more) -> Status {
        cache.insert(cache.end(), more.begin(), more.end());
        return {};
      }));
    }
    return logits;
  }

  ThreadPool pool_;
  std::vector<std::byte> bytes_;
  std::shared_ptr<const Model> model_;
  ContextOptions options_;
};

class SlimFloats : public Slim {
 protected:
  static RandomModelOptions shape() {
    RandomModelOptions shape = slimmable();
    shape.formats = {"F32", "F16", "BF16"};
    shape.embedding_format = "F16";
    shape.tied_head = false;
    return shape;
  }
  SlimFloats() : Slim(shape()) {}
};

TEST_F(Slim, TheWholeModelIsTheWidestWidth) {
  ASSERT_EQ(model_->variants().size(), 4u);
  EXPECT_EQ(model_->whole(), 2);
  EXPECT_EQ(model_->variants()[0].name, "0.5");
  EXPECT_EQ(model_->variants()[3].name, "exit");
  const auto tokens = some_tokens(20, 320);
  auto plain = context(model_);
  EXPECT_EQ(run_chain(*plain, *plain->cache().open(), tokens),
            by_models(std::vector<Stretch>{{2, 20}}, tokens));
}

TEST_F(Slim, EveryWidthIsBitEqualToTheModelCutToIt) {
  const auto tokens = some_tokens(20, 320);
  for (int w = 0; w < 3; ++w) {
    const std::vector<Stretch> all = {{w, 20}};
    EXPECT_EQ(by_variants(all, tokens, 7), by_models(all, tokens)) << "width " << w;
  }
}

TEST_F(SlimFloats, EveryWidthIsBitEqualToTheModelCutToIt) {
  const auto tokens = some_tokens(20, 320);
  for (int w = 0; w < 3; ++w) {
    const std::vector<Stretch> all = {{w, 20}};
    EXPECT_EQ(by_variants(all, tokens, 7), by_models(all, tokens)) << "width " << w;
  }
}

TEST_F(Slim, WhatOneWidthWroteIntoTheCacheAnotherReads) {
  const std::vector<Stretch> stretches = {{2, 7}, {0, 9}, {1, 1}, {2, 1}, {0, 2}, {1, 8}};
  const auto tokens = some_tokens(28, 320);
  const Logits expected = by_models(stretches, tokens);
  EXPECT_EQ(by_variants(stretches, tokens, 16), expected);
  EXPECT_EQ(by_variants(stretches, tokens, 1), expected);
}

// The exit's own logits: those of the first blocks alone, at that width, with its norm.
TEST_F(Slim, TheExitSaysWhatItsFirstBlocksAloneSay) {
  const auto tokens = some_tokens(20, 320);
  auto model = load_bytes(cut_to_width(bytes_, {1, 2, "exit_norm.weight", 4}), pool_);
  ASSERT_TRUE(model) << model.error().message;
  auto alone = context(*model);
  EXPECT_EQ(by_variants(std::vector<Stretch>{{3, 20}}, tokens, 6),
            run_chain(*alone, *alone->cache().open(), tokens, 20));
}

// What it leaves in the layers above: K and V of its last residual, as a model would whose blocks in between
// add nothing.
TEST_F(Slim, TheExitWritesKeysAndValuesOfTheLayersAboveFromItsOwnState) {
  const auto tokens = some_tokens(24, 320);
  auto one = context(model_);
  const int sequence = *one->cache().open();
  one->set_variant(3);
  run_chain(*one, sequence, std::span(tokens).first(20), 9);
  auto same_width = context(silent_above_exit());
  const int other = *same_width->cache().open();
  run_chain(*same_width, other, std::span(tokens).first(20), 4);
  const auto bytes = [](Context& context, int from) {
    std::vector<std::byte> out;
    expect_ok(context.cache().save(from, [&](std::span<const std::byte> more) -> Status {
      out.insert(out.end(), more.begin(), more.end());
      return {};
    }));
    return out;
  };
  EXPECT_EQ(bytes(*one, sequence), bytes(*same_width, other));
}

}  // namespace
}  // namespace coppice::core
