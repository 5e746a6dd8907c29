#include "draft/mixer_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace coppice::core {
namespace {

// Two candidates of features [1, first, a, b]; the first is drawn with a chance that follows from a and b.
struct Heard {
  Token tokens[2] = {5, 6};
  SourceMask sources[2] = {};
  float x[8] = {1, 1, 0, 0, 1, 0, 0, 0};
  float gumbel[2] = {};
  float noise[2 * kNoiseFeatures] = {};
  Opinions opinions(int bucket = 0) { return {2, bucket, tokens, sources, x, gumbel, noise}; }
};

float chance(const std::vector<float>& weights, const MixerShape& shape, float a, float b) {
  Mixer mixer(shape);
  mixer.set_weights(weights);
  const float x[] = {1, 1, a, b, 1, 0, 0, 0};
  float p[2];
  mixer.chances(0, x, 2, p);
  return p[0];
}

// The first candidate is drawn in 9 of 10 cases where exactly one of a and b is 1, else in 2; the second
// never is.
Lessons one_of_two(int count) {
  Lessons lessons(4);
  std::mt19937 random(3);
  for (int i = 0; i < count; ++i) {
    Heard heard;
    heard.x[2] = static_cast<float>(random() % 2);
    heard.x[3] = static_cast<float>(random() % 2);
    const bool likely = heard.x[2] != heard.x[3];
    lessons.hear(heard.opinions(), random() % 10 < (likely ? 9 : 2) ? 5 : 7);
  }
  return lessons;
}

TEST(MixerFit, FindsTheChancesThatTheLessonsShow) {
  const MixerShape shape{4, 1, 8};
  FitOptions options;
  options.epochs = 20;
  const auto weights = fit_mixer(one_of_two(6000), shape, options);
  for (const float a : {0.0f, 1.0f})
    for (const float b : {0.0f, 1.0f}) EXPECT_NEAR(chance(weights, shape, a, b), a != b ? 0.9f : 0.2f, 0.05f);
}

TEST(MixerFit, WithoutHiddenUnitsOneOfTwoIsBeyondIt) {
  const MixerShape shape{4, 1, 0};
  const auto weights = fit_mixer(one_of_two(6000), shape, {});
  EXPECT_LT(chance(weights, shape, 1, 0), 0.75f);
}

TEST(MixerFit, TheSameLessonsGiveTheSameWeights) {
  const Lessons lessons = one_of_two(500);
  EXPECT_EQ(fit_mixer(lessons, {4, 1, 8}, {}), fit_mixer(lessons, {4, 1, 8}, {}));
}

TEST(MixerFit, StopsWhenToldTo) {
  FitOptions options;
  int calls = 0;
  options.progress = [&](double) { return ++calls < 2; };
  const auto weights = fit_mixer(one_of_two(20000), {4, 1, 8}, options);
  EXPECT_EQ(calls, 2);
  for (const float w : weights) EXPECT_TRUE(std::isfinite(w));
}

TEST(MixerFit, LearnsWhoseNoiseIsTheDraw) {
  // Equal chances; the token of the greater noise is drawn. Lessons without known noise say nothing about it.
  Lessons lessons(4);
  std::mt19937 random(5);
  std::vector<float> flat(MixerShape{4, 1, 0}.weights(), 0.0f);
  for (int i = 0; i < 4000; ++i) {
    Heard heard;
    lessons.set_keyed(i % 2 == 0);
    for (float& g : heard.gumbel)
      g = -std::log(-std::log((static_cast<float>(random() % 1000) + 0.5f) / 1000));
    const bool first = heard.gumbel[0] > heard.gumbel[1];
    lessons.hear(heard.opinions(), i % 2 == 0 ? (first ? 5 : 6) : 7);
  }
  Mixer mixer({4, 1, 0});
  mixer.set_weights(flat);
  Mixer noise(Mixture::noise_shape(1));
  noise.set_weights(fit_noise(lessons, mixer, {}));
  const float even[] = {1.0f / 3, 1.0f / 3}, gumbel[] = {2.0f, 0.0f};
  float x[2 * kNoiseFeatures], p[2];
  noise_features(2, even, gumbel, x);
  noise.chances(0, x, 2, p);
  EXPECT_GT(p[0], 0.85f);
  EXPECT_LT(p[1], 0.1f);
}

}  // namespace
}  // namespace coppice::core
