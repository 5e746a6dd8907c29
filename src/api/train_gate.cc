// coppice train gate: along texts of the target, what each variant of the draft would have guessed; from that
// the cycles behind every decision, and from those a gate (policy/gate_fit.h), judged on texts it has not
// seen against every constant width.
#include <coppice/fit_policy.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>

#include "api/impl.h"
#include "base/check.h"
#include "base/os.h"
#include "draft/ngram_corpus.h"
#include "draft/target_states.h"
#include "gguf/split.h"
#include "model/slim.h"
#include "policy/gate.h"
#include "policy/gate_cycles.h"
#include "policy/gate_fit.h"

namespace coppice {
namespace {

using core::CorpusText;
using core::CycleSum;

constexpr double kChecked = 0.15;  // of the texts learned from, by which the epoch is chosen

Status check(const TrainGateOptions& options) {
  const auto wrong = [](const char* field, double value, const char* right) {
    return fail(fmt::format("{} = {}: should be {}", field, value, right));
  };
  if (options.texts.empty()) return fail("no texts to learn from; name at least one token file or corpus");
  if (!(options.compute > 0 && options.compute < 1))
    return wrong("compute", options.compute, "above 0 and below 1");
  if (options.units < 1 || options.units > core::kMostGateUnits)
    return wrong("units", options.units, "1 to 128");
  if (options.every < 1) return wrong("every", options.every, "1 or more");
  if (options.depth < 1 || options.depth > core::kMaxTreeDepth)
    return wrong("depth", options.depth, "1 to 64");
  if (!(options.reject >= 0 && options.reject <= 1)) return wrong("reject", options.reject, "0 to 1");
  if (!(options.exit >= 0 && options.exit <= 1.5)) return wrong("exit", options.exit, "0 to 1.5");
  if (options.epochs < 1) return wrong("epochs", options.epochs, "1 or more");
  if (!(options.held_out > 0 && options.held_out <= 0.5))
    return wrong("held_out", options.held_out, "above 0 and at most 0.5");
  if (options.tokens < 1) return fail("tokens = 0: there is nothing to learn from nothing");
  if (options.judged < 1) return fail("judged = 0: there is nothing to judge by");
  if (options.context < 16) return wrong("context", options.context, "16 or more");
  return {};
}

struct Texts {
  std::size_t all = 0;
  std::vector<CorpusText> judged, checked, learned;
};

std::uint64_t tokens_of(const std::vector<CorpusText>& texts) {
  std::uint64_t tokens = 0;
  for (const CorpusText& text : texts) tokens += text.tokens.size() - text.start;
  return tokens;
}

// The first of `texts`, until there are so many tokens.
void take(std::vector<CorpusText>& texts, std::vector<CorpusText>& out, std::size_t most_texts,
          std::uint64_t most_tokens) {
  std::uint64_t tokens = 0;
  while (most_texts-- > 0 && !texts.empty() && tokens < most_tokens) {
    tokens += texts.back().tokens.size() - texts.back().start;
    out.push_back(std::move(texts.back()));
    texts.pop_back();
  }
}

Result<Texts> read_texts(const core::Tokenizer& tokenizer, const TrainGateOptions& options) {
  std::vector<CorpusText> all;
  const auto most = static_cast<std::size_t>(options.context);
  for (const std::string& path : options.texts)
    COPPICE_TRY_STATUS(core::read_texts(tokenizer, path, [&](const CorpusText& text) {
      // A gate looks two tokens back.
      const std::size_t start = std::max<std::size_t>(text.start, 2);
      if (std::min(text.tokens.size(), most) < start + 2) return;
      all.push_back(text);
      all.back().start = start;
      if (text.tokens.size() > most) all.back().tokens.resize(most);
    }));
  std::mt19937 random(options.seed);
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random() % i]);
  Texts texts;
  texts.all = all.size();
  const double count = static_cast<double>(all.size());
  const auto held = static_cast<std::size_t>(std::ceil(count * options.held_out));
  std::vector<CorpusText> kept(std::make_move_iterator(all.begin()),
                               std::make_move_iterator(all.begin() + static_cast<std::ptrdiff_t>(held)));
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(held));
  take(kept, texts.judged, held, options.judged);
  const auto checked = static_cast<std::size_t>(std::ceil(static_cast<double>(all.size()) * kChecked));
  const auto share = [&](double part) {
    return static_cast<std::uint64_t>(static_cast<double>(options.tokens) * part);
  };
  take(all, texts.checked, checked, share(kChecked));
  take(all, texts.learned, all.size(), share(1 - kChecked));
  if (texts.learned.empty())
    return fail(fmt::format("{} texts are too few to learn from some and judge others", texts.all));
  return texts;
}

// A text, and all that is known along it. Row r of `states` belongs to the token before the last one when
// generated token r is to be drawn.
struct Recorded {
  std::span<const Token> tokens;
  std::size_t start = 0;
  core::GuessedText guesses;
  std::vector<float> states;  // [generated tokens, hidden]
};

class GateTrainer {
 public:
  GateTrainer(const TrainGateOptions& options, std::shared_ptr<const core::Model> target,
              std::shared_ptr<const core::Model> draft, core::ThreadPool& pool)
      : options_(options), target_(std::move(target)), draft_(std::move(draft)), pool_(pool) {
    rules_.exit = static_cast<float>(options.exit);
    rules_.every = options.every;
    rules_.depth = options.depth;
    rules_.reject = static_cast<float>(options.reject);
    choices_ = core::gate_choices(*draft_, rules_);
    constants_ = core::all_variants(*draft_);
    const int layers = target_->config().layers;
    layer_ = options.layer < 0 ? layers * 2 / 3 : options.layer;
    hidden_ = static_cast<std::size_t>(target_->config().hidden);
  }

  Result<TrainGateReport> run(const Texts& texts);

 private:
  Result<Recorded> record(const CorpusText& text);
  Result<core::GateExamples> examples(const std::vector<CorpusText>& texts, std::vector<Recorded>* kept);
  core::GateInputs inputs_at(const Recorded& text, std::size_t at);
  CycleSum walk(const Recorded& text, const core::Gate& gate, std::vector<double>& chosen);
  void settle(const std::vector<Recorded>& texts, core::GateWeights& weights);
  Result<core::Gate> fit(const Texts& texts, TrainGateReport& report);
  Status judge(const Texts& texts, const core::Gate& gate, TrainGateReport& report);
  void resample(const std::vector<std::vector<CycleSum>>& by_text, TrainGateReport& report) const;
  Result<core::GateOrigin> origin(const TrainGateReport& report) const;
  bool go_on(const std::string& what, double fraction) {
    stopped_ = stopped_ || (options_.progress && !options_.progress(what, fraction));
    return !stopped_;
  }
  bool read_on() {
    return go_on("reading along", static_cast<double>(read_) / static_cast<double>(all_tokens_));
  }
  double constant_accepted(const std::vector<CycleSum>& sums) const {
    const std::span<const CycleSum> constants(sums.data(), constants_.size());
    return sums.back().tokens / core::cycles_of_constants(constants, sums.back().work) - 1;
  }

  const TrainGateOptions& options_;
  std::shared_ptr<const core::Model> target_, draft_;
  core::ThreadPool& pool_;
  core::GateRules rules_;
  std::vector<core::GateChoice> choices_, constants_;
  int layer_ = 0;
  std::size_t hidden_ = 0;
  std::unique_ptr<core::TargetStates> states_;
  std::unique_ptr<core::DraftAlong> along_;
  std::vector<float> embedding_;
  std::uint64_t read_ = 0, all_tokens_ = 1;
  bool stopped_ = false;
};

Result<Recorded> GateTrainer::record(const CorpusText& text) {
  Recorded recorded;
  recorded.tokens = text.tokens;
  recorded.start = text.start;
  COPPICE_TRY(const core::Sampler sampler,
              core::Sampler::make(text.keyed ? text.sampling : Sampling{}, target_->config().vocab, {}));
  recorded.guesses.by_variant.resize(constants_.size());
  for (std::size_t v = 0; v < constants_.size(); ++v)
    COPPICE_TRY_STATUS(along_->guesses(static_cast<int>(v), text.tokens, text.start, sampler,
                                       recorded.guesses.by_variant[v]));
  COPPICE_TRY(const core::Features features, states_->of(text.tokens));
  const std::size_t tokens = recorded.guesses.tokens();
  recorded.states.resize(tokens * hidden_);
  for (std::size_t r = 0; r < tokens; ++r)
    std::copy_n(features.rows[text.start + r - 2], hidden_, &recorded.states[r * hidden_]);
  read_ += tokens;
  return recorded;
}

core::GateInputs GateTrainer::inputs_at(const Recorded& text, std::size_t at) {
  embedding_.resize(hidden_);
  core::read_embedding(*target_, text.tokens[text.start + at - 1], embedding_);
  return {embedding_, {&text.states[at * hidden_], hidden_}};
}

// A policy decides where a cycle begins, which may be anywhere: twice as many windows as it has decisions.
Result<core::GateExamples> GateTrainer::examples(const std::vector<CorpusText>& texts,
                                                 std::vector<Recorded>* kept) {
  core::GateExamples examples;
  examples.inputs = static_cast<int>(2 * hidden_);
  examples.choices = static_cast<int>(choices_.size());
  const core::GateChoice& whole = constants_[static_cast<std::size_t>(draft_->whole())];
  const auto stride = static_cast<std::size_t>(std::max(1, rules_.every / 2));
  for (const CorpusText& text : texts) {
    if (!read_on()) break;
    COPPICE_TRY(Recorded recorded, record(text));
    for (std::size_t at = 0; at + 1 < recorded.guesses.tokens(); at += stride) {
      const core::GateInputs inputs = inputs_at(recorded, at);
      examples.x.insert(examples.x.end(), inputs.embedding.begin(), inputs.embedding.end());
      examples.x.insert(examples.x.end(), inputs.hidden.begin(), inputs.hidden.end());
      for (const core::GateChoice& choice : choices_) {
        const CycleSum sum = core::window_at(recorded.guesses, at, choice, rules_);
        examples.cycles.push_back(static_cast<float>(sum.cycles));
        examples.work.push_back(static_cast<float>(sum.work));
      }
      examples.whole.push_back(static_cast<float>(core::window_at(recorded.guesses, at, whole, rules_).work));
    }
    if (kept != nullptr) kept->push_back(std::move(recorded));
  }
  return examples;
}

CycleSum GateTrainer::walk(const Recorded& text, const core::Gate& gate, std::vector<double>& chosen) {
  return core::walk(
      text.guesses,
      [&](std::size_t at) -> const core::GateChoice& {
        const float alpha = gate.alpha(inputs_at(text, at));
        const int c = core::choice_of(*draft_, rules_, choices_, alpha);
        const core::GateChoice& choice = choices_[static_cast<std::size_t>(c)];
        ++chosen[static_cast<std::size_t>(choice.variant)];
        return choice;
      },
      rules_);
}

// Moves the last bias so that walks spend what is wanted: they decide where cycles begin, windows anywhere.
void GateTrainer::settle(const std::vector<Recorded>& texts, core::GateWeights& weights) {
  const core::GateChoice& whole = constants_[static_cast<std::size_t>(draft_->whole())];
  double allowed = 0;
  for (const Recorded& text : texts)
    allowed += options_.compute *
               core::walk(
                   text.guesses, [&](std::size_t) -> const core::GateChoice& { return whole; }, rules_)
                   .work;
  const float before = weights.out_bias;
  std::vector<double> chosen(constants_.size());
  float least = -2, most = 2;
  for (int i = 0; i < 12; ++i) {
    const float middle = (least + most) / 2;
    weights.out_bias = before + middle;
    const core::Gate gate(weights);
    double work = 0;
    for (const Recorded& text : texts) work += walk(text, gate, chosen).work;
    (work <= allowed ? least : most) = middle;
  }
  weights.out_bias = before + least;
}

Result<core::Gate> GateTrainer::fit(const Texts& texts, TrainGateReport& report) {
  std::vector<Recorded> kept;
  COPPICE_TRY(core::GateExamples learned, examples(texts.learned, nullptr));
  COPPICE_TRY(core::GateExamples checked, examples(texts.checked, &kept));
  if (stopped_) return core::Gate::constant(1, static_cast<int>(hidden_), layer_);
  report.decisions = learned.size();
  core::GateRounding rounding;
  for (const core::GateChoice& choice : choices_) rounding.alphas.push_back(choice.alpha);
  rounding.choose = [this](float alpha) { return core::choice_of(*draft_, rules_, choices_, alpha); };
  core::GateFitOptions options;
  options.layer = layer_;
  options.units = options_.units;
  options.compute = options_.compute;
  options.epochs = options_.epochs;
  options.seed = options_.seed;
  options.progress = [this](double part) { return go_on("fitting", part); };
  core::GateFit fit = core::fit_gate(std::move(learned), std::move(checked), rounding, options);
  report.price = fit.price;
  settle(kept, fit.weights);
  return core::Gate(std::move(fit.weights));
}

Status GateTrainer::judge(const Texts& texts, const core::Gate& gate, TrainGateReport& report) {
  const std::size_t all = constants_.size();
  std::vector<std::vector<CycleSum>> by_text;  // [text][constants, then the gate]
  std::vector<CycleSum> sums(all + 1);
  std::vector<double> chosen(all);
  for (const CorpusText& text : texts.judged) {
    if (!read_on()) return {};
    COPPICE_TRY(const Recorded recorded, record(text));
    std::vector<CycleSum> here;
    for (const core::GateChoice& constant : constants_)
      here.push_back(core::walk(
          recorded.guesses, [&](std::size_t) -> const core::GateChoice& { return constant; }, rules_));
    here.push_back(walk(recorded, gate, chosen));
    for (std::size_t i = 0; i <= all; ++i) sums[i].add(here[i]);
    by_text.push_back(std::move(here));
  }
  const double whole = sums[static_cast<std::size_t>(draft_->whole())].work;
  double decisions = 0;
  for (const double count : chosen) decisions += count;
  for (std::size_t i = 0; i < all; ++i) {
    const core::GateChoice& constant = constants_[i];
    report.constants.push_back({constant.name, constant.alpha, constant.cost, sums[i].work / whole,
                                sums[i].accepted(), chosen[i] / decisions});
  }
  report.whole = report.constants[static_cast<std::size_t>(draft_->whole())];
  report.gate = {"gate", 0, 0, sums[all].work / whole, sums[all].accepted(), 1};
  report.constant_accepted = constant_accepted(sums);
  report.gain = report.gate.accepted - report.constant_accepted;
  resample(by_text, report);
  return {};
}

// Bootstrap over texts.
void GateTrainer::resample(const std::vector<std::vector<CycleSum>>& by_text, TrainGateReport& report) const {
  constexpr std::size_t kResamples = 1000;
  std::mt19937 random(options_.seed);
  std::vector<double> gains;
  for (std::size_t k = 0; k < kResamples; ++k) {
    std::vector<CycleSum> sums(constants_.size() + 1);
    for (std::size_t t = 0; t < by_text.size(); ++t) {
      const std::vector<CycleSum>& drawn = by_text[random() % by_text.size()];
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(drawn[i]);
    }
    gains.push_back(sums.back().accepted() - constant_accepted(sums));
  }
  std::sort(gains.begin(), gains.end());
  report.gain_low = gains[kResamples / 40];
  report.gain_high = gains[kResamples - 1 - kResamples / 40];
  report.beats = report.gain_low > 0;
}

Result<std::string> hash_of_file(const std::string& path) {
  COPPICE_TRY(const core::Hash128 hash, core::gguf::hash_of_file(path));
  return core::to_hex(hash);
}

Result<core::GateOrigin> GateTrainer::origin(const TrainGateReport& report) const {
  core::GateOrigin origin;
  origin.target = std::filesystem::path(options_.target).filename().string();
  origin.draft = std::filesystem::path(options_.draft).filename().string();
  COPPICE_TRY(origin.target_hash, hash_of_file(options_.target));
  COPPICE_TRY(origin.draft_hash, hash_of_file(options_.draft));
  origin.data = fmt::format(
      "{} decisions in {} tokens of {} texts; held out {} tokens: accepted {:.4f} at compute {:.3f}, "
      "constants {:.4f}, the whole draft {:.4f}",
      report.decisions, report.learned, report.texts, report.judged, report.gate.accepted,
      report.gate.compute, report.constant_accepted, report.whole.accepted);
  origin.command = options_.command;
  return origin;
}

// The best constant that some alpha means and that spends no more than is wanted, or the cheapest.
double best_constant(const std::vector<GateJudgement>& constants, std::span<const core::GateChoice> choices,
                     double compute) {
  const core::GateChoice* best = nullptr;
  const auto of = [&](const core::GateChoice& choice) -> const GateJudgement& {
    return constants[static_cast<std::size_t>(choice.variant)];
  };
  for (const core::GateChoice& choice : choices) {
    const bool fits = of(choice).compute <= compute;
    if (best == nullptr || (fits ? of(*best).compute > compute || of(choice).accepted > of(*best).accepted
                                 : of(choice).compute < of(*best).compute))
      best = &choice;
  }
  return best->alpha;
}

Result<TrainGateReport> GateTrainer::run(const Texts& texts) {
  TrainGateReport report;
  report.texts = texts.all;
  report.layer = layer_;
  report.learned = tokens_of(texts.learned) + tokens_of(texts.checked);
  report.judged = tokens_of(texts.judged);
  all_tokens_ = report.learned + report.judged;
  COPPICE_TRY(states_, core::TargetStates::make(target_, {&layer_, 1}, options_.context, pool_));
  COPPICE_TRY(along_, core::DraftAlong::make(draft_, options_.context, pool_));
  COPPICE_TRY(const core::Gate fitted, fit(texts, report));
  if (!stopped_) {
    // Judged as it will be read again.
    const std::vector<std::byte> bytes = core::gate_bytes(fitted);
    COPPICE_TRY(const auto file, core::gguf::File::parse(bytes, options_.output));
    COPPICE_TRY(const core::Gate gate, core::Gate::parse(*file));
    COPPICE_TRY_STATUS(judge(texts, gate, report));
  }
  report.stopped = stopped_;
  if (stopped_) return report;
  report.constant_alpha = best_constant(report.constants, choices_, options_.compute);
  COPPICE_TRY(core::GateOrigin from, origin(report));
  const core::Gate constant =
      core::Gate::constant(static_cast<float>(report.constant_alpha), static_cast<int>(hidden_), layer_);
  const core::Gate& written = report.beats ? fitted : constant;
  COPPICE_TRY_STATUS(core::write_gate(options_.output, core::Gate(written.weights(), std::move(from))));
  return report;
}

}  // namespace

Result<TrainGateReport> train_gate(const TrainGateOptions& options) {
  COPPICE_TRY_STATUS(check(options));
  core::ThreadPool pool(options.threads > 0 ? options.threads : core::usable_cores());
  COPPICE_TRY(const auto target_file, core::gguf::File::open(options.target));
  COPPICE_TRY(const auto draft_file, core::gguf::File::open(options.draft));
  COPPICE_TRY(const Tokenizer tokenizer, make_tokenizer(*target_file));
  COPPICE_TRY(const auto vocabulary, core::Vocabulary::read(*draft_file));
  if (Status same = same_vocabulary(tokenizer.impl().tokenizer->vocabulary(), vocabulary); !same)
    return fail("the draft " + options.draft + " cannot guess for this model: " + same.error().message);
  COPPICE_TRY(auto draft, core::Model::load(draft_file, pool));
  if (draft->variants().size() < 2)
    return fail(options.draft + " has one width only, so there is nothing for a gate to choose; " +
                "`coppice train draft` makes slimmable drafts");
  COPPICE_TRY(auto target, core::Model::load(target_file, pool));
  if (options.layer > target->config().layers)
    return fail(
        fmt::format("layer = {}: {} has 0 to {}", options.layer, options.target, target->config().layers));
  COPPICE_TRY(const Texts texts, read_texts(*tokenizer.impl().tokenizer, options));
  return GateTrainer(options, std::move(target), std::move(draft), pool).run(texts);
}

}  // namespace coppice
