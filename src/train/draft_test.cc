// coppice train draft as a whole, on a small random target and a small made-up corpus.
#include <coppice/train.h>

#include <cstring>

#include "base/os.h"
#include "train/draft_file.h"
#include "train/draft_testing.h"
#include "train/testing.h"
#include "train/weights.h"

namespace coppice::core::train {
namespace {

struct DraftFiles {
  std::string folder, target, corpus;
};

DraftFiles make_draft_files(const std::string& name) {
  const testing::SmallTarget small = testing::make_target();
  DraftFiles files;
  files.folder = testing::fresh_folder("draft_" + name);
  files.target = files.folder + "/target.gguf";
  testing::expect_ok(write_file(files.target, [&](const Append& append) { return append(small.bytes); }));
  testing::TinyCorpus tiny;
  tiny.features = false;
  tiny.hidden = 96;
  tiny.vocabulary_hash = testing::value_of(Target::open(files.target)).vocabulary_hash;
  files.corpus = testing::write_corpus(tiny, "draft_" + name + "_corpus");
  return files;
}

DraftTraining tiny_draft(const DraftFiles& files, const std::string& out, std::int64_t steps) {
  DraftTraining draft;
  draft.target = files.target;
  draft.corpora = {files.corpus};
  draft.out = files.folder + "/" + out;
  draft.vocabulary = 64;
  draft.negatives = 16;
  draft.widths = {0.5, 1.0, 1.5};
  draft.format = draft.head_format = draft.embedding_format = "F32";
  draft.loop = testing::small_loop(steps);
  return draft;
}

TrainReport run(const DraftTraining& options) { return testing::value_of(train_draft(options)); }

std::string refusal(const DraftTraining& options) {
  const auto report = train_draft(options);
  EXPECT_FALSE(report);
  return report ? "" : report.error().message;
}

TEST(TrainDraft, LearnsWhatFollowsAtEveryWidth) {
  const DraftFiles files = make_draft_files("learns");
  const TrainReport begin = run(tiny_draft(files, "begin.gguf", 1));
  const TrainReport end = run(tiny_draft(files, "end.gguf", 100));
  EXPECT_LT(end.loss, begin.loss);
  ASSERT_EQ(end.agreement.size(), 3u);  // no exit: its width, 0.75, is not among them
  EXPECT_EQ(end.agreement[0].name, "w64");
  for (const TrainAgreement& each : end.agreement) EXPECT_GT(each.top1, 0.6) << each.name;
  const auto file = testing::value_of(gguf::File::open(files.folder + "/end.gguf"));
  EXPECT_EQ(testing::value_of(read_draft(*file))->shape().widths(), 3);
  EXPECT_EQ(testing::value_of(file->text("coppice.train.kind")), "draft");
}

TEST(TrainDraft, ARunThatStoppedGoesOnAsIfItHadNot) {
  const DraftFiles files = make_draft_files("resume");
  run(tiny_draft(files, "whole.gguf", 10));
  DraftTraining part = tiny_draft(files, "part.gguf", 10);
  int asked = 0;
  part.loop.stop = [&asked] { return ++asked == 4; };
  EXPECT_TRUE(run(part).stopped);
  part.loop.stop = {};
  part.loop.resume = true;
  EXPECT_EQ(run(part).steps, 10);
  const auto whole = testing::value_of(gguf::File::open(files.folder + "/whole.gguf.checkpoint"));
  const auto resumed = testing::value_of(gguf::File::open(files.folder + "/part.gguf.checkpoint"));
  ASSERT_EQ(whole->tensors().size(), resumed->tensors().size());
  for (const gguf::Tensor& tensor : whole->tensors()) {
    const gguf::Tensor* other = resumed->tensor(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(std::memcmp(tensor.data, other->data, tensor.bytes), 0) << tensor.name;
  }
}

// From a file, with texts of the draft's own beside the corpus.
TEST(TrainDraft, AFileIsGoneOnFromWithRollouts) {
  const DraftFiles files = make_draft_files("from");
  const TrainReport first = run(tiny_draft(files, "first.gguf", 80));
  DraftTraining next = tiny_draft(files, "next.gguf", 3);
  next.from = files.folder + "/first.gguf";
  next.rollouts = files.corpus;
  next.loop.rate = 1e-6;
  const TrainReport second = run(next);
  for (std::size_t i = 0; i < first.agreement.size(); ++i)
    EXPECT_NEAR(second.agreement[i].top1, first.agreement[i].top1, 0.02);
}

TEST(TrainDraft, OneWidthAloneIsAnOrdinaryLlama) {
  const DraftFiles files = make_draft_files("single");
  DraftTraining draft = tiny_draft(files, "single.gguf", 2);
  draft.widths = {1.0};
  draft.train_embedding = false;
  EXPECT_EQ(run(draft).agreement.size(), 1u);
  const auto file = testing::value_of(gguf::File::open(draft.out));
  EXPECT_EQ(file->find("coppice.slim.hidden"), nullptr);
  EXPECT_EQ(testing::value_of(file->integer("llama.embedding_length")), 64);
}

TEST(TrainDraft, WhatCannotBeUsedIsNamed) {
  const DraftFiles files = make_draft_files("refused");
  DraftTraining draft = tiny_draft(files, "x.gguf", 1);
  draft.loss = "best";
  EXPECT_NE(refusal(draft).find("best"), std::string::npos);
  draft = tiny_draft(files, "x.gguf", 1);
  draft.format = "Q9";
  EXPECT_NE(refusal(draft).find("Q9"), std::string::npos);
  draft = tiny_draft(files, "x.gguf", 1);
  draft.layers = 9;
  EXPECT_NE(refusal(draft).find("--layers"), std::string::npos);
  testing::TinyCorpus other;
  draft = tiny_draft(files, "x.gguf", 1);
  draft.corpora = {testing::write_corpus(other, "draft_refused_other")};
  EXPECT_NE(refusal(draft).find("vocabulary"), std::string::npos);
}

}  // namespace
}  // namespace coppice::core::train
