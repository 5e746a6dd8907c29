#include "draft/draft_along.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "model/slim.h"

namespace coppice::core {
namespace {

constexpr int kPassRows = 128;

}  // namespace

DraftAlong::DraftAlong(std::unique_ptr<Context> context)
    : context_(std::move(context)), scratch_(context_->model().config().vocab) {}

Result<std::unique_ptr<DraftAlong>> DraftAlong::make(std::shared_ptr<const Model> draft, int positions,
                                                     ThreadPool& pool) {
  const ModelConfig& config = draft->config();
  if (config.positions == Positions::learned && positions > config.context_length)
    return fail(fmt::format("{} has learned positions up to {}; texts of {} tokens are too long for it",
                            draft->path(), config.context_length, positions));
  ContextOptions options;
  options.kv.positions = positions;
  options.kv.slots = 1;
  options.max_rows = kPassRows;
  options.max_logits = kPassRows;
  COPPICE_TRY(auto context, Context::make(std::move(draft), options, pool));
  std::unique_ptr<DraftAlong> along(new DraftAlong(std::move(context)));
  COPPICE_TRY(along->sequence_, along->context_->cache().open());
  return along;
}

Status DraftAlong::guesses(int variant, std::span<const Token> text, std::size_t start,
                           const Sampler& sampler, std::vector<Guess>& out) {
  COPPICE_CHECK(start >= 1 && text.size() >= 2);
  COPPICE_CHECK(variant < static_cast<int>(context_->model().variants().size()));
  out.clear();
  const std::size_t end = text.size() - 1, first = start - 1;
  context_->set_variant(variant);
  context_->cache().rewind(sequence_, 0);
  COPPICE_TRY_STATUS(context_->cache().reserve(sequence_, static_cast<int>(end)));
  for (std::size_t at = 0; at < end; at += pass_.size()) {
    pass_.clear();
    for (std::size_t p = at; p < std::min<std::size_t>(end, at + kPassRows); ++p)
      pass_.push_back(
          {sequence_, text[p], static_cast<int>(p), kCommitted, kCommitted, p >= first ? kLogits : kNothing});
    COPPICE_TRY_STATUS(context_->forward(pass_));
    for (std::size_t p = std::max(at, first); p < at + pass_.size(); ++p) {
      const int row = static_cast<int>(p - at);
      const LogitRow logits{context_->logits(row), context_->maxima(row)};
      Ranked best;
      const int count = sampler.rank(logits, {text.first(p + 1), {}}, scratch_, {&best, 1});
      out.push_back(count == 0 ? Guess{} : Guess{std::exp(best.logprob), best.token == text[p + 1]});
    }
  }
  return {};
}

}  // namespace coppice::core
