// What is written is read back; what was damaged is refused with a sentence and nothing outside is read.
#include "corpus/corpus_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "corpus/corpus_folder.h"
#include "quant/formats.h"

namespace coppice::core {
namespace {

CorpusShape shape(int top_k, int features) { return {0x1234, 50, top_k, features, features > 0 ? 3 : 32}; }

CorpusRecord record(const CorpusShape& shape, int tokens, int start, std::uint64_t job) {
  CorpusRecord out;
  out.job = job;
  out.start = start;
  out.temperature = 0.5f;
  out.kind = 2;
  out.flags = kEndedByItself;
  for (int i = 0; i < tokens; ++i) out.ids.push_back((7 * i + static_cast<int>(job)) % shape.vocab);
  for (int i = start; i < tokens; ++i)
    for (int k = 0; k < shape.top_k; ++k) {
      out.top_tokens.push_back((i + k) % shape.vocab);
      out.top_logprobs.push_back(f32_to_f16(-0.25f * static_cast<float>(k)));
    }
  for (int i = 0; i < tokens * shape.features * shape.hidden; ++i)
    out.features.push_back(f32_to_f16(static_cast<float>(i)));
  return out;
}

void expect_same(const CorpusRecordView& read, const CorpusRecord& written, int top_k) {
  EXPECT_EQ(read.job, written.job);
  EXPECT_EQ(read.start, written.start);
  EXPECT_EQ(read.temperature, written.temperature);
  EXPECT_EQ(read.kind, written.kind);
  EXPECT_EQ(read.flags, written.flags);
  EXPECT_TRUE(std::ranges::equal(read.ids, written.ids));
  EXPECT_TRUE(std::ranges::equal(read.features, written.features));
  for (int i = read.start; i < static_cast<int>(read.ids.size()); ++i) {
    const auto at = static_cast<std::size_t>(i - read.start) * static_cast<std::size_t>(top_k);
    EXPECT_TRUE(
        std::equal(read.top_tokens(i).begin(), read.top_tokens(i).end(), written.top_tokens.begin() + at));
    EXPECT_TRUE(std::equal(read.top_logprobs(i).begin(), read.top_logprobs(i).end(),
                           written.top_logprobs.begin() + at));
  }
}

TEST(CorpusFile, WhatWasWrittenIsReadBack) {
  for (const CorpusShape& kind : {shape(0, 0), shape(2, 0), shape(6, 2), shape(0, 1)}) {
    CorpusShardWriter writer(kind);
    std::vector<CorpusRecord> written;
    for (const auto& [tokens, start] : {std::pair{9, 4}, {1, 1}, {2, 1}, {17, 16}, {5, 5}}) {
      written.push_back(record(kind, tokens, start, written.size() + 1));
      writer.add(written.back());
    }
    const std::vector<std::byte> bytes = writer.to_bytes();
    EXPECT_EQ(bytes.size(), writer.bytes());
    const auto shard = CorpusShard::parse(bytes, "x");
    ASSERT_TRUE(shard) << shard.error().message;
    EXPECT_EQ(shard->shape(), kind);
    ASSERT_EQ(shard->texts(), 5);
    for (int i = 0; i < 5; ++i) expect_same(shard->text(i), written[static_cast<std::size_t>(i)], kind.top_k);
  }
}

TEST(CorpusFile, AShardWithoutTextsIsOne) {
  const auto bytes = CorpusShardWriter(shape(2, 0)).to_bytes();
  const auto shard = CorpusShard::parse(bytes, "x");
  ASSERT_TRUE(shard) << shard.error().message;
  EXPECT_EQ(shard->texts(), 0);
}

TEST(CorpusFile, AFileCutOffAnywhereIsRefused) {
  CorpusShardWriter writer(shape(2, 1));
  writer.add(record(shape(2, 1), 5, 2, 1));
  const auto bytes = writer.to_bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + size);
    const auto shard = CorpusShard::parse(cut, "cut.corpus");
    ASSERT_FALSE(shard) << size;
    EXPECT_TRUE(shard.error().message.starts_with("cut.corpus: ")) << shard.error().message;
  }
}

// Every bit of a small shard turned: refused, or still a shard in which every text can be read.
TEST(CorpusFile, NoDamagedBitLeadsOutOfTheFile) {
  CorpusShardWriter writer(shape(2, 1));
  writer.add(record(shape(2, 1), 5, 2, 1));
  writer.add(record(shape(2, 1), 3, 1, 2));
  std::vector<std::byte> bytes = writer.to_bytes();
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    if (const auto shard = CorpusShard::parse(bytes, "x")) {
      for (int i = 0; i < shard->texts(); ++i) {
        const CorpusRecordView text = shard->text(i);
        for (int p = text.start; p < static_cast<int>(text.ids.size()); ++p)
          for (const Token token : text.top_tokens(p)) EXPECT_LT(token, shard->shape().vocab);
        for (const Token token : text.ids) EXPECT_LT(token, shard->shape().vocab);
        EXPECT_EQ(text.features.size(), text.ids.size() * static_cast<std::size_t>(shard->shape().features *
                                                                                   shard->shape().hidden));
      }
    }
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

TEST(CorpusFile, ARecordThatSaysItIsLongerThanItsPlaceIsRefused) {
  const CorpusShape kind{7, 5000, 0, 0, 32};  // what stands behind the record would be good ids
  CorpusShardWriter writer(kind);
  writer.add(record(kind, 3, 1, 1));
  std::vector<std::byte> bytes = writer.to_bytes();
  bytes[64 + 8] = std::byte{5};  // tokens
  const auto shard = CorpusShard::parse(bytes, "x");
  ASSERT_FALSE(shard);
  EXPECT_NE(shard.error().message.find("text 0 has 5 tokens, which need"), std::string::npos)
      << shard.error().message;
}

TEST(CorpusFile, LogProbabilitiesThatRiseAreRefusedWithTheirPlace) {
  CorpusRecord text = record(shape(2, 0), 4, 2, 1);
  std::swap(text.top_logprobs[2], text.top_logprobs[3]);
  CorpusShardWriter writer(shape(2, 0));
  writer.add(text);
  const auto bytes = writer.to_bytes();
  const auto shard = CorpusShard::parse(bytes, "x");
  ASSERT_FALSE(shard);
  EXPECT_NE(shard.error().message.find("x: text 0 says of its token 3"), std::string::npos)
      << shard.error().message;
}

class CorpusFolder : public ::testing::Test {
 protected:
  CorpusFolder() { std::filesystem::create_directories(folder_); }
  ~CorpusFolder() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = ::testing::TempDir() + "corpus_folder_test_" + std::to_string(::getpid());
};

TEST_F(CorpusFolder, ShardsComeInOrderAndOtherFilesDoNotCount) {
  CorpusShardWriter writer(shape(2, 0));
  for (const int number : {10, 2, 100000}) ASSERT_TRUE(writer.write(corpus_shard_path(folder_, number)));
  for (const char* name : {"shard-00003.corpus.12-0.tmp", "shard-.corpus", "shard-1x.corpus", "notes.txt"})
    ASSERT_TRUE(writer.write(folder_ + "/" + name));
  const auto shards = corpus_shards(folder_);
  ASSERT_TRUE(shards);
  EXPECT_EQ(*shards, (std::vector{folder_ + "/shard-00002.corpus", folder_ + "/shard-00010.corpus",
                                  folder_ + "/shard-100000.corpus"}));
  EXPECT_EQ(next_corpus_shard(*shards), 100001);
  EXPECT_FALSE(corpus_shards(folder_ + "/nowhere"));
}

TEST_F(CorpusFolder, ADescriptionIsReadAsItWasWritten) {
  EXPECT_FALSE(is_corpus_folder(folder_));
  CorpusDescription written;
  written.shape = {0xfedcba9876543210u, 49152, 16, 3, 576};
  written.target = "target.gguf";
  written.target_hash = "00ff";
  written.feature_layers = {10, 20, 30};
  written.kinds = {"gsm8k", "magpie"};
  written.settings = {{"seed", 1}};
  ASSERT_TRUE(write_corpus_description(folder_, written));
  EXPECT_TRUE(is_corpus_folder(folder_));
  const auto read = read_corpus_description(folder_);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->shape, written.shape);
  EXPECT_EQ(read->to_text(), written.to_text());
}

TEST_F(CorpusFolder, ADescriptionWithoutAFieldNamesIt) {
  const auto missing = CorpusDescription::parse(R"({"version": 1, "target": "x"})", "corpus.json");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("\"target_hash\""), std::string::npos) << missing.error().message;
  EXPECT_FALSE(CorpusDescription::parse("[", "corpus.json"));
  EXPECT_FALSE(CorpusDescription::parse(R"({"version": 2})", "corpus.json"));
}

}  // namespace
}  // namespace coppice::core
