// A small corpus for the tests of this room: texts in which a token mostly follows from the one before.
#pragma once

#include <coppice/train.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "corpus/corpus_folder.h"
#include "quant/formats.h"
#include "train/random.h"

namespace coppice::core::train::testing {

struct TinyCorpus {
  int vocab = 320, hidden = 64, layers = 2, top_k = 4, texts = 60, length = 40;
  std::uint64_t vocabulary_hash = 1;
  bool features = true;
};

// Of `steps` on one thread in f32, so that a run is the same each time; judged at the end only.
inline TrainLoop small_loop(int steps) {
  TrainLoop loop;
  loop.steps = steps;
  loop.rate = 3e-3;
  loop.average = 0.9;
  loop.threads = 1;
  loop.bf16 = false;
  loop.window = 24;
  loop.context = 8;
  loop.batch_tokens = 192;
  loop.held_out = 0.2;
  loop.judge_steps = 1000;
  return loop;
}

inline std::string fresh_folder(const std::string& name) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / ("coppice_train_" + name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder.string();
}

// Token t is followed by (3 t + 7) mod 50 with probability 0.8. States tell the token they belong to.
inline CorpusRecord tiny_text(const TinyCorpus& tiny, int number) {
  Random random(17, static_cast<std::uint64_t>(number));
  CorpusRecord record;
  record.job = static_cast<std::uint64_t>(number);
  record.start = 3 + number % 5;
  const auto feature_values = static_cast<std::size_t>(2 * tiny.hidden);
  Token at = static_cast<Token>(random.below(50));
  for (int i = 0; i < tiny.length + number % 7; ++i) {
    record.ids.push_back(at);
    for (std::size_t f = 0; tiny.features && f < feature_values; ++f)
      record.features.push_back(
          f32_to_f16(static_cast<float>((static_cast<std::size_t>(at) * 31 + f * 17) % 13) - 6));
    const Token next = (3 * at + 7) % 50;
    if (i + 1 >= record.start) {
      for (int k = 0; k < tiny.top_k; ++k) {
        record.top_tokens.push_back(k == 0 ? next : (next + k) % 50);
        record.top_logprobs.push_back(f32_to_f16(k == 0 ? -0.2231f : -4.0f - static_cast<float>(k)));
      }
    }
    at = random.uniform() < 0.8 ? next : static_cast<Token>(random.below(50));
  }
  // What the target said stands at the token it was said about: one set a generated token.
  record.top_tokens.resize((record.ids.size() - static_cast<std::size_t>(record.start)) *
                           static_cast<std::size_t>(tiny.top_k));
  record.top_logprobs.resize(record.top_tokens.size());
  return record;
}

inline std::string write_corpus(const TinyCorpus& tiny, const std::string& name) {
  const std::string folder = fresh_folder(name);
  CorpusDescription description;
  description.shape = {tiny.vocabulary_hash, tiny.vocab, tiny.top_k, tiny.features ? 2 : 0, tiny.hidden};
  description.target = "tiny.gguf";
  description.target_hash = std::string(32, '0');
  if (tiny.features) description.feature_layers = {1, 2};
  description.kinds = {"made up"};
  EXPECT_TRUE(write_corpus_description(folder, description));
  CorpusShardWriter writer(description.shape);
  for (int i = 0; i < tiny.texts; ++i) {
    writer.add(tiny_text(tiny, i));
    if (i % 25 == 24 || i + 1 == tiny.texts) {
      EXPECT_TRUE(writer.write(corpus_shard_path(folder, i / 25)));
      writer.clear();
    }
  }
  return folder;
}

}  // namespace coppice::core::train::testing
