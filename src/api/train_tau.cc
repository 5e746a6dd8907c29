// coppice train tau: for each prompt how confident the draft is of it, and which of plain and speculative
// decoding was truly faster, measured in turn; then the threshold that loses least time.
#include <coppice/engine.h>
#include <coppice/fit_policy.h>
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "api/draft_files.h"
#include "api/impl.h"
#include "api/measure.h"
#include "base/check.h"
#include "base/os.h"
#include "draft/registry.h"
#include "policy/adaptive_options.h"
#include "policy/threshold.h"

namespace coppice {
namespace {

Status check(const TrainTauOptions& options) {
  if (options.prompts.size() < 2)
    return fail(fmt::format("{} prompts: a threshold lies between two", options.prompts.size()));
  if (options.tokens < 2) return fail(fmt::format("tokens = {}: should be 2 or more", options.tokens));
  if (options.rounds < 1) return fail(fmt::format("rounds = {}: should be 1 or more", options.rounds));
  if (options.analyse.empty()) return fail("analyse names no number of tokens; 128 is usual");
  for (const int last : options.analyse)
    if (last < 1 || last > core::AdaptiveOptions::kMostTokens)
      return fail(fmt::format("analyse = {}: should be 1 to {}", last, core::AdaptiveOptions::kMostTokens));
  for (std::size_t i = 0; i < options.prompts.size(); ++i) {
    const std::size_t size = options.prompts[i].size();
    if (size < 2)
      return fail(fmt::format("prompt {} has {} tokens; nobody can be surprised by it", i + 1, size));
    if (static_cast<int>(size) + options.tokens > options.context)
      return fail(fmt::format("prompt {} has {} tokens; with {} of answer the context of {} cannot hold it",
                              i + 1, size, options.tokens, options.context));
  }
  return {};
}

class TauTrainer {
 public:
  TauTrainer(const Model& model, const TrainTauOptions& options) : model_(model), options_(options) {}

  Result<TrainTauReport> run() {
    TrainTauReport report;
    report.prompts.resize(options_.prompts.size());
    COPPICE_TRY_STATUS(weigh(report));
    if (!stopped_) COPPICE_TRY_STATUS(measure(report));
    report.stopped = stopped_;
    if (stopped_) return report;
    choose(report);
    judge(report);
    if (!options_.output.empty()) COPPICE_TRY_STATUS(write(report));
    return report;
  }

 private:
  bool go_on(const std::string& what, double fraction) {
    stopped_ = stopped_ || (options_.progress && !options_.progress(what, fraction));
    return !stopped_;
  }
  Status weigh(TrainTauReport& report);
  Status weigh(core::Grower& grower, std::size_t i, TauPrompt& prompt);
  Result<Engine> engine(bool drafts) const;
  Status measure(TrainTauReport& report);
  std::vector<core::ThresholdCase> cases(const TrainTauReport& report, std::size_t way) const;
  void choose(TrainTauReport& report);
  void judge(TrainTauReport& report) const;
  Status write(const TrainTauReport& report) const;

  const Model& model_;
  const TrainTauOptions& options_;
  std::vector<std::vector<double>> confidences_;  // [of options.analyse][prompt]
  bool stopped_ = false;
};

// As the engine asks for the policy's analyser.
Status TauTrainer::weigh(TrainTauReport& report) {
  core::DraftEnvironment environment;
  const Model::Impl& target = model_.impl();
  environment.vocabulary = &target.tokenizer.impl().tokenizer->vocabulary();
  environment.tokenizer = target.tokenizer.impl().tokenizer.get();
  environment.target = target.model;
  environment.context = options_.context;
  add_draft_files(environment, *target.pool);
  COPPICE_TRY(const auto mix, core::parse_drafters(options_.speculation.drafters));
  COPPICE_TRY(const auto grower, core::make_grower(mix, environment));
  if (!grower) return fail("`none`: nobody is there to say how confident it is");
  confidences_.resize(options_.analyse.size());
  for (std::size_t i = 0; i < options_.prompts.size(); ++i) {
    if (!go_on("reading prompts", static_cast<double>(i) / static_cast<double>(options_.prompts.size())))
      break;
    COPPICE_TRY_STATUS(weigh(*grower, i, report.prompts[i]));
  }
  return {};
}

Status TauTrainer::weigh(core::Grower& grower, std::size_t i, TauPrompt& prompt) {
  using Clock = std::chrono::steady_clock;
  const core::Sampler greedy;
  const std::vector<Token>& text = options_.prompts[i];
  for (std::size_t way = 0; way < options_.analyse.size(); ++way) {
    COPPICE_TRY_STATUS(grower.begin(0, text, greedy));
    const auto start = Clock::now();
    const auto surprise = grower.surprise(0, text, options_.analyse[way], ~core::SourceMask{0});
    // A later way may find some of it read.
    if (way == 0) prompt.reading = std::chrono::duration<double>(Clock::now() - start).count();
    grower.end(0);
    if (!surprise)
      return fail(
          fmt::format("`{}`: nobody there can say how confident it is of prompt {}; the analyser asks "
                      "a draft model, model(FILE) or stage(FILE, ...)",
                      options_.speculation.drafters, i + 1));
    confidences_[way].push_back(core::prompt_confidence(*surprise, model_.info().vocab));
  }
  return {};
}

Result<Engine> TauTrainer::engine(bool drafts) const {
  EngineOptions options;
  options.context = options_.context;
  if (drafts)
    options.speculation = options_.speculation;
  else
    options.speculation.nodes = 0;
  return Engine::make(model_, options);
}

// Prompt after prompt in each round, so that nobody finds what the last round left in a cache.
Status TauTrainer::measure(TrainTauReport& report) {
  COPPICE_TRY(Engine plain, engine(false));
  COPPICE_TRY(Engine drafted, engine(true));
  const std::size_t count = options_.prompts.size();
  std::vector<std::vector<double>> seconds(2 * count);
  const std::size_t all = static_cast<std::size_t>(options_.rounds) * count;
  for (std::size_t n = 0; n < all; ++n) {
    if (!go_on("decoding both ways", static_cast<double>(n) / static_cast<double>(all))) return {};
    const std::size_t i = n % count;
    Request request;
    request.prompt = options_.prompts[i];
    request.sampling.max_tokens = options_.tokens;
    for (const bool first : {true, false}) {
      const bool drafts = first == ((n + n / count) % 2 == 0);  // who begins changes
      COPPICE_TRY(const Generation answer, (drafts ? drafted : plain).generate(request));
      if (answer.stop == StopReason::failed) return fail(answer.error);
      report.prompts[i].tokens = answer.stats.tokens;
      seconds[2 * i + (drafts ? 1 : 0)].push_back(answer.stats.decode_seconds);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    report.prompts[i].plain = spread_of(std::move(seconds[2 * i])).median;
    report.prompts[i].drafted = spread_of(std::move(seconds[2 * i + 1])).median;
  }
  return {};
}

std::vector<core::ThresholdCase> TauTrainer::cases(const TrainTauReport& report, std::size_t way) const {
  std::vector<core::ThresholdCase> cases;
  for (std::size_t i = 0; i < report.prompts.size(); ++i) {
    const TauPrompt& prompt = report.prompts[i];
    cases.push_back({confidences_[way][i], prompt.plain + prompt.reading, prompt.drafted});
  }
  return cases;
}

// The threshold that serves prompts best which it was not fitted on, or the better constant where none beats
// it there: a threshold then costs no more than either.
void TauTrainer::choose(TrainTauReport& report) {
  for (const TauPrompt& prompt : report.prompts) {
    report.never += prompt.plain;
    report.always += prompt.drafted;
    report.best += std::min(prompt.plain, prompt.drafted);
  }
  std::size_t chosen = 0;
  for (std::size_t way = 0; way < options_.analyse.size(); ++way) {
    const double others = core::left_out_cost(cases(report, way));
    if (way == 0 || others < report.by_others) chosen = way, report.by_others = others;
  }
  report.analyse = options_.analyse[chosen];
  for (std::size_t i = 0; i < report.prompts.size(); ++i)
    report.prompts[i].confidence = confidences_[chosen][i];
  report.constant = report.by_others >= std::min(report.never, report.always);
  report.tau = !report.constant                ? core::fit_threshold(cases(report, chosen))
               : report.always <= report.never ? 0.0
                                               : 1.0;
}

void TauTrainer::judge(TrainTauReport& report) const {
  for (const TauPrompt& prompt : report.prompts) {
    const bool drafts = prompt.confidence >= report.tau;
    ++report.confusion[drafts ? 1 : 0][prompt.drafted < prompt.plain ? 1 : 0];
    report.by_tau += drafts ? prompt.drafted : prompt.plain + (report.constant ? 0 : prompt.reading);
  }
}

Status TauTrainer::write(const TrainTauReport& report) const {
  std::string text = "# Thresholds of the policy `adaptive`; read by from=FILE.\n";
  std::string_view remark = options_.remark;
  while (!remark.empty()) {
    const std::size_t end = std::min(remark.find('\n'), remark.size());
    text += fmt::format("# {}\n", remark.substr(0, end));
    remark.remove_prefix(std::min(end + 1, remark.size()));
  }
  text += fmt::format(
      "# {} prompts, {} tokens each: {:.3f} s by tau, {:.3f} s always plain, {:.3f} s always drafting, "
      "{:.3f} s at best.\n",
      report.prompts.size(), options_.tokens, report.by_tau, report.never, report.always, report.best);
  if (report.constant) text += "# No threshold was better than that on prompts it was not fitted on.\n";
  text += report.tau > 0 ? fmt::format("tau = {:.4f}\n", report.tau) : "tau = off\n";
  text += fmt::format("analyse = {}\n", report.analyse);
  return core::write_file(options_.output, [&](const core::Append& append) {
    return append(std::as_bytes(std::span(text.data(), text.size())));
  });
}

}  // namespace

Result<TrainTauReport> train_tau(const Model& model, const TrainTauOptions& options) {
  COPPICE_TRY_STATUS(check(options));
  return TauTrainer(model, options).run();
}

}  // namespace coppice
