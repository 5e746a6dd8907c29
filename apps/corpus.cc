// coppice corpus: text from a model itself, to train drafts on.
#include <coppice/coppice.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "answer.h"
#include "command.h"
#include "corpus_flags.h"
#include "options.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

struct Corpus {
  ModelFlags model;
  CorpusOptions options;
  std::string temperatures;
  std::string show;
  int samples = 0;
  bool json = false;
};

Result<int> run_show(const Corpus& flags) {
  auto text = describe_corpus(flags.show);
  if (!text) return tl::unexpected(text.error());
  if (flags.json) {
    say("{}\n", *text);
    return kOk;
  }
  const ordered_json corpus = ordered_json::parse(*text);
  const auto number = [&](const char* name) { return corpus[name].get<std::uint64_t>(); };
  say("{}: {} texts, {} generated tokens after {} of prompts, {} shards, {:.1f} MB\n", flags.show,
      number("texts"), number("tokens"), number("prompt_tokens"), number("shards"),
      corpus["bytes"].get<double>() / 1e6);
  say("of {}, top {} log-probabilities, features of layers {}\n", corpus["target"].get<std::string>(),
      number("top_k"), corpus["feature_layers"].dump());
  say("{} ended by themselves, {} were cut where they repeated themselves\n", number("ended_by_themselves"),
      number("cut_repetition"));
  for (const char* by : {"by_kind", "by_temperature"}) {
    const ordered_json counts = corpus.value(by, ordered_json::object());
    for (const auto& [name, count] : counts.items())
      say("{:<16} {:>9} texts {:>12} tokens\n",
          std::string(by) == "by_kind" ? printable(name) : "T = " + name, count["texts"].get<std::uint64_t>(),
          count["tokens"].get<std::uint64_t>());
  }
  if (flags.samples == 0 || number("texts") == 0) return kOk;
  auto path = flags.model.resolve();
  if (!path) return tl::unexpected(path.error());
  auto tokenizer = Tokenizer::load(*path);
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  const std::uint64_t step =
      std::max<std::uint64_t>(1, number("texts") / static_cast<std::uint64_t>(flags.samples));
  for (std::uint64_t i = 0, shown = 0;
       i < number("texts") && shown < static_cast<std::uint64_t>(flags.samples); i += step, ++shown) {
    auto sample = corpus_sample(flags.show, i);
    if (!sample) return tl::unexpected(sample.error());
    for (const std::vector<Token>* part : {&sample->prompt, &sample->generated})
      for (const Token token : *part)
        if (token >= tokenizer->size()) return fail("the corpus is of a model with a larger vocabulary");
    say("\n---- text {} (job {}, {}, T = {}, seed {})\n{}{}|{}{}\n", i, sample->job, sample->kind,
        sample->temperature, sample->seed, dim(), tokenizer->decode(sample->prompt, true), undim(),
        tokenizer->decode(sample->generated, true));
  }
  return kOk;
}

Result<int> run_corpus(Corpus flags) {
  if (!flags.show.empty()) return run_show(flags);
  if (flags.options.folder.empty()) return fail("say --out FOLDER, or --show FOLDER to look at one");
  if (!flags.temperatures.empty()) {
    auto temperatures = parse_temperatures(flags.temperatures);
    if (!temperatures) return tl::unexpected(temperatures.error());
    flags.options.temperatures = *temperatures;
  }
  auto model = flags.model.load();
  if (!model) return tl::unexpected(model.error());
  CorpusReporter reporter;
  flags.options.progress = [&reporter](const CorpusProgress& progress) { return reporter(progress); };
  catch_interrupts();
  catch_termination();
  auto report = make_corpus(*model, flags.options);
  clear_progress();
  if (!report) return tl::unexpected(report.error());
  if (report->left_out > 0)
    note("{} prompts are too long for a context of {} tokens and were left out, the first: {}\n",
         report->left_out, flags.options.context, report->first_left_out);
  const CorpusProgress& done = report->progress;
  say("{}: {} of {} texts, {} generated tokens in {} shards; this run {} tokens in {}, {:.0f} tok/s\n",
      flags.options.folder, done.texts, done.all_texts, done.tokens, done.shards, done.run_tokens,
      duration(done.seconds), done.tokens_per_second());
  if (report->stopped) note("[stopped; the same command goes on]\n");
  return report->stopped ? kInterrupted : kOk;
}

}  // namespace

void add_corpus(CLI::App& app, const Choose& choose) {
  auto flags = std::make_shared<Corpus>();
  CorpusOptions& options = flags->options;
  CLI::App* command = app.add_subcommand(
      "corpus", "text from a model itself, with what it said about every token, to train drafts on");
  flags->model.add(*command);
  flags->model.add_chat(*command);
  const auto option = [&](const char* name, auto& value, const char* help) {
    return command->add_option(name, value, help)->capture_default_str();
  };
  command->add_option("-o,--out", options.folder,
                      "the corpus: a folder; the same command goes on where it stopped");
  command->add_option(
      "--prompts", options.prompts,
      ".jsonl, repeatable: {\"prompt\"} as it stands, {\"user\"} or {\"messages\"} in the chat "
      "template; \"kind\" says what it is");
  option("--self", options.self, "so many conversations the model writes itself, the instruction first")
      ->check(not_negative);
  command->add_option(
      "--score", options.score,
      ".jsonl, repeatable: {\"ids\": [...], \"start\": n}; nothing is generated, the records of "
      "texts that are there");
  option("--tokens", options.tokens,
         "begin no new text when there are so many generated tokens; 0: all texts")
      ->check(not_negative);
  command->add_option("--temperatures", flags->temperatures,
                      "TEMPERATURE:SHARE,... of the texts (default: 0:0.5,0.8:0.25,1:0.25)");
  option("--sampling-top-k", options.sampling_top_k, "where the temperature is above 0; 0: off");
  option("--seed", options.seed, "the same seed gives the same texts")->check(not_negative);
  option("-n,--max-tokens", options.max_tokens, "of an answer");
  option("--instruction-tokens", options.instruction_tokens, "of an instruction that the model writes");
  option("-c,--context", options.context, "tokens of prompt and answer; longer prompts are left out");
  option("--top-k", options.top_k, "log-probabilities stored a token, an even number; 0: none");
  command
      ->add_option("--features", options.features, "layers whose residual stream is stored, such as 10,20,30")
      ->delimiter(',');
  option("--slots", options.slots, "texts at once");
  option("--rows", options.rows, "of a pass");
  option("--shard-tokens", options.shard_tokens, "a shard is closed when it has so many");
  command->add_option("--show", flags->show, "look at a corpus instead");
  command->add_option("--samples", flags->samples, "with --show: so many texts, spread over the corpus")
      ->check(at_least(0));
  command->add_flag("--json", flags->json, "with --show: as JSON");
  command->callback([flags, choose] { choose([flags] { return run_corpus(*flags); }); });
}

}  // namespace coppice::app
