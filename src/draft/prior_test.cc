#include "draft/prior.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "draft/lookup_drafter.h"
#include "draft/mixture.h"

namespace coppice::core {
namespace {

// A drafter that only has a name and features.
struct Named : Drafter {
  std::string label;
  DrafterShape form;
  Named(std::string l, int features, int buckets) : label(std::move(l)), form{features, buckets, false} {}
  std::string_view name() const override { return label; }
  DrafterShape shape() const override { return form; }
  Status begin(int, std::span<const Token>, const Sampler&) override { return {}; }
  void end(int) override {}
  void predict(std::span<Query>) override {}
  void describe(const Query&, std::span<const Token>, float*, int) override {}
  void observe(int, std::span<const Token>) override {}
};

Grower mix(std::vector<Named> named) {
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.reserve(named.size());
  for (const Named& n : named) drafters.push_back(std::make_unique<Named>(n));
  return Grower(std::move(drafters), {1, 8});
}

std::vector<float> weights_of(Grower& grower) {
  const Sampler sampler;
  const Token two[] = {1, 2};
  EXPECT_TRUE(grower.begin(0, two, sampler));
  std::vector<float> weights(grower.weights(0).begin(), grower.weights(0).end());
  grower.end(0);
  return weights;
}

PriorSection counted(const Grower& grower) {
  std::vector<float> weights(Mixture::prior_size(grower.features(), grower.buckets()));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i) * 0.5f;
  return make_section(grower, weights);
}

std::string file(const PriorSection& section) { return std::string(kPriorMagic) + "\n" + to_string(section); }

TEST(Prior, ComesBackAsItWasWritten) {
  Grower grower = mix({{"a", 2, 3}, {"b", 1, 1}});
  const PriorSection section = counted(grower);
  const auto prior = parse_prior(file(section) + to_string(section), "test");
  ASSERT_TRUE(prior.has_value()) << prior.error().message;
  ASSERT_EQ(prior->sections.size(), 2u);
  EXPECT_EQ(prior->sections[1].weights, section.weights);
  ASSERT_TRUE(apply_prior(*prior, grower));
  EXPECT_EQ(weights_of(grower), section.weights);
}

TEST(Prior, AFileKeepsOneSectionForAMixInWhateverOrder) {
  MixerPrior prior;
  put_section(prior, counted(mix({{"a", 2, 1}, {"b", 1, 1}})));
  put_section(prior, counted(mix({{"a", 2, 1}})));
  PriorSection again = counted(mix({{"b", 1, 1}, {"a", 2, 1}}));
  again.weights[0] = 7;
  put_section(prior, again);
  ASSERT_EQ(prior.sections.size(), 2u);
  EXPECT_EQ(prior.sections[0].weights, again.weights);
  const auto read = parse_prior(to_string(prior), "test");
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->sections[0].drafters, again.drafters);
}

TEST(Prior, UnitsThatNobodyHearsAreNotWritten) {
  PriorSection section = counted(mix({{"a", 2, 1}}));
  const MixerShape shape = Mixture::shape(4, 1);
  for (const std::size_t end : {shape.weights(), 2 * shape.weights()})
    for (int unit = 5; unit < kUnits; ++unit) section.weights[end - kUnits + unit] = 0;
  const std::string text = file(section);
  EXPECT_NE(text.find(" hidden 5\n"), std::string::npos);
  const auto prior = parse_prior(text, "test");
  ASSERT_TRUE(prior.has_value()) << prior.error().message;
  EXPECT_EQ(prior->sections[0].weights[shape.weights() - kUnits + 4],
            section.weights[shape.weights() - kUnits + 4]);
  EXPECT_EQ(prior->sections[0].weights.size(), section.weights.size());
}

TEST(Prior, FollowsTheDraftersInAnyOrder) {
  const Grower made = mix({{"a", 2, 1}, {"b", 1, 1}});
  Grower used = mix({{"b", 1, 1}, {"a", 2, 1}});
  const auto prior = parse_prior(file(counted(made)), "test");
  ASSERT_TRUE(apply_prior(*prior, used));
  // Own, own, a, a, b -> own, own, b, a, a, into the hidden units too; the noise part stays.
  const std::vector<float> w = weights_of(used);
  EXPECT_EQ(std::vector<float>(w.begin(), w.begin() + 5), (std::vector<float>{0, .5f, 2, 1, 1.5f}));
  const auto into_unit_3 = [&](int feature) { return w[5 + feature * kUnits + 3]; };
  EXPECT_EQ(into_unit_3(2), 0.5f * (5 + 4 * kUnits + 3));
  EXPECT_EQ(into_unit_3(3), 0.5f * (5 + 2 * kUnits + 3));
  EXPECT_EQ(w[5 + 5 * kUnits + 3], 0.5f * (5 + 5 * kUnits + 3));
  EXPECT_EQ(w.back(), 0.5f * static_cast<float>(w.size() - 1));
}

TEST(Prior, AStageHasThePriorOfItsDraftAlone) {
  for (const auto& [made, used] : {std::pair{"model", "stage"}, std::pair{"stage", "model"}}) {
    Grower before = mix({{"a", 2, 1}, {made, 7, 1}});
    MixerPrior prior;
    put_section(prior, counted(before));
    Grower after = mix({{"a", 2, 1}, {used, 7, 1}});
    ASSERT_TRUE(apply_prior(prior, after)) << made;
    EXPECT_EQ(weights_of(after), prior.sections[0].weights);
    put_section(prior, counted(after));
    EXPECT_EQ(prior.sections.size(), 1u);
  }
}

TEST(Prior, AMixItWasNotMadeForIsRefusedWithTheOnesItFits) {
  const Grower made = mix({{"a", 2, 1}});
  const auto prior = parse_prior(file(counted(made)), "some.mixer");
  for (auto& other : {Named{"b", 2, 1}, Named{"a", 3, 1}, Named{"a", 2, 2}}) {
    Grower grower = mix({other});
    const Status applied = apply_prior(*prior, grower);
    ASSERT_FALSE(applied.has_value());
    EXPECT_EQ(applied.error().message.find("some.mixer was fitted for `a`, not for the mix `"), 0u);
  }
}

TEST(Prior, EveryTruncationAndEveryWrongWordIsRefusedWithTheLine) {
  const Grower grower = mix({{"a", 2, 2}});
  const std::string text = file(counted(grower));
  for (std::size_t n = 0; n + 1 < text.size(); ++n) {
    if (n == kPriorMagic.size() || n == kPriorMagic.size() + 1)
      continue;  // a file without sections is a file
    EXPECT_FALSE(parse_prior(text.substr(0, n), "test").has_value()) << n;
  }
  for (const auto& [good, bad] :
       {std::pair{"mixer 2", "mixer 1"}, std::pair{"a:2", "a:0"}, std::pair{"a:2", "a:97"},
        std::pair{"buckets 2", "buckets 65"}, std::pair{"own 2", "own 3"},
        std::pair{"hidden 32", "hidden 33"}, std::pair{"hidden 32", "hidden 31"},
        std::pair{"greedy 1", "greedy 0"}, std::pair{"0.5", "nan"}, std::pair{"0.5", "0.5x"},
        std::pair{"0.5", "0.5 1"}, std::pair{"0.5", "1e31"}}) {
    std::string wrong = text;
    wrong.replace(wrong.find(good), std::string(good).size(), bad);
    const auto prior = parse_prior(wrong, "test");
    ASSERT_FALSE(prior.has_value()) << bad;
    EXPECT_EQ(prior.error().message.find("test, line "), 0u);
  }
}

TEST(Prior, BesideAModelTheCheapDraftersKeepWhatTheyKnow) {
  // A costly drafter with a model's seven features between cheap ones that a section knows.
  const Grower cheap = mix({{"a", 2, 1}, {"b", 1, 1}});
  const PriorSection section = counted(cheap);
  const auto prior = parse_prior(file(section), "test");
  Named model{"model", 7, 1};
  model.form.costly = true;
  Grower grower = mix({{"b", 1, 1}, model, {"a", 2, 1}});
  EXPECT_FALSE(apply_prior(*prior, grower).has_value());
  const std::vector<float> before = weights_of(grower);
  compose_prior(*prior, grower);
  const std::vector<float> after = weights_of(grower);
  EXPECT_NE(after, before);
  // b's weight is the section's, weakened, and the model has a say of its own.
  EXPECT_EQ(after[kOwnFeatures], 0.75f * section.weights[kOwnFeatures + 2]);
  EXPECT_GT(after[kOwnFeatures + 1 + 1], 1.0f);
  EXPECT_EQ(after.back(), section.weights.back());
}

TEST(Prior, TheBuiltInOneFitsLookup) {
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::make_unique<LookupDrafter>(1, 100));
  Grower grower(std::move(drafters), {1, 8});
  const std::vector<float> before = weights_of(grower);
  ASSERT_TRUE(apply_prior(builtin_prior(), grower));
  EXPECT_NE(weights_of(grower), before);
}

}  // namespace
}  // namespace coppice::core
