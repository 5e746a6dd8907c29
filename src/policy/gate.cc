#include "policy/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "model/weights.h"

namespace coppice::core {
namespace {

// Where the sigmoid of an f32 is 0 or 1 for alpha.
constexpr float kCertain = 20;

// units += x * row, for inputs [first, first + values.size()).
void add_inputs(const GateWeights& w, std::span<const float> values, int first, float* units) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t input = first + i;
    const float x =
        std::clamp((values[i] - w.mean[input]) * w.scale[input], -kMostDeviations, kMostDeviations);
    const float* row = &w.in[input * w.units];
    for (int u = 0; u < w.units; ++u) units[u] += x * row[u];
  }
}

}  // namespace

Gate::Gate(GateWeights weights, GateOrigin origin)
    : weights_(std::move(weights)), origin_(std::move(origin)) {
  const GateWeights& w = weights_;
  const auto inputs = static_cast<std::size_t>(w.inputs()), units = static_cast<std::size_t>(w.units);
  COPPICE_CHECK(w.hidden > 0 && w.units > 0 && w.units <= kMostGateUnits);
  COPPICE_CHECK(w.mean.size() == inputs && w.scale.size() == inputs && w.in.size() == inputs * units);
  COPPICE_CHECK(w.in_bias.size() == units && w.out.size() == units);
}

Gate Gate::constant(float alpha, int hidden, int layer) {
  GateWeights w;
  w.hidden = hidden;
  w.layer = layer;
  w.units = 1;
  w.mean.resize(static_cast<std::size_t>(w.inputs()));
  w.scale.resize(w.mean.size());
  w.in.resize(w.mean.size());
  w.in_bias.resize(1);
  w.out.resize(1);
  const float share = std::clamp(alpha, kLeastAlpha, kMostAlpha) - kLeastAlpha;
  w.out_bias = std::clamp(std::log(share / (1 - share)), -kCertain, kCertain);
  return Gate(std::move(w));
}

float Gate::alpha(const GateInputs& inputs) const {
  const GateWeights& w = weights_;
  COPPICE_CHECK(static_cast<int>(inputs.embedding.size()) == w.hidden &&
                static_cast<int>(inputs.hidden.size()) == w.hidden);
  std::array<float, kMostGateUnits> units;
  std::copy(w.in_bias.begin(), w.in_bias.end(), units.begin());
  add_inputs(w, inputs.embedding, 0, units.data());
  add_inputs(w, inputs.hidden, w.hidden, units.data());
  float sum = w.out_bias;
  for (int u = 0; u < w.units; ++u) sum += w.out[u] * std::max(units[u], 0.0f);
  if (std::isnan(sum)) return 1;  // infinities of both signs: such a gate knows nothing
  return kLeastAlpha + (kMostAlpha - kLeastAlpha) / (1 + std::exp(-sum));
}

Status Gate::check(const Model& target) const {
  const ModelConfig& config = target.config();
  if (config.hidden != weights_.hidden)
    return fail(fmt::format("the gate reads states of {} values, but those of {} have {}; it was made for {}",
                            weights_.hidden, target.path(), config.hidden,
                            origin_.target.empty() ? "another model" : origin_.target));
  if (weights_.layer > config.layers)
    return fail(fmt::format("the gate reads the states at layer {}, but {} has 0 to {}", weights_.layer,
                            target.path(), config.layers));
  return {};
}

void read_embedding(const Model& target, Token token, std::span<float> out) {
  const ModelWeights& weights = target.weights();
  COPPICE_CHECK(static_cast<int>(out.size()) == target.config().hidden);
  unpack_row(weights.embedding.packed, weights.embedding_row(token), out.data());
}

}  // namespace coppice::core
