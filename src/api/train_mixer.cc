// coppice train mixer: texts are replayed through the mix; what was said and drawn at every node is what the
// weights are fitted on. The text is the target's answer: it runs only where a drafter reads its states, and
// then along the whole text at once.
#include <coppice/fit.h>
#include <coppice/speculation.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>

#include "api/draft_files.h"
#include "api/impl.h"
#include "base/check.h"
#include "base/os.h"
#include "draft/mixer_fit.h"
#include "draft/ngram_corpus.h"
#include "draft/prior.h"
#include "draft/registry.h"
#include "draft/replay.h"
#include "draft/target_states.h"

namespace coppice {
namespace {

using core::CorpusText;
using Texts = std::vector<const CorpusText*>;

constexpr double kRecounted = 0.5;  // the share of texts that n-grams are counted anew on

Status check(const TrainMixerOptions& options) {
  if (options.texts.empty()) return fail("no texts to learn from; name at least one token file");
  if (!(options.held_out > 0 && options.held_out <= 0.5))
    return fail(fmt::format("held_out = {}: should be above 0 and at most 0.5", options.held_out));
  if (options.tokens < 1) return fail("tokens = 0: there is nothing to learn from nothing");
  if (options.context < 16) return fail(fmt::format("context = {}: should be 16 or more", options.context));
  return {};
}

struct Parts {
  std::vector<CorpusText> all;
  Texts counted, learned, judged;
};

Result<Parts> read_parts(const core::Tokenizer& tokenizer, const TrainMixerOptions& options) {
  Parts parts;
  for (const std::string& path : options.texts)
    COPPICE_TRY_STATUS(core::read_texts(tokenizer, path, [&](const CorpusText& text) {
      if (text.tokens.size() < text.start + 2) return;
      parts.all.push_back(text);
      const auto most = static_cast<std::size_t>(options.context);
      if (text.tokens.size() > most) parts.all.back().tokens.resize(most);
      if (text.start >= most) parts.all.pop_back();
    }));
  std::mt19937 random(options.seed);
  for (std::size_t i = parts.all.size(); i > 1; --i) std::swap(parts.all[i - 1], parts.all[random() % i]);
  const double all = static_cast<double>(parts.all.size());
  const auto judged = static_cast<std::size_t>(std::ceil(all * options.held_out));
  const auto counted = options.recount ? static_cast<std::size_t>(all * kRecounted) : 0;
  for (std::size_t i = 0; i < parts.all.size(); ++i)
    (i < judged             ? parts.judged
     : i < judged + counted ? parts.counted
                            : parts.learned)
        .push_back(&parts.all[i]);
  if (parts.learned.empty() || (options.recount && parts.counted.empty()))
    return fail(fmt::format("{} texts are too few to learn from some and judge others", parts.all.size()));
  return parts;
}

class Trainer {
 public:
  Trainer(const TrainMixerOptions& options, std::shared_ptr<const core::Tokenizer> tokenizer, Parts parts)
      : options_(options),
        tokenizer_(std::move(tokenizer)),
        parts_(std::move(parts)),
        pool_(options.threads > 0 ? options.threads : core::usable_cores()) {}

  Result<TrainMixerReport> run();

 private:
  Status make_mix();
  Result<std::shared_ptr<const core::KatzModel>> recounted(const std::string& path);
  Result<core::Sampler> sampler_of(const CorpusText& text, bool sampled) const;
  Result<core::ReplayText> replayed(const CorpusText& text);
  Status collect(bool sampled, core::Lessons& lessons);
  Status fit(TrainMixerReport& report);
  Status judge(bool sampled, const std::vector<float>& prior, const char* what, MixJudgement& out);
  Status write();
  bool go_on(const std::string& what, double fraction) {
    stopped_ = stopped_ || (options_.progress && !options_.progress(what, fraction));
    return !stopped_;
  }

  const TrainMixerOptions& options_;
  std::shared_ptr<const core::Tokenizer> tokenizer_;
  Parts parts_;
  core::ThreadPool pool_;
  std::map<std::string, std::vector<std::byte>> counts_;
  std::unique_ptr<core::Grower> grower_;
  std::unique_ptr<core::TargetStates> states_;  // null: nobody reads them
  core::Budget budget_;  // of trees along the texts: the engine's, unless told otherwise
  std::vector<float> before_, fitted_;
  bool stopped_ = false;
};

// n-grams of the file's order on other texts than those the mixer learns from.
Result<std::shared_ptr<const core::KatzModel>> Trainer::recounted(const std::string& path) {
  COPPICE_TRY(const auto file, core::KatzModel::open(path));
  core::KatzBuildOptions build;
  build.order = file->order();
  build.vocab = file->vocab();
  build.vocabulary_hash = file->vocabulary_hash();
  core::KatzBuilder builder(build);
  for (const CorpusText* text : parts_.counted) builder.add(text->tokens, text->start);
  std::vector<std::byte>& bytes = counts_[path];
  bytes = builder.to_bytes();
  return core::KatzModel::parse(bytes, path);
}

Status Trainer::make_mix() {
  core::DraftEnvironment environment;
  environment.vocabulary = &tokenizer_->vocabulary();
  environment.tokenizer = tokenizer_.get();
  environment.context = options_.context;
  add_draft_files(environment, pool_);
  if (options_.recount) environment.load_ngram = [this](const std::string& path) { return recounted(path); };
  COPPICE_TRY(const auto mix, core::parse_drafters(options_.drafters));
  if (core::wants_target(mix)) {
    COPPICE_TRY(environment.target, environment.load_model(options_.model));
  }
  COPPICE_TRY(grower_, core::make_grower(mix, environment));
  if (grower_ == nullptr)
    return fail(fmt::format("`{}` has no drafters: there is nothing to weigh", options_.drafters));
  if (!grower_->feature_layers().empty()) {
    COPPICE_TRY(states_, core::TargetStates::make(environment.target, grower_->feature_layers(),
                                                  options_.context, pool_));
  }
  const core::Sampler greedy;
  const Token any[] = {0, 0};
  COPPICE_TRY_STATUS(grower_->begin(0, any, greedy));
  before_.assign(grower_->weights(0).begin(), grower_->weights(0).end());
  grower_->end(0);
  return {};
}

// Of the draws of a text: with their noise where it is known; as greedy ones where they were or count as
// such.
Result<core::Sampler> Trainer::sampler_of(const CorpusText& text, bool sampled) const {
  return core::Sampler::make(sampled && text.keyed ? text.sampling : Sampling{}, tokenizer_->size(), {});
}

Result<core::ReplayText> Trainer::replayed(const CorpusText& text) {
  core::ReplayText replayed{text.tokens, text.start};
  if (states_) {
    COPPICE_TRY(replayed.states, states_->of(text.tokens));
  }
  return replayed;
}

// Greedy weights are learned from greedy texts, and from sampled ones where there are few of those; sampled
// ones from sampled texts.
Status Trainer::collect(bool sampled, core::Lessons& lessons) {
  std::uint64_t tokens = 0;
  const auto learn = [&](bool hot) -> Status {
    for (const CorpusText* text : parts_.learned) {
      if ((text->temperature > 0) != hot) continue;
      const double share = static_cast<double>(tokens) / static_cast<double>(options_.tokens);
      if (tokens >= options_.tokens || !go_on(sampled ? "sampled text" : "greedy text", share)) break;
      COPPICE_TRY(const core::Sampler sampler, sampler_of(*text, sampled));
      lessons.set_keyed(sampler.noisy());
      COPPICE_TRY(const core::ReplayText along, replayed(*text));
      COPPICE_TRY(const core::Replayed one, core::replay(*grower_, along, budget_, sampler));
      tokens += one.tokens;
    }
    return {};
  };
  grower_->set_listener(&lessons);
  Status done = learn(sampled);
  if (done && !sampled) done = learn(true);
  grower_->set_listener(nullptr);
  return done;
}

Status Trainer::fit(TrainMixerReport& report) {
  const core::MixerShape shape = core::Mixture::shape(grower_->features(), grower_->buckets());
  fitted_ = before_;
  for (const bool sampled : {false, true}) {
    core::Lessons lessons(grower_->features());
    COPPICE_TRY_STATUS(collect(sampled, lessons));
    (sampled ? report.sampled_lessons : report.greedy_lessons) = lessons.size();
    if (lessons.size() == 0 || stopped_) continue;
    core::FitOptions options;
    options.seed = options_.seed;
    options.progress = [&](double part) {
      return go_on(sampled ? "fitting sampled" : "fitting greedy", part);
    };
    core::Mixer mixer(shape);
    mixer.set_weights(core::fit_mixer(lessons, shape, options));
    std::copy(mixer.weights().begin(), mixer.weights().end(),
              fitted_.begin() + static_cast<std::ptrdiff_t>(sampled ? shape.weights() : 0));
    if (!lessons.any_keyed()) continue;
    report.noise = true;
    const std::vector<float> noise = core::fit_noise(lessons, mixer, options);
    std::copy(noise.begin(), noise.end(), fitted_.end() - static_cast<std::ptrdiff_t>(noise.size()));
  }
  return {};
}

Status Trainer::judge(bool sampled, const std::vector<float>& prior, const char* what, MixJudgement& out) {
  COPPICE_TRY_STATUS(grower_->set_prior(prior));
  std::array<double, 10> said{}, taken{};
  const auto see = [&](const core::TokenTree& tree, std::span<const Token> truth) {
    // The chances said at every node that the text visits.
    int node = 0;
    for (std::size_t i = 0; node != core::kNoNode && i < truth.size(); ++i) {
      for (int c = tree.first_child(node); c != core::kNoNode; c = tree.next_sibling(c)) {
        const double p = tree.score(c);
        const auto bin = static_cast<std::size_t>(std::clamp(p * 10, 0.0, 9.0));
        said[bin] += p;
        taken[bin] += tree.token(c) == truth[i];
        ++out.bins[bin].guesses;
      }
      node = tree.child(node, truth[i]);
    }
  };
  double loss = 0;
  const auto see_root = [&](const core::TokenTree& tree, std::span<const Token> truth) {
    double left = 1, right = 0;
    for (int c = tree.first_child(0); c != core::kNoNode; c = tree.next_sibling(c)) {
      left -= tree.score(c);
      if (tree.token(c) == truth[0]) right = tree.score(c);
    }
    loss -= std::log(std::max(right > 0 ? right : left, 1e-4));
  };
  std::array<core::Replayed, MixJudgement::kNodes.size()> in_trees;
  core::Replayed everywhere;
  for (const CorpusText* text : parts_.judged) {
    if ((text->temperature > 0) != sampled || (sampled && !text->keyed)) continue;
    const double part = static_cast<double>(everywhere.tokens) / static_cast<double>(options_.judged);
    if (everywhere.tokens >= options_.judged || !go_on(what, part)) break;
    COPPICE_TRY(const core::Sampler sampler, sampler_of(*text, sampled));
    COPPICE_TRY(const core::ReplayText along, replayed(*text));
    core::Budget budget = budget_;
    for (std::size_t size = 0; size < in_trees.size(); ++size) {
      budget.nodes = MixJudgement::kNodes[size];
      const bool last = size + 1 == in_trees.size();
      COPPICE_TRY(const core::Replayed one, core::replay(*grower_, along, budget, sampler,
                                                         last ? core::SeeCycle(see) : core::SeeCycle()));
      in_trees[size].add(one);
    }
    budget.nodes = core::kMostMixed;
    budget.depth = 1;
    budget.price = 0;
    COPPICE_TRY(const core::Replayed one,
                core::replay(*grower_, along, budget, sampler, see_root, core::Pace::each_token));
    everywhere.add(one);
    ++out.texts;
  }
  if (everywhere.tokens == 0) return {};
  out.tokens = everywhere.tokens;
  out.top1 = static_cast<double>(everywhere.top1) / static_cast<double>(out.tokens);
  out.log_loss = loss / static_cast<double>(out.tokens);
  for (std::size_t size = 0; size < in_trees.size(); ++size)
    out.tokens_per_pass[size] =
        static_cast<double>(in_trees[size].tokens) / static_cast<double>(in_trees[size].passes);
  double all = 0, distance = 0;
  for (std::size_t b = 0; b < out.bins.size(); ++b) {
    if (out.bins[b].guesses == 0) continue;
    const double n = static_cast<double>(out.bins[b].guesses);
    out.bins[b].chance = said[b] / n;
    out.bins[b].taken = taken[b] / n;
    all += n;
    distance += std::abs(said[b] - taken[b]);
  }
  out.calibration = all > 0 ? distance / all : 0;
  return {};
}

Status Trainer::write() {
  core::MixerPrior prior;
  if (std::filesystem::exists(options_.output)) {
    COPPICE_TRY(prior, core::load_prior(options_.output));
  }
  core::put_section(prior, core::make_section(*grower_, fitted_));
  const std::string text = core::to_string(prior);
  return core::write_file(options_.output, [&](const core::Append& append) {
    return append(std::as_bytes(std::span(text.data(), text.size())));
  });
}

Result<TrainMixerReport> Trainer::run() {
  TrainMixerReport report;
  report.texts = parts_.all.size();
  const Speculation usual;
  budget_.price = usual.price;
  budget_.pass_price = usual.pass_price;
  COPPICE_TRY_STATUS(make_mix());
  COPPICE_TRY_STATUS(judge(false, before_, "greedy, before", report.greedy_before));
  COPPICE_TRY_STATUS(judge(true, before_, "sampled, before", report.sampled_before));
  COPPICE_TRY_STATUS(fit(report));
  if (!stopped_) COPPICE_TRY_STATUS(judge(false, fitted_, "greedy, fitted", report.greedy_after));
  if (!stopped_) COPPICE_TRY_STATUS(judge(true, fitted_, "sampled, fitted", report.sampled_after));
  report.stopped = stopped_;
  if (!stopped_) COPPICE_TRY_STATUS(write());
  return report;
}

}  // namespace

Result<TrainMixerReport> train_mixer(const TrainMixerOptions& options) {
  COPPICE_TRY_STATUS(check(options));
  if (std::filesystem::exists(options.output)) COPPICE_TRY_STATUS(core::load_prior(options.output));
  COPPICE_TRY(const auto file, core::gguf::File::open(options.model));
  COPPICE_TRY(const Tokenizer tokenizer, make_tokenizer(*file));
  COPPICE_TRY(Parts parts, read_parts(*tokenizer.impl().tokenizer, options));
  return Trainer(options, tokenizer.impl().tokenizer, std::move(parts)).run();
}

}  // namespace coppice
