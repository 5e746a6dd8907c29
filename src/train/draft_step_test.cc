// Losses and steps: the gradient that is written down is the gradient, and training teaches.
#include "train/draft_step.h"

#include "train/draft_agreement.h"
#include "train/draft_testing.h"
#include "train/optimizer.h"

namespace coppice::core::train {
namespace {

using testing::make_batch;
using testing::make_draft;
using testing::make_target;
using testing::value_of;

constexpr DraftLoss kLosses[] = {DraftLoss::kl, DraftLoss::tv, DraftLoss::lk, DraftLoss::mix};

// A teacher of 5 tokens on 12 rows, some of which the head lacks.
DraftTeacher small_teacher() {
  torch::manual_seed(11);
  DraftTeacher teacher;
  teacher.rows =
      torch::stack({torch::randperm(12), torch::randperm(12), torch::randperm(12), torch::randperm(12)})
          .slice(1, 0, 5)
          .contiguous();
  teacher.rows[1][2] = -1;
  teacher.probabilities = torch::softmax(torch::randn({4, 5}) * 2, 1) * 0.9;
  return teacher;
}

TEST(DraftLossTest, TheWrittenGradientIsTheDifferenceQuotient) {
  const DraftTeacher teacher = small_teacher();
  const Sharpened sharpened = sharpen(teacher, 0.5);
  Candidates candidates = all_candidates(12);
  candidates.log_share[7] = 1.5f;  // row 7 stands for several
  const torch::Tensor logits = torch::randn({4, 12});
  const torch::Tensor guide = torch::softmax(torch::randn({4, 12}), 1);
  for (const DraftLoss kind : kLosses) {
    if (kind == DraftLoss::mix) continue;  // lambda counts as a constant, so the quotient is another
    const LossOptions options{kind, 0.5};
    const torch::Tensor gradient = draft_loss(logits, teacher, sharpened, candidates, options).gradient;
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 12; ++j) {
        torch::Tensor up = logits.clone(), down = logits.clone();
        up[i][j] += 1e-2f;
        down[i][j] -= 1e-2f;
        const double quotient = (draft_loss(up, teacher, sharpened, candidates, options).loss -
                                 draft_loss(down, teacher, sharpened, candidates, options).loss) /
                                2e-2;
        EXPECT_NEAR(gradient[i][j].item<double>(), quotient, 3e-3) << static_cast<int>(kind);
      }
    }
  }
  const torch::Tensor plain = draft_loss(logits, teacher, sharpened, candidates, {}).gradient;
  const LossResult guided = draft_loss(logits, teacher, sharpened, candidates, {}, guide, 2.0);
  EXPECT_TRUE(
      torch::allclose(guided.gradient - plain, (guided.softmax - guide) * (2.0 / 4 / 0.5), 1e-4, 1e-5));
}

TEST(DraftLossTest, GradientsAreFiniteWhereProbabilitiesVanish) {
  DraftTeacher teacher = small_teacher();
  teacher.probabilities.zero_();
  teacher.probabilities.select(1, 0).fill_(1.0f);
  const torch::Tensor logits = torch::full({4, 12}, -60.0f);
  logits.select(1, 3).fill_(60.0f);
  for (const DraftLoss kind : kLosses) {
    const LossResult result =
        draft_loss(logits, teacher, sharpen(teacher, 0.5), all_candidates(12), {kind, 0.5});
    EXPECT_TRUE(std::isfinite(result.loss));
    EXPECT_TRUE(torch::isfinite(result.gradient).all().item<bool>());
  }
}

TEST(DraftLossTest, ADraftThatIsTheTargetLosesNothingAndIsAlwaysAccepted) {
  const torch::Tensor p = torch::softmax(torch::randn({4, 12}) * 2, 1);
  DraftTeacher teacher;
  teacher.rows = torch::arange(12).expand({4, 12}).contiguous();
  teacher.probabilities = p;
  for (const DraftLoss kind : kLosses) {
    const LossResult result =
        draft_loss(p.log(), teacher, sharpen(teacher, 0.5), all_candidates(12), {kind, 0.5});
    EXPECT_NEAR(result.loss, 0, 1e-4);
    EXPECT_NEAR(result.acceptance, 1, 1e-4);
  }
}

TEST(DraftLossTest, SharpeningKeepsOneAndMovesMassToTheMostLikely) {
  const DraftTeacher teacher = small_teacher();
  const Sharpened same = sharpen(teacher, 1.0), sharp = sharpen(teacher, 0.5);
  EXPECT_TRUE(torch::allclose(same.named.sum(1) + same.rest, torch::ones({4})));
  EXPECT_TRUE(torch::allclose(sharp.named.sum(1) + sharp.rest, torch::ones({4})));
  EXPECT_TRUE(torch::allclose(same.named, teacher.probabilities * (teacher.rows >= 0), 1e-4, 1e-5));
  EXPECT_GT(std::get<0>(sharp.named.max(1))[0].item<float>(),
            std::get<0>(same.named.max(1))[0].item<float>());
}

// A few rows drawn for all others give the same denominator on average.
TEST(DraftLossTest, SampledRowsStandForTheOthers) {
  const DraftTeacher teacher = small_teacher();
  const Sharpened sharpened = sharpen(teacher, 0.5);
  const torch::Tensor by_use = torch::arange(2000, torch::kInt64);
  const torch::Tensor weights = torch::rand({2000});
  Random random(3, 0);
  double sum = 0;
  for (int i = 0; i < 200; ++i) {
    const Candidates c = choose_candidates(teacher, sharpened, by_use, {10, 100, 1e-3f}, random);
    EXPECT_GE(c.rows.size(0), 110);
    sum += (weights.index_select(0, c.rows) * c.log_share.exp()).sum().item<double>();
  }
  EXPECT_NEAR(sum / 200, weights.sum().item<double>(), 20);
}

TEST(DraftStep, EveryParameterGetsAFiniteGradient) {
  const auto target = make_target();
  const auto draft = make_draft(target);
  const DraftBatch batch = make_batch(target.config.vocab, 6, 24);
  for (const DraftLoss kind : kLosses) {
    StepOptions options;
    options.loss.loss = kind;
    options.imitate = 0.5;
    options.candidates = {32, 32, 1e-3f};
    DraftStep step(*draft, torch::arange(200, torch::kInt64), options);
    Random random(1, 0);
    for (int i = 0; i < 12; ++i) {  // every mode between comes up
      for (const ModeLoss& loss : step.accumulate(batch, random)) EXPECT_TRUE(std::isfinite(loss.loss));
    }
    for (const Parameter& parameter : draft->parameters()) {
      torch::Tensor gradient = parameter.value.grad();
      ASSERT_TRUE(gradient.defined()) << parameter.name;
      EXPECT_TRUE(torch::isfinite(gradient).all().item<bool>()) << parameter.name;
      EXPECT_GT(gradient.abs().max().item<double>(), 0) << parameter.name;
      gradient.zero_();
    }
  }
}

TEST(DraftStep, TrainingTeachesEveryWidthAndTheExit) {
  const auto target = make_target();
  const auto draft = make_draft(target);
  const DraftBatch unseen = make_batch(target.config.vocab, 8, 24, 77);
  const auto modes = draft_modes(draft->shape());
  std::vector<Agreement> before, after;
  add_agreement(*draft, modes, unseen, before);
  StepOptions options;
  options.candidates = {32, 32, 1e-3f};
  DraftStep step(*draft, torch::arange(200, torch::kInt64), options);
  Optimizer optimizer(draft->parameters());
  Random random(1, 0);
  for (int i = 0; i < 80; ++i) {
    step.accumulate(make_batch(target.config.vocab, 8, 24, 100 + static_cast<std::uint64_t>(i)), random);
    optimizer.step({3e-3, 0.01, 1, 0});
  }
  add_agreement(*draft, modes, unseen, after);
  for (std::size_t i = 0; i < after.size(); ++i) {
    EXPECT_GT(after[i].of(after[i].top1), before[i].of(before[i].top1) + 0.3) << after[i].name;
    EXPECT_GE(after[i].top8, after[i].top4);
    EXPECT_GE(after[i].top4, after[i].top1);
    EXPECT_GT(after[i].overlap, before[i].overlap);
  }
}

// K and V of another pass are read up to the switch point only, and one's own are read elsewhere.
TEST(DraftStep, KeysAndValuesOfAnotherWidthAreReadUpToTheSwitchPoint) {
  torch::NoGradGuard no_grad;
  const auto target = make_target();
  const auto draft = make_draft(target);
  const torch::Tensor text = testing::some_text(2, 16, target.config.vocab);
  const torch::Tensor embedded = draft->embed(text.flatten()).view({2, 16, -1});
  const DraftPass narrow = draft->forward(text, {0, false}), wide = draft->forward(text, {2, false});
  OtherKv other{narrow.kv, torch::zeros({2, 1, 16, 1}, torch::kBool)};
  EXPECT_TRUE(torch::equal(draft->forward_embedded(embedded, {2, false}, &other).hidden, wide.hidden));
  other.take.slice(0, 1, 2).slice(2, 0, 5).fill_(true);
  const torch::Tensor mixed = draft->forward_embedded(embedded, {2, false}, &other).hidden;
  EXPECT_TRUE(torch::equal(mixed[0], wide.hidden[0]));
  EXPECT_FALSE(torch::equal(mixed[1][10], wide.hidden[1][10]));
  OtherKv same{wide.kv, torch::ones({2, 1, 16, 1}, torch::kBool)};
  EXPECT_TRUE(torch::equal(draft->forward_embedded(embedded, {2, false}, &same).hidden, wide.hidden));
}

}  // namespace
}  // namespace coppice::core::train
