// coppice train mixer, ngram: what goes with a model and is counted or fitted on text that it wrote.
#include <coppice/fit.h>

#include <memory>

#include "corpus_flags.h"
#include "files.h"
#include "fit.h"
#include "options.h"
#include "plot.h"
#include "terminal.h"

namespace coppice::app {
namespace {

struct Mixer {
  ModelFlags model;
  TrainMixerOptions options;
  std::vector<std::string> corpora;
};

std::string row(const char* what, const MixJudgement& mix) {
  return fmt::format(
      "  {:8} log-loss {:.3f}  calibration {:.3f}  first guess {:.3f}  tokens a pass {:.2f} / {:.2f} / "
      "{:.2f}\n",
      what, mix.log_loss, mix.calibration, mix.top1, mix.tokens_per_pass[0], mix.tokens_per_pass[1],
      mix.tokens_per_pass[2]);
}

void show(const char* title, const MixJudgement& before, const MixJudgement& after) {
  if (after.tokens == 0) return;
  say("{}, {} held-out texts, {} tokens (trees of {} / {} / {} nodes)\n", title, after.texts, after.tokens,
      MixJudgement::kNodes[0], MixJudgement::kNodes[1], MixJudgement::kNodes[2]);
  write_out(row("before", before));
  write_out(row("fitted", after));
  std::string said = "  said    ", taken = "  taken   ";
  for (const MixJudgement::Bin& bin : after.bins) {
    said += bin.guesses == 0 ? "    -" : fmt::format(" {:.2f}", bin.chance);
    taken += bin.guesses == 0 ? "    -" : fmt::format(" {:.2f}", bin.taken);
  }
  say("{}\n{}\n", said, taken);
}

Result<int> run_mixer(Mixer flags) {
  TrainMixerOptions& options = flags.options;
  options.texts.insert(options.texts.end(), flags.corpora.begin(), flags.corpora.end());
  if (options.texts.empty()) return fail("say what to learn from: --texts FILE or --corpus FOLDER");
  if (Status writable = check_output(options.output); !writable) return tl::unexpected(writable.error());
  auto path = flags.model.resolve();
  if (!path) return tl::unexpected(path.error());
  options.model = *path;
  options.threads = flags.model.threads;
  std::vector<std::string> read = options.texts;
  read.push_back(*path);
  if (Status kept = keep_inputs(options.output, read); !kept) return tl::unexpected(kept.error());
  catch_interrupts();
  options.progress = [](const std::string& what, double fraction) {
    show_progress(what, fraction);
    return !interrupted();
  };
  auto report = train_mixer(options);
  clear_progress();
  if (!report) return tl::unexpected(report.error());
  if (report->stopped) return kInterrupted;
  say("{}: `{}`, fitted on {} greedy and {} sampled tokens of {} texts{}\n", options.output, options.drafters,
      report->greedy_lessons, report->sampled_lessons, report->texts,
      report->noise ? "" : "; of no draw is the noise known");
  show("greedy", report->greedy_before, report->greedy_after);
  show("sampled", report->sampled_before, report->sampled_after);
  return kOk;
}

struct Ngram {
  ModelFlags model;
  TrainNgramOptions options;
  std::vector<std::string> corpora;
  std::string plot, csv;
  std::string from_model;  // that writes the texts itself, into `sampled.folder`
  CorpusOptions sampled;
  std::string temperatures = "0.5:0.5,1:0.5";
};

std::string counts_text(const std::vector<int>& counts) {
  std::string text;
  for (const int count : counts) text += (text.empty() ? "" : ",") + std::to_string(count);
  return text;
}

void show(const NgramTrial& trial, const char* mark) {
  say("{:5} {:>14} {:>10} {:>9.2f} {:>14.3f} {:>12.3f} {:>13.3f}  {}\n", trial.order,
      counts_text(trial.min_count), trial.tokens, static_cast<double>(trial.bytes) / 1e6,
      trial.tokens_per_pass, trial.top1, trial.alone, mark);
}

// Lets the model write until there is enough. kInterrupted: the same command goes on.
Result<int> sample(Ngram& flags) {
  CorpusOptions& sampled = flags.sampled;
  auto temperatures = parse_temperatures(flags.temperatures);
  if (!temperatures) return tl::unexpected(temperatures.error());
  sampled.temperatures = *temperatures;
  sampled.seed = flags.options.seed;
  sampled.top_k = 0;
  auto model = flags.model.load();
  if (!model) return tl::unexpected(model.error());
  CorpusReporter reporter;
  sampled.progress = [&reporter](const CorpusProgress& progress) { return reporter(progress); };
  catch_termination();
  auto report = fill_corpus(*model, sampled);
  clear_progress();
  if (!report) return tl::unexpected(report.error());
  const CorpusProgress& done = report->progress;
  note("{}: {} texts, {} tokens; this run {} tokens in {}, {:.0f} tok/s\n", sampled.folder, done.texts,
       done.tokens, done.run_tokens, duration(done.seconds), done.tokens_per_second());
  if (report->stopped) note("[stopped; the same command goes on]\n");
  flags.options.provenance =
      fmt::format("{} tokens sampled from {} at {}", done.tokens,
                  flags.from_model.substr(flags.from_model.find_last_of('/') + 1), flags.temperatures);
  return report->stopped ? kInterrupted : kOk;
}

std::string growth_csv(const std::vector<NgramTrial>& growth) {
  std::string text = "tokens,bytes,tokens_per_pass,tokens_per_pass_with_lookup,first_guess_with_lookup\n";
  for (const NgramTrial& trial : growth)
    text += fmt::format("{},{},{:.4f},{:.4f},{:.4f}\n", trial.tokens, trial.bytes, trial.alone,
                        trial.tokens_per_pass, trial.top1);
  return text;
}

std::string growth_svg(const std::vector<NgramTrial>& growth, int nodes) {
  Plot plot;
  plot.title = "What more text is worth";
  plot.x_label = "tokens counted";
  plot.y_label = fmt::format("tokens a pass, {} nodes of n-grams alone", nodes);
  plot.log_x = true;
  for (const NgramTrial& trial : growth)
    plot.points.emplace_back(static_cast<double>(trial.tokens), trial.alone);
  return to_svg(plot);
}

Result<int> run_ngram(Ngram flags) {
  TrainNgramOptions& options = flags.options;
  options.texts.insert(options.texts.end(), flags.corpora.begin(), flags.corpora.end());
  const bool samples = !flags.from_model.empty();
  if (samples != options.texts.empty())
    return fail("say what to count: files, or --corpus FOLDER, or --from-model DRAFT.gguf, which writes it");
  if (samples) {
    flags.model.path = flags.from_model;
    if (flags.sampled.folder.empty()) flags.sampled.folder = options.output + ".texts";
    if (flags.plot.empty()) flags.plot = options.output + ".svg";
    if (flags.csv.empty()) flags.csv = options.output + ".csv";
    options.texts = {flags.sampled.folder};
  }
  auto path = flags.model.resolve();
  if (!path) return tl::unexpected(path.error());
  options.model = *path;
  std::vector<std::string> read = samples ? flags.sampled.prompts : options.texts;
  read.push_back(*path);
  for (const std::string& output : {options.output, flags.plot, flags.csv}) {
    if (output.empty()) continue;
    if (Status writable = check_output(output); !writable) return tl::unexpected(writable.error());
    if (Status kept = keep_inputs(output, read); !kept) return tl::unexpected(kept.error());
  }
  catch_interrupts();
  if (samples)
    if (auto sampled = sample(flags); !sampled || *sampled != kOk) return sampled;
  options.progress = [](const std::string& what, double fraction) {
    show_progress(what, fraction);
    return !interrupted();
  };
  auto report = train_ngram(options);
  clear_progress();
  if (!report) return tl::unexpected(report.error());
  if (report->stopped) return kInterrupted;
  say("order   least counts     tokens        MB  tokens a pass  first guess  n-gram alone   (trees of {} "
      "nodes, "
      "held-out text; lookup alone {:.3f})\n",
      options.nodes, report->without);
  for (std::size_t t = 0; t < report->trials.size(); ++t)
    show(report->trials[t], t == report->chosen ? "chosen" : "");
  say("with more text\n");
  for (const NgramTrial& trial : report->growth) show(trial, "");
  say("{}: {} tokens of {} texts, {:.2f} MB\n", options.output, report->tokens, report->texts,
      static_cast<double>(report->bytes) / 1e6);
  const std::pair<std::string, std::string> files[] = {
      {flags.csv, growth_csv(report->growth)}, {flags.plot, growth_svg(report->growth, options.nodes)}};
  for (const auto& [file, text] : files) {
    const Status written = file.empty() ? Status() : write_text(file, text);
    if (!written) return tl::unexpected(written.error());
  }
  return kOk;
}

void add_sampling(CLI::App& command, Ngram& flags) {
  CorpusOptions& sampled = flags.sampled;
  sampled.tokens = 30'000'000;
  sampled.slots = 256;
  sampled.rows = 384;
  sampled.shard_tokens = 300'000;
  command.add_option(
      "--from-model", flags.from_model,
      "count what this model (a draft) writes, from its template's bare user turn or its begin "
      "token; the same command goes on where it stopped");
  const auto option = [&](const char* name, auto& value, const char* help) {
    return command.add_option(name, value, help)->group("With --from-model")->capture_default_str();
  };
  option("--sample", sampled.tokens, "tokens")->check(not_negative);
  option("--prompts", sampled.prompts,
         "begin with these instead, again and again: .jsonl as corpus takes them");
  option("--temperatures", flags.temperatures, "TEMPERATURE:SHARE,... of the texts");
  option("--sampling-top-k", sampled.sampling_top_k, "where the temperature is above 0; 0: off");
  option("--max-tokens", sampled.max_tokens, "of an answer");
  option("-c,--context", sampled.context, "tokens of prompt and answer");
  option("--slots", sampled.slots, "texts at once");
  option("--rows", sampled.rows, "of a pass");
  option("--sampled", sampled.folder, "the corpus they go into (default: the n-gram file's name and .texts)");
}

}  // namespace

void add_mixer_training(CLI::App& train, const Choose& choose) {
  auto flags = std::make_shared<Mixer>();
  TrainMixerOptions& options = flags->options;
  CLI::App* command =
      train.add_subcommand("mixer", "fit what a mix of drafters knows before it has seen anything");
  flags->model.add(*command);
  command->add_option("--texts", options.texts, "token files: .jsonl (\"ids\", \"start\"), .npy, .bin");
  command->add_option("--corpus", flags->corpora, "folders that `coppice corpus` wrote");
  command->add_option("--drafters", options.drafters, "the mix, as generate takes it")->required();
  command->add_option("-o,--out", options.output, "the .mixer file; its other mixes are kept")->required();
  command->add_flag(
      "--recount", options.recount,
      "the mix's n-grams were counted on these texts: fit with n-grams counted on half of them");
  command->add_option("--tokens", options.tokens, "to learn from, greedy and sampled each")
      ->capture_default_str();
  command->add_option("--held-out", options.held_out, "share of the texts that is judged only")
      ->capture_default_str();
  command->add_option("--judged", options.judged, "tokens to judge, greedy and sampled each")
      ->capture_default_str();
  command->add_option("--context", options.context, "positions; longer texts are cut")->check(at_least(16));
  command->add_option("--seed", options.seed, "of the order of the texts")->check(not_negative);
  command->callback([flags, choose] { choose([flags] { return run_mixer(*flags); }); });
}

void add_ngram_training(CLI::App& train, const Choose& choose) {
  auto flags = std::make_shared<Ngram>();
  TrainNgramOptions& options = flags->options;
  CLI::App* command = train.add_subcommand("ngram", "count n-grams of the order and pruning that pay");
  flags->model.add(*command);
  command->add_option("inputs,--texts", options.texts,
                      ".jsonl (\"ids\", \"start\", or \"text\"), .npy, .bin, .txt");
  command->add_option("--corpus", flags->corpora, "folders that `coppice corpus` wrote");
  command->add_option("-o,--out", options.output, "the n-gram file")->required();
  command->add_option("--orders", options.orders, "longest contexts to try")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--least-counts", options.least_counts,
                   "counts to try: continuations seen less often are dropped")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--give-up", options.give_up, "share of the tokens a pass that a smaller file may cost")
      ->capture_default_str();
  command->add_option("--held-out", options.held_out, "share of the texts to judge by")
      ->capture_default_str();
  command->add_option("--judged", options.judged, "tokens of them")->capture_default_str();
  command->add_option("--nodes", options.nodes, "of the trees")->capture_default_str();
  command->add_option("--plot", flags->plot, "SVG: tokens a pass by tokens counted");
  command->add_option("--csv", flags->csv, "the same as numbers");
  command->add_option("--seed", options.seed, "of the choice of held-out texts, and of sampling")
      ->check(not_negative);
  add_sampling(*command, *flags);
  command->callback([flags, choose] { choose([flags] { return run_ngram(*flags); }); });
}

}  // namespace coppice::app
