// What a draft head says along a given text.
#include <coppice/tools.h>
#include <fmt/core.h>

#include <algorithm>

#include "api/impl.h"
#include "api/npy.h"
#include "base/check.h"
#include "model/head_model.h"

namespace coppice {
namespace {

constexpr int kChunk = 64;  // rows a pass
constexpr int kMostSteps = 16;

// The target's features of every token but the last: [tokens - 1, features].
Result<std::vector<float>> features_of(const Model& model, std::span<const Token> tokens,
                                       const std::vector<int>& layers, core::CacheType cache) {
  const int count = static_cast<int>(tokens.size()) - 1;
  core::ContextOptions options;
  options.kv = {cache, 1, count, 1};
  options.max_rows = kChunk;
  options.feature_layers = layers;
  COPPICE_TRY(auto context, core::Context::make(model.impl().model, options, *model.impl().pool));
  COPPICE_TRY(const int sequence, context->cache().open());
  COPPICE_TRY_STATUS(context->cache().reserve(sequence, count));
  std::vector<float> features;
  std::vector<core::Row> rows;
  for (int first = 0; first < count; first += kChunk) {
    rows.clear();
    for (int p = first; p < std::min(count, first + kChunk); ++p)
      rows.push_back({sequence, tokens[static_cast<std::size_t>(p)], p, core::kCommitted, core::kCommitted,
                      core::kFeatures});
    COPPICE_TRY_STATUS(context->forward(rows));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto row = context->features(static_cast<int>(i));
      features.insert(features.end(), row.begin(), row.end());
    }
  }
  return features;
}

}  // namespace

Status write_head_logits(const Model& model, const std::string& head, std::span<const Token> tokens,
                         int steps, const std::string& path, const std::string& cache) {
  if (steps < 1 || steps > kMostSteps)
    return fail(fmt::format("{} steps are not possible; 1 to {} are", steps, kMostSteps));
  if (tokens.size() <= static_cast<std::size_t>(steps))
    return fail(fmt::format("a text of {} tokens is too short for {} steps; at least {} are needed",
                            tokens.size(), steps, steps + 1));
  COPPICE_TRY_STATUS(check_tokens(model, tokens));
  COPPICE_TRY(const core::CacheType type, cache_type(cache));
  COPPICE_TRY(auto file, core::gguf::File::open(head));
  COPPICE_TRY(auto loaded, core::HeadModel::load(*file, model.impl().model, *model.impl().pool));
  const auto width = static_cast<std::size_t>(loaded->config().features());
  COPPICE_TRY(const auto features, features_of(model, tokens, loaded->config().feature_layers, type));

  const std::size_t positions = tokens.size() - static_cast<std::size_t>(steps);
  core::ContextOptions options;
  options.kv = {type, 1, static_cast<int>(positions), steps};
  options.max_rows = options.max_logits = 1;
  COPPICE_TRY(auto context, core::HeadContext::make(loaded, options, *model.impl().pool));
  COPPICE_TRY(const int sequence, context->cache().open());
  COPPICE_TRY_STATUS(context->cache().reserve(sequence, static_cast<int>(positions)));
  std::vector<float> hidden;
  return write_npy(path, "<f4", positions * static_cast<std::size_t>(steps),
                   static_cast<std::size_t>(model.info().vocab), [&](const core::Append& append) -> Status {
                     for (std::size_t p = 0; p < positions; ++p) {
                       for (int step = 0; step < steps; ++step) {
                         core::HeadRow row;
                         row.position = static_cast<int>(p) + step;
                         row.row = {sequence,
                                    tokens[p + static_cast<std::size_t>(step) + 1],
                                    row.position,
                                    step == 0 ? core::kCommitted : step - 1,
                                    step < 2 ? core::kCommitted : step - 2,
                                    core::kLogits};
                         row.features = step == 0 ? features.data() + p * width : nullptr;
                         row.hidden = hidden.data();
                         COPPICE_TRY_STATUS(context->forward({&row, 1}));
                         hidden.assign(context->hidden(0).begin(), context->hidden(0).end());
                         COPPICE_TRY_STATUS(append(std::as_bytes(context->logits(0))));
                       }
                       context->cache().keep(sequence, {});
                     }
                     return {};
                   });
}

}  // namespace coppice
