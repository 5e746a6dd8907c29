#include "draft/ngram_corpus.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "corpus/corpus_folder.h"
#include "draft/katz.h"
#include "text/test_vocabulary.h"

namespace coppice::core {
namespace {

class NgramCorpusTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) {
    std::string path = ::testing::TempDir() + "ngram_corpus_" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  Result<std::vector<CorpusText>> read(const std::string& path) {
    std::vector<CorpusText> texts;
    const Status status =
        read_texts(*tokenizer_, path, [&](const CorpusText& text) { texts.push_back(text); });
    if (!status) return fail(status.error().message);
    return texts;
  }
  void expect_refused(const std::string& name, const std::string& content, const std::string& why) {
    const auto texts = read(write(name, content));
    ASSERT_FALSE(texts) << name;
    EXPECT_NE(texts.error().message.find(why), std::string::npos) << texts.error().message;
  }
  static std::string integers(const std::vector<std::int32_t>& ids) {
    return {reinterpret_cast<const char*>(ids.data()), ids.size() * 4};
  }

  std::shared_ptr<const Tokenizer> tokenizer_ = *Tokenizer::make(testing::small_vocabulary());
};

TEST_F(NgramCorpusTest, ReadsACorpusFolderOfTheSameVocabulary) {
  const std::string folder = ::testing::TempDir() + "ngram_corpus_folder";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  CorpusDescription description;
  description.shape = {vocabulary_hash(tokenizer_->vocabulary().tokens), tokenizer_->size(), 0, 0, 32};
  ASSERT_TRUE(write_corpus_description(folder, description));
  CorpusShardWriter writer(description.shape);
  for (const Token first : {3, 5}) {
    CorpusRecord text;
    text.ids = {first, 1, 2};
    text.start = 2;
    writer.clear();
    writer.add(text);
    ASSERT_TRUE(writer.write(corpus_shard_path(folder, first)));
  }
  const auto texts = read(folder);
  ASSERT_TRUE(texts) << texts.error().message;
  ASSERT_EQ(texts->size(), 2u);
  EXPECT_FALSE((*texts)[0].keyed);
  EXPECT_EQ((*texts)[0].tokens, (std::vector<Token>{3, 1, 2}));
  EXPECT_EQ((*texts)[1].tokens, (std::vector<Token>{5, 1, 2}));
  EXPECT_EQ((*texts)[1].start, 2u);

  CorpusShape other = description.shape;
  ++other.vocabulary_hash;
  ASSERT_TRUE(CorpusShardWriter(other).write(corpus_shard_path(folder, 9)));
  const auto refused = read(folder);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("shard-00009.corpus: is of a model with another vocabulary"),
            std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST_F(NgramCorpusTest, KnowsHowATextWasDrawnWhereItSaysSo) {
  const auto texts =
      read(write("drawn.jsonl",
                 "{\"ids\":[1],\"temperature\":0.5,\"top_k\":40,\"seed\":18446744073709551615,"
                 "\"stream\":3}\n{\"ids\":[1],\"temperature\":0.5}\n{\"ids\":[1],\"stream\":3}"));
  ASSERT_TRUE(texts) << texts.error().message;
  EXPECT_TRUE((*texts)[0].keyed);
  EXPECT_EQ((*texts)[0].sampling.top_k, 40);
  EXPECT_EQ((*texts)[0].sampling.seed, 18446744073709551615u);
  EXPECT_EQ((*texts)[0].sampling.stream, 3u);
  EXPECT_EQ((*texts)[1].temperature, 0.5f);
  EXPECT_FALSE((*texts)[1].keyed);
  EXPECT_FALSE((*texts)[2].keyed);
  for (const char* field : {"temperature", "top_k", "seed", "stream"})
    expect_refused("bad.jsonl",
                   std::string("{\"ids\":[1],\"temperature\":1,\"stream\":0,\"") + field + "\":-1}", field);
}

TEST_F(NgramCorpusTest, ReadsTheFourKindsOfFiles) {
  const auto lines =
      read(write("a.jsonl", "{\"ids\":[1,2,3],\"start\":2}\n\n{\"text\":\"hello w\"}\r\n{\"ids\":[]}"));
  ASSERT_TRUE(lines) << lines.error().message;
  ASSERT_EQ(lines->size(), 3u);
  EXPECT_EQ((*lines)[0].tokens, (std::vector<Token>{1, 2, 3}));
  EXPECT_EQ((*lines)[0].start, 2u);
  EXPECT_EQ((*lines)[1].tokens, tokenizer_->encode("hello w"));

  const auto binary = read(write("a.bin", integers({4, 5, -1, -1, 6})));
  ASSERT_TRUE(binary);
  ASSERT_EQ(binary->size(), 2u);
  EXPECT_EQ((*binary)[0].tokens, (std::vector<Token>{4, 5}));
  EXPECT_EQ((*binary)[1].tokens, (std::vector<Token>{6}));

  const std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (3,), }\n";
  const std::string magic = std::string("\x93NUMPY\x01", 7) + '\0' + static_cast<char>(header.size()) + '\0';
  const auto array = read(write("a.npy", magic + header + integers({7, 8, 9})));
  ASSERT_TRUE(array) << array.error().message;
  ASSERT_EQ(array->size(), 1u);
  EXPECT_EQ((*array)[0].tokens, (std::vector<Token>{7, 8, 9}));

  const auto text = read(write("a.txt", "hello <|im_end|>"));
  ASSERT_TRUE(text);
  EXPECT_EQ((*text)[0].tokens, tokenizer_->encode("hello <|im_end|>", false));
}

TEST_F(NgramCorpusTest, BadInputIsRefusedWithThePlace) {
  expect_refused("b.jsonl", "{\"ids\":[1]}\nnonsense\n", "line 2");
  expect_refused("b.jsonl", "{\"ids\":[1,99999]}", "ids[1] is 99999");
  expect_refused("b.jsonl", "{\"ids\":[1,\"x\"]}", "ids[1]");
  expect_refused("b.jsonl", "{\"ids\":[-1]}", "ids[0]");
  expect_refused("b.jsonl", "{\"ids\":[1],\"start\":2}", "start");
  expect_refused("b.jsonl", "{\"other\":1}", "neither");
  expect_refused("b.bin", "12345", "5 bytes");
  expect_refused("b.bin", integers({3, 123456}), "id 1 is 123456");
  expect_refused("b.npy", "no array at all", "not a .npy");
  expect_refused("b.npy", std::string("\x93NUMPY\x01\x00\xff\xff and so on", 20), "cut off");
}

TEST_F(NgramCorpusTest, BuildsAFileThatKnowsTheTexts) {
  NgramCorpus corpus;
  corpus.inputs = {write("c.jsonl", "{\"ids\":[1,2,3,4],\"start\":2}"), write("c.txt", "hello hello hello")};
  corpus.output = ::testing::TempDir() + "ngram_corpus_c.ngram";
  corpus.order = 3;
  const auto report = build_ngram(*tokenizer_, corpus);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->texts, 2u);
  EXPECT_EQ(report->tokens, 2 + tokenizer_->encode("hello hello hello").size());
  const auto model = KatzModel::open(corpus.output);
  ASSERT_TRUE(model);
  EXPECT_EQ((*model)->bytes(), report->bytes);
  EXPECT_EQ((*model)->vocabulary_hash(), vocabulary_hash(tokenizer_->vocabulary().tokens));
  EXPECT_NE((*model)->provenance().find("c.jsonl"), std::string::npos);
  EXPECT_EQ((*model)->provenance().find('/'), std::string::npos);
  NgramContext found[4];
  (*model)->contexts(std::vector<Token>{1, 2}, found);
  EXPECT_EQ((*model)->count(found[2], 3), 1u);
  (*model)->contexts(std::vector<Token>{1}, found);
  EXPECT_EQ(found[1].count, 0u);  // what follows 1 stands before `start`
}

TEST_F(NgramCorpusTest, BadOptionsAreRefused) {
  NgramCorpus corpus;
  EXPECT_FALSE(build_ngram(*tokenizer_, corpus));
  corpus.inputs = {write("d.txt", "")};
  corpus.output = ::testing::TempDir() + "ngram_corpus_d.ngram";
  EXPECT_NE(build_ngram(*tokenizer_, corpus).error().message.find("no tokens"), std::string::npos);
  corpus.order = 9;
  EXPECT_NE(build_ngram(*tokenizer_, corpus).error().message.find("order 9"), std::string::npos);
  corpus.order = 2;
  corpus.min_count = {1, 0};
  EXPECT_NE(build_ngram(*tokenizer_, corpus).error().message.find("min_count"), std::string::npos);
}

}  // namespace
}  // namespace coppice::core
