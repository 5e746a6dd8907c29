// Files of drafts: what is written is what was trained, at every width.
#include "train/draft_file.h"

#include <filesystem>

#include "model/architectures.h"
#include "train/draft_agreement.h"
#include "train/draft_testing.h"

namespace coppice::core::train {
namespace {

using testing::expect_ok;
using testing::make_target;
using testing::some_text;
using testing::value_of;

std::string temporary(const char* name) {
  return (std::filesystem::path(::testing::TempDir()) / name).string();
}

// A draft whose gains differ between widths, as after training.
std::shared_ptr<SlimDraft> trained_draft(const testing::SmallTarget& target) {
  torch::NoGradGuard no_grad;
  auto draft = testing::make_draft(target);
  torch::manual_seed(5);
  for (const Parameter& p : draft->parameters()) {
    if (p.value.dim() == 1) p.value.mul_(torch::rand(p.value.sizes()) + 0.5);
  }
  return draft;
}

TEST(DraftFile, SlicesOfTheFileAreTheSlicesThatWereTrained) {
  torch::NoGradGuard no_grad;
  const auto target = make_target();
  const auto draft = trained_draft(target);
  const std::string path = temporary("draft_slices.gguf");
  DraftFileOptions options;
  options.blocks = options.head = options.embedding = "F32";
  expect_ok(write_draft(*draft, *target.file, options, path));
  const auto file = value_of(gguf::File::open(path));
  const auto read = value_of(read_draft(*file));
  const torch::Tensor text = some_text(2, 24, target.config.vocab);
  for (const DraftMode& mode : draft_modes(draft->shape())) {
    const torch::Tensor a = draft->logits(draft->forward(text, mode).hidden);
    const torch::Tensor b = read->logits(read->forward(text, mode).hidden);
    EXPECT_TRUE(torch::equal(a, b)) << mode_name(draft->shape(), mode);
  }
  EXPECT_EQ(read->head_tokens(), draft->head_tokens());
}

TEST(DraftFile, TokensThatShareAnEmbeddingDoSoInTheFile) {
  torch::NoGradGuard no_grad;
  const auto target = make_target();
  const auto draft = trained_draft(target);
  torch::Tensor rows = torch::arange(target.config.vocab, torch::kInt64) % draft->shape().head_rows;
  draft->share_embedding(rows);
  const std::string path = temporary("draft_shared.gguf");
  DraftFileOptions options;
  options.blocks = options.head = options.embedding = "F32";
  expect_ok(write_draft(*draft, *target.file, options, path));
  const auto file = value_of(gguf::File::open(path));
  EXPECT_EQ(file->tensor("token_embd.weight")->shape[1], draft->shape().head_rows);
  const auto read = value_of(read_draft(*file));
  EXPECT_TRUE(torch::equal(read->embedding(), draft->embedding()));
  EXPECT_EQ(read->embedding().size(0), target.config.vocab);

  gguf::Writer broken;
  for (const gguf::Key& key : file->keys())
    if (key.name != kEmbeddingRowsKey) broken.copy(key);
  broken.add_i32s(kEmbeddingRowsKey, std::vector<std::int32_t>(static_cast<std::size_t>(target.config.vocab),
                                                               draft->shape().head_rows));
  for (const gguf::Tensor& tensor : file->tensors()) broken.copy(tensor);
  expect_ok(broken.write(path + ".broken"));
  const auto refused = read_draft(*value_of(gguf::File::open(path + ".broken")));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("coppice.embedding.rows has row"), std::string::npos)
      << refused.error().message;
}

// One width of a slimmable draft, cut out by hand, is an ordinary llama.
TEST(DraftFile, AWidthIsALlamaOfTheFirstDimensions) {
  torch::NoGradGuard no_grad;
  const auto target = make_target();
  const auto draft = trained_draft(target);
  DraftShape shape = draft->shape();
  shape.hidden = {shape.hidden[1]};
  shape.feed_forward = {shape.feed_forward[1]};
  shape.factors = {shape.factors[1]};
  shape.exit_layer = 0;
  SlimDraft narrow(shape, draft->head_tokens());
  const auto cut = [](const torch::Tensor& from, torch::Tensor& to) {
    to.copy_(from.slice(0, 0, to.size(0)).slice(1, 0, to.size(1)));
  };
  cut(draft->used_embedding, narrow.used_embedding);
  cut(draft->rare_embedding, narrow.rare_embedding);
  cut(draft->head, narrow.head);
  narrow.output_norm[0].copy_(draft->output_norm[1]);
  for (std::size_t i = 0; i < narrow.blocks.size(); ++i) {
    for (auto member : {&DraftBlock::wq, &DraftBlock::wk, &DraftBlock::wv, &DraftBlock::wo, &DraftBlock::gate,
                        &DraftBlock::up, &DraftBlock::down}) {
      cut(draft->blocks[i].*member, narrow.blocks[i].*member);
    }
    narrow.blocks[i].attention_norm[0].copy_(draft->blocks[i].attention_norm[1]);
    narrow.blocks[i].feed_forward_norm[0].copy_(draft->blocks[i].feed_forward_norm[1]);
  }
  const std::string path = temporary("draft_narrow.gguf");
  DraftFileOptions options;
  options.blocks = options.head = options.embedding = "F32";
  expect_ok(write_draft(narrow, *target.file, options, path));
  const auto file = value_of(gguf::File::open(path));
  EXPECT_EQ(file->find("coppice.slim.hidden"), nullptr);
  const auto read = value_of(read_draft(*file));
  const torch::Tensor text = some_text(2, 24, target.config.vocab);
  const torch::Tensor a = draft->logits(draft->forward(text, {1, false}).hidden);
  const torch::Tensor b = read->logits(read->forward(text, {0, false}).hidden);
  EXPECT_TRUE(torch::equal(a, b));
}

TEST(DraftFile, EveryFormatIsReadBackAndNotesAreKept) {
  const auto target = make_target();
  const auto draft = testing::make_draft(target);
  for (const char* format : {"Q4_0", "Q4_1", "Q8_0", "F16"}) {
    const std::string path = temporary("draft_format.gguf");
    DraftFileOptions options;
    options.blocks = options.head = options.embedding = format;
    options.notes = {{"steps", "12"}};
    expect_ok(write_draft(*draft, *target.file, options, path));
    const auto file = value_of(gguf::File::open(path));
    EXPECT_EQ(value_of(file->text("coppice.train.steps")), "12");
    const auto read = value_of(read_draft(*file));
    EXPECT_LT((read->head - draft->head).abs().max().item<double>(),
              0.2 * draft->head.abs().max().item<double>());
  }
}

TEST(DraftFile, AFormatThatIsNoneIsNamedAndNothingIsWritten) {
  const auto target = make_target();
  const std::string path = temporary("draft_never.gguf");
  DraftFileOptions options;
  options.head = "Q9_9";
  const Status status = write_draft(*testing::make_draft(target), *target.file, options, path);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("Q9_9"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace coppice::core::train
