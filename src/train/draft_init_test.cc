// What a draft begins with: the target itself where nothing is cut away.
#include "train/draft_init.h"

#include "model/testing.h"
#include "train/draft_file.h"
#include "train/draft_testing.h"

namespace coppice::core::train {
namespace {

using testing::make_target;
using testing::some_text;
using testing::value_of;

DraftShape whole_shape(const testing::SmallTarget& target) {
  DraftShapeOptions options;
  options.layers = target.config.layers;
  options.factors = {kWidestFactor};
  options.exit_layer = 0;
  return value_of(make_draft_shape(options, target.config, target.config.vocab));
}

// Logits [tokens, vocab] of our own engine over one text.
torch::Tensor engine_logits(const testing::SmallTarget& target, const torch::Tensor& tokens) {
  ThreadPool pool(1);
  auto model = value_of(Model::load(target.file, pool));
  ContextOptions options;
  options.kv.type = CacheType::f32;
  auto context = core::testing::make_context(model, pool, options);
  const int sequence = value_of(context->cache().open());
  std::vector<Token> text;
  for (std::int64_t i = 0; i < tokens.size(1); ++i)
    text.push_back(static_cast<Token>(tokens[0][i].item<std::int64_t>()));
  std::vector<torch::Tensor> rows;
  for (const auto& row : core::testing::run_chain(*context, sequence, text))
    rows.push_back(torch::tensor(row));
  return torch::stack(rows);
}

double difference(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

TEST(DraftInit, AllLayersAtFullWidthAreTheTarget) {
  torch::NoGradGuard no_grad;
  for (const bool tied : {true, false}) {
    const auto target = make_target(tied);
    const torch::Tensor text = some_text(1, 48, target.config.vocab);
    const std::vector<torch::Tensor> texts = {some_text(4, 32, target.config.vocab, 2)};
    const auto tokens = testing::first_tokens(target.config.vocab);
    const auto init = value_of(init_draft(*target.file, whole_shape(target), tokens, texts));
    const DraftPass pass = init.draft->forward(text, {0, false});
    const torch::Tensor logits = init.draft->logits(pass.hidden)[0];
    const torch::Tensor expected = engine_logits(target, text);
    EXPECT_LT(difference(logits, expected), 2e-3 * expected.abs().max().item<double>());
    EXPECT_NEAR(init.energy[0], 1.0, 1e-6);
  }
}

TEST(DraftInit, TurningTheResidualChangesNothing) {
  torch::NoGradGuard no_grad;
  const auto target = make_target();
  const auto tokens = testing::first_tokens(200);
  const DraftShape shape = [&] {
    DraftShape s = whole_shape(target);
    s.head_rows = 200;
    return s;
  }();
  const auto whole = value_of(whole_draft(*target.file, shape, tokens));
  const torch::Tensor text = some_text(3, 40, target.config.vocab);
  const torch::Tensor before = whole->logits(whole->forward(text, {0, false}).hidden);
  const torch::Tensor q = std::get<0>(torch::linalg_qr(torch::randn({96, 96}, torch::kFloat64)));
  turn_residual(*whole, q);
  const torch::Tensor after = whole->logits(whole->forward(text, {0, false}).hidden);
  EXPECT_LT(difference(before, after), 1e-4 * before.abs().max().item<double>());
}

// The point of turning: the same slice of a draft that was not turned keeps less.
TEST(DraftInit, NarrowSlicesKeepMoreOfTheStreamThanTheirShare) {
  const auto target = make_target();
  DraftShapeOptions options;
  options.factors = {0.5, 1.0, 1.5};
  const DraftShape shape = value_of(make_draft_shape(options, target.config, 200));
  const std::vector<torch::Tensor> texts = {some_text(8, 32, target.config.vocab)};
  const auto init = value_of(init_draft(*target.file, shape, testing::first_tokens(200), texts));
  EXPECT_GT(init.energy[0], 32.0 / 96 + 0.1);
  EXPECT_GT(init.energy[1], init.energy[0]);
  EXPECT_NEAR(init.energy[2], 1.0, 1e-6);
}

TEST(DraftInit, AnyNumberOfHeadsCanBeMadeOfTheTargets) {
  const auto target = make_target();
  for (const auto& [heads, kv_heads] : {std::pair{2, 1}, std::pair{2, 2}, std::pair{6, 3}}) {
    DraftShapeOptions options;
    options.factors = {0.5, 1.0, 1.5};
    options.heads = heads;
    options.kv_heads = kv_heads;
    const DraftShape shape = value_of(make_draft_shape(options, target.config, 50));
    const std::vector<torch::Tensor> texts = {some_text(2, 16, target.config.vocab)};
    const auto init = value_of(init_draft(*target.file, shape, testing::first_tokens(50), texts));
    const DraftPass pass = init.draft->forward(texts[0], {0, false});
    EXPECT_TRUE(torch::isfinite(init.draft->logits(pass.hidden)).all().item<bool>());
  }
}

// Every head of the target twice, each counting half: the target again.
TEST(DraftInit, HeadsTakenTwiceCountHalf) {
  torch::NoGradGuard no_grad;
  const auto target = make_target();
  DraftShape shape = whole_shape(target);
  const auto tokens = testing::first_tokens(target.config.vocab);
  const torch::Tensor text = some_text(2, 24, target.config.vocab);
  const auto once = value_of(whole_draft(*target.file, shape, tokens));
  shape.heads = 6;
  const auto twice = value_of(whole_draft(*target.file, shape, tokens));
  const torch::Tensor expected = once->forward(text, {0, false}).hidden;
  EXPECT_LT(difference(twice->forward(text, {0, false}).hidden, expected), 1e-4);
}

TEST(DraftInit, OptionsThatCannotBeAreNamed) {
  const auto target = make_target();
  const auto error = [&](auto change) {
    DraftShapeOptions options;
    options.factors = {0.5, 1.5};
    change(options);
    const auto shape = make_draft_shape(options, target.config, 50);
    EXPECT_FALSE(shape.has_value());
    return shape ? std::string() : shape.error().message;
  };
  EXPECT_NE(error([](auto& o) { o.layers = 4; }).find("--layers"), std::string::npos);
  EXPECT_NE(error([](auto& o) { o.from = {0}; }).find("--source-layers"), std::string::npos);
  EXPECT_NE(error([](auto& o) { o.from = {0, 3}; }).find("--source-layers"), std::string::npos);
  EXPECT_NE(error([](auto& o) { o.factors = {1.0, 0.5}; }).find("--widths"), std::string::npos);
  EXPECT_NE(error([](auto& o) { o.factors = {2.0}; }).find("--widths"), std::string::npos);
  EXPECT_NE(error([](auto& o) { o.factors = {1.0, 1.01}; }).find("--widths"), std::string::npos);
  EXPECT_NE(error([](auto& o) { o.exit_layer = 2; }).find("--exit-layer"), std::string::npos);
  EXPECT_NE(error([](auto& o) { o.heads = 3, o.kv_heads = 2; }).find("KV heads"), std::string::npos);
}

}  // namespace
}  // namespace coppice::core::train
