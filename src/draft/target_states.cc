#include "draft/target_states.h"

#include <algorithm>

#include "base/check.h"

namespace coppice::core {
namespace {

constexpr int kPassRows = 256;

}  // namespace

Result<std::unique_ptr<TargetStates>> TargetStates::make(std::shared_ptr<const Model> target,
                                                         std::span<const int> layers, int positions,
                                                         ThreadPool& pool) {
  const ModelConfig& config = target->config();
  if (config.positions == Positions::learned && positions > config.context_length)
    return fail("the model has learned positions up to " + std::to_string(config.context_length) +
                "; texts of " + std::to_string(positions) + " tokens are too long for it");
  ContextOptions options;
  options.kv.positions = positions;
  options.kv.slots = 1;
  options.max_rows = kPassRows;
  options.max_logits = 1;
  options.feature_layers.assign(layers.begin(), layers.end());
  COPPICE_TRY(auto context, Context::make(std::move(target), options, pool));
  std::unique_ptr<TargetStates> states(new TargetStates(std::move(context)));
  COPPICE_TRY(states->sequence_, states->context_->cache().open());
  return states;
}

Result<Features> TargetStates::of(std::span<const Token> text) {
  const std::size_t count = text.empty() ? 0 : text.size() - 1;
  const std::vector<int>& layers = context_->options().feature_layers;
  const int hidden = context_->model().config().hidden;
  const std::size_t width = layers.size() * static_cast<std::size_t>(hidden);
  context_->cache().rewind(sequence_, 0);
  COPPICE_TRY_STATUS(context_->cache().reserve(sequence_, static_cast<int>(count)));
  states_.resize(count * width);
  for (std::size_t at = 0; at < count; at += pass_.size()) {
    pass_.clear();
    for (std::size_t p = at; p < std::min<std::size_t>(count, at + kPassRows); ++p)
      pass_.push_back({sequence_, text[p], static_cast<int>(p), kCommitted, kCommitted, kFeatures});
    COPPICE_TRY_STATUS(context_->forward(pass_));
    for (std::size_t i = 0; i < pass_.size(); ++i)
      std::copy_n(context_->features(static_cast<int>(i)).begin(), width,
                  states_.begin() + static_cast<std::ptrdiff_t>((at + i) * width));
  }
  rows_.resize(count);
  for (std::size_t p = 0; p < count; ++p) rows_[p] = &states_[p * width];
  return Features{0, rows_, layers, hidden};
}

}  // namespace coppice::core
