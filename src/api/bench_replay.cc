// Real passes in the order and sizes of recorded cycles.
#include <fmt/core.h>

#include <algorithm>

#include "api/impl.h"
#include "api/measure.h"
#include "base/check.h"
#include "base/os.h"

namespace coppice {
namespace {

constexpr int kMostRows = 256;
constexpr int kDeepest = 9;  // levels of a tree of kMostRows

// One model's passes at a fixed context.
class Passes {
 public:
  Status start(std::shared_ptr<const core::Model> model, core::CacheType cache, int context,
               core::ThreadPool& pool) {
    vocab_ = model->config().vocab;
    position_ = context;
    core::ContextOptions options;
    options.kv = {cache, 1, context + 1, kMostRows};
    options.max_rows = kMostRows;
    options.max_logits = kMostRows;
    COPPICE_TRY(context_, core::Context::make(std::move(model), options, pool));
    COPPICE_TRY(sequence_, context_->cache().open());
    COPPICE_TRY_STATUS(context_->cache().reserve(sequence_, context));
    for (int at = 0; at < context;) {
      rows_.clear();
      for (; at < context && static_cast<int>(rows_.size()) < kMostRows; ++at) {
        core::Row row;
        row.sequence = sequence_;
        row.token = some_token(at, vocab_);
        row.position = at;
        rows_.push_back(row);
      }
      COPPICE_TRY_STATUS(context_->forward(rows_));
    }
    return run(1);  // warm
  }
  Status run(int rows) {
    context_->cache().rewind(sequence_, position_);
    COPPICE_TRY_STATUS(context_->cache().reserve(sequence_, position_ + 1));
    make_tree_rows(rows_, sequence_, rows, position_, vocab_);
    return context_->forward(rows_);
  }

 private:
  std::unique_ptr<core::Context> context_;
  std::vector<core::Row> rows_;
  int sequence_ = 0, position_ = 0, vocab_ = 0;
};

Status check(const ReplayOptions& options, const core::ModelConfig& target, const core::ModelConfig& draft) {
  const int context[] = {options.context};
  COPPICE_TRY_STATUS(check_range("context", context, 1, 1 << 20));
  for (const core::ModelConfig* config : {&target, &draft}) {
    if (config->positions == core::Positions::learned && options.context + kDeepest > config->context_length)
      return fail(fmt::format("context = {}: a model has learned positions up to {}", options.context,
                              config->context_length));
  }
  bool any = false;
  for (const auto& answer : options.answers) {
    for (const ReplayCycle& cycle : answer) {
      any = true;
      const bool passes = cycle.draft_passes >= 0 && cycle.draft_rows >= cycle.draft_passes &&
                          (cycle.draft_passes > 0 || cycle.draft_rows == 0);
      if (cycle.tokens < 1 || cycle.guesses < 0 || cycle.guesses >= kMostRows || !passes)
        return fail(
            fmt::format("a cycle of {} tokens, {} guesses, {} draft passes and {} rows of them is none",
                        cycle.tokens, cycle.guesses, cycle.draft_passes, cycle.draft_rows));
    }
  }
  return any ? Status() : fail("there are no cycles to replay");
}

class Replay {
 public:
  Replay(const Model& target, const ReplayOptions& options) : model_(target), options_(options) {}

  Result<ReplayReport> run() {
    core::ThreadPool& pool = *model_.impl().pool;
    COPPICE_TRY(const auto file, core::gguf::File::open(options_.draft));
    COPPICE_TRY(const auto draft, core::Model::load(file, pool));
    COPPICE_TRY_STATUS(check(options_, model_.impl().model->config(), draft->config()));
    COPPICE_TRY(const core::CacheType cache, cache_type(options_.cache));
    COPPICE_TRY_STATUS(target_.start(model_.impl().model, cache, options_.context, pool));
    COPPICE_TRY_STATUS(draft_.start(draft, cache, options_.context, pool));
    report_.draft.path = options_.draft;
    for (const core::gguf::Tensor& tensor : file->tensors())
      report_.draft.parameters += static_cast<std::uint64_t>(tensor.values());
    report_.draft.file_bytes = file->bytes();
    std::vector<double> ratios;
    for (std::size_t i = 0; i < options_.answers.size(); ++i) {
      const double fraction = static_cast<double>(i) / static_cast<double>(options_.answers.size());
      if (options_.progress && !options_.progress(fraction, "replay")) return fail("stopped");
      if (options_.answers[i].empty()) continue;
      double plain = 0, guessed = 0;
      // Who begins alternates.
      for (const bool with : {i % 2 == 1, i % 2 == 0}) {
        const double start = core::seconds();
        COPPICE_TRY_STATUS(with ? cycles(options_.answers[i]) : alone(options_.answers[i]));
        (with ? guessed : plain) = core::seconds() - start;
      }
      report_.plain_seconds += plain;
      report_.seconds += guessed;
      ratios.push_back(plain / std::max(guessed, 1e-9));
    }
    report_.speed_up = spread_of(std::move(ratios));
    return report_;
  }

 private:
  Status alone(std::span<const ReplayCycle> answer) {
    for (const ReplayCycle& cycle : answer) {
      for (int t = 0; t < cycle.tokens; ++t) COPPICE_TRY_STATUS(target_.run(1));
    }
    return {};
  }

  Status cycles(std::span<const ReplayCycle> answer) {
    for (const ReplayCycle& cycle : answer) {
      const double start = core::seconds();
      for (int p = 0; p < cycle.draft_passes; ++p) {
        // As even as they can be.
        const int rows = cycle.draft_rows / cycle.draft_passes + (p < cycle.draft_rows % cycle.draft_passes);
        // A prompt's worth goes in chunks.
        for (int left = rows; left > 0; left -= kMostRows)
          COPPICE_TRY_STATUS(draft_.run(std::min(left, kMostRows)));
      }
      report_.draft_seconds += core::seconds() - start;
      COPPICE_TRY_STATUS(target_.run(cycle.guesses + 1));
      report_.tokens += static_cast<std::uint64_t>(cycle.tokens);
      report_.draft_passes += static_cast<std::uint64_t>(cycle.draft_passes);
      ++report_.cycles;
    }
    return {};
  }

  const Model& model_;
  const ReplayOptions& options_;
  Passes target_, draft_;
  ReplayReport report_;
};

}  // namespace

Result<ReplayReport> bench_replay(const Model& target, const ReplayOptions& options) {
  return Replay(target, options).run();
}

}  // namespace coppice
