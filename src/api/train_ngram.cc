// coppice train ngram: counts the same texts with several orders and prunings, replays held-out text through
// each beside lookup, and keeps the smallest file that is about as good as the best.
#include <coppice/fit.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "api/impl.h"
#include "base/check.h"
#include "base/os.h"
#include "draft/lookup_drafter.h"
#include "draft/ngram_corpus.h"
#include "draft/ngram_drafter.h"
#include "draft/prior.h"
#include "draft/replay.h"

namespace coppice {
namespace {

using core::CorpusText;

constexpr int kRemembered = 8192;  // tokens of a text, by lookup

Status check(const TrainNgramOptions& options) {
  if (options.texts.empty()) return fail("no texts to count; name at least one text or token file");
  if (options.orders.empty() || options.least_counts.empty())
    return fail("orders and least_counts: at least one of each is needed");
  for (const int order : options.orders)
    if (order < 1 || order > core::kMaxNgramContext)
      return fail(fmt::format("order {} is out of range: the longest context can have 1 to {} tokens", order,
                              core::kMaxNgramContext));
  for (const int least : options.least_counts)
    if (least < 1) return fail(fmt::format("least_counts: {} should be 1 or more", least));
  if (!(options.held_out > 0 && options.held_out <= 0.5))
    return fail(fmt::format("held_out = {}: should be above 0 and at most 0.5", options.held_out));
  if (!(options.give_up >= 0 && options.give_up < 1))
    return fail(fmt::format("give_up = {}: should be at least 0 and below 1", options.give_up));
  if (options.nodes < 1 || options.nodes >= core::kMaxTreeNodes)
    return fail(fmt::format("nodes = {}: should be 1 to {}", options.nodes, core::kMaxTreeNodes - 1));
  return {};
}

class Trainer {
 public:
  Trainer(const TrainNgramOptions& options, std::shared_ptr<const core::Tokenizer> tokenizer)
      : options_(options), tokenizer_(std::move(tokenizer)) {}

  Result<TrainNgramReport> run();

 private:
  Status read();
  core::KatzBuildOptions build_options(int order, int least) const;
  Result<NgramTrial> judge(const core::KatzBuildOptions& build, std::size_t texts);
  Result<core::Replayed> replay(std::shared_ptr<const core::KatzModel> model, bool lookup);
  Status write(const core::KatzBuildOptions& build, TrainNgramReport& report);
  bool go_on(const std::string& what) {
    stopped_ = stopped_ || (options_.progress && !options_.progress(what, static_cast<double>(done_) / all_));
    ++done_;
    return !stopped_;
  }

  const TrainNgramOptions& options_;
  std::shared_ptr<const core::Tokenizer> tokenizer_;
  std::vector<CorpusText> texts_;  // in an order that the seed gives; the first `held_` are judged
  std::size_t held_ = 0;
  int done_ = 0, all_ = 1;  // trials
  bool stopped_ = false;
};

Status Trainer::read() {
  for (const std::string& path : options_.texts)
    COPPICE_TRY_STATUS(
        core::read_texts(*tokenizer_, path, [&](const CorpusText& text) { texts_.push_back(text); }));
  std::mt19937 random(options_.seed);
  for (std::size_t i = texts_.size(); i > 1; --i) std::swap(texts_[i - 1], texts_[random() % i]);
  held_ = static_cast<std::size_t>(std::ceil(static_cast<double>(texts_.size()) * options_.held_out));
  if (held_ >= texts_.size())
    return fail(fmt::format("{} texts are too few to count some and judge by others", texts_.size()));
  return {};
}

core::KatzBuildOptions Trainer::build_options(int order, int least) const {
  core::KatzBuildOptions build;
  build.order = order;
  build.vocab = tokenizer_->size();
  build.vocabulary_hash = core::vocabulary_hash(tokenizer_->vocabulary().tokens);
  for (int length = 0; length <= order; ++length)
    build.min_count.push_back(length >= 3 ? least : length == 2 ? std::max(least - 1, 1) : 1);
  build.provenance = options_.provenance;
  if (!build.provenance.empty()) return build;
  for (const std::string& path : options_.texts) {
    const std::size_t end = path.find_last_not_of('/');
    const std::string name = path.substr(0, end + 1);
    build.provenance += (build.provenance.empty() ? "" : ", ") + name.substr(name.find_last_of('/') + 1);
  }
  return build;
}

Result<core::Replayed> Trainer::replay(std::shared_ptr<const core::KatzModel> model, bool lookup) {
  std::vector<std::unique_ptr<core::Drafter>> drafters;
  if (lookup) drafters.push_back(std::make_unique<core::LookupDrafter>(1, kRemembered));
  if (model != nullptr) drafters.push_back(std::make_unique<core::NgramDrafter>(std::move(model)));
  core::Grower grower(std::move(drafters), core::Grower::Options{});
  (void)core::apply_prior(core::builtin_prior(), grower);
  core::Budget budget;
  budget.nodes = options_.nodes;
  core::Replayed sum;
  for (std::size_t i = 0; i < held_ && sum.tokens < options_.judged; ++i) {
    const CorpusText& text = texts_[i];
    COPPICE_TRY(const core::Sampler sampler,
                core::Sampler::make(text.keyed ? text.sampling : Sampling{}, tokenizer_->size(), {}));
    COPPICE_TRY(const core::Replayed one, core::replay(grower, {text.tokens, text.start}, budget, sampler));
    sum.add(one);
  }
  if (sum.passes == 0) return fail("the held-out texts have no tokens to judge by");
  return sum;
}

// Counts the first `texts` of those not held out.
Result<NgramTrial> Trainer::judge(const core::KatzBuildOptions& build, std::size_t texts) {
  core::KatzBuilder builder(build);
  for (std::size_t i = held_; i < held_ + texts; ++i) builder.add(texts_[i].tokens, texts_[i].start);
  const std::vector<std::byte> bytes = builder.to_bytes();
  COPPICE_TRY(auto model, core::KatzModel::parse(bytes, "counted"));
  COPPICE_TRY(const core::Replayed alone, replay(model, false));
  COPPICE_TRY(const core::Replayed sum, replay(std::move(model), true));
  const double passes = static_cast<double>(sum.passes);
  return NgramTrial{build.order,
                    build.min_count,
                    builder.tokens(),
                    bytes.size(),
                    static_cast<double>(sum.tokens) / passes,
                    static_cast<double>(sum.top1) / passes,
                    static_cast<double>(alone.tokens) / static_cast<double>(alone.passes)};
}

Status Trainer::write(const core::KatzBuildOptions& build, TrainNgramReport& report) {
  core::KatzBuilder builder(build);
  for (const CorpusText& text : texts_) builder.add(text.tokens, text.start);
  report.texts = texts_.size();
  report.tokens = builder.tokens();
  const std::vector<std::byte> bytes = builder.to_bytes();
  report.bytes = bytes.size();
  return core::write_file(options_.output, [&](const core::Append& append) { return append(bytes); });
}

Result<TrainNgramReport> Trainer::run() {
  TrainNgramReport report;
  COPPICE_TRY_STATUS(read());
  const std::size_t counted = texts_.size() - held_;
  constexpr std::array<std::size_t, 4> kParts = {16, 8, 4, 2};
  all_ = static_cast<int>(options_.orders.size() * options_.least_counts.size() + kParts.size()) + 1;
  COPPICE_TRY(const core::Replayed alone, replay(nullptr, true));
  report.without = static_cast<double>(alone.tokens) / static_cast<double>(alone.passes);
  for (const int order : options_.orders)
    for (const int least : options_.least_counts) {
      if (!go_on(fmt::format("order {}, counts from {}", order, least))) break;
      COPPICE_TRY(NgramTrial trial, judge(build_options(order, least), counted));
      report.trials.push_back(std::move(trial));
    }
  report.stopped = stopped_;
  if (stopped_) return report;
  double best = 0;
  for (const NgramTrial& trial : report.trials) best = std::max(best, trial.tokens_per_pass);
  const auto good = [&](const NgramTrial& trial) {
    return trial.tokens_per_pass >= best * (1 - options_.give_up);
  };
  for (std::size_t t = 0; t < report.trials.size(); ++t) {
    const NgramTrial& now = report.trials[report.chosen];
    if (good(report.trials[t]) && (!good(now) || report.trials[t].bytes < now.bytes)) report.chosen = t;
  }
  const NgramTrial& chosen = report.trials[report.chosen];
  core::KatzBuildOptions build = build_options(chosen.order, 1);
  build.min_count = chosen.min_count;
  for (const std::size_t part : kParts) {
    if (!go_on(fmt::format("1/{} of the texts", part))) break;
    COPPICE_TRY(NgramTrial trial, judge(build, std::max<std::size_t>(counted / part, 1)));
    report.growth.push_back(std::move(trial));
  }
  report.growth.push_back(chosen);
  if (go_on("all texts")) COPPICE_TRY_STATUS(write(build, report));
  report.stopped = stopped_;
  return report;
}

}  // namespace

Result<TrainNgramReport> train_ngram(const TrainNgramOptions& options) {
  COPPICE_TRY_STATUS(check(options));
  COPPICE_TRY(const auto file, core::gguf::File::open(options.model));
  COPPICE_TRY(const Tokenizer tokenizer, make_tokenizer(*file));
  return Trainer(options, tokenizer.impl().tokenizer).run();
}

}  // namespace coppice
