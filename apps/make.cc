// coppice ngram build, slice: drafts for people with no trained one.
#include <coppice/coppice.h>

#include <memory>

#include "command.h"
#include "files.h"
#include "options.h"
#include "terminal.h"

namespace coppice::app {
namespace {

struct Ngram {
  ModelFlags model;
  NgramBuildOptions options;
};

Result<int> run_ngram(Ngram flags) {
  if (Status writable = check_output(flags.options.output); !writable)
    return tl::unexpected(writable.error());
  auto path = flags.model.resolve();
  if (!path) return tl::unexpected(path.error());
  std::vector<std::string> read = flags.options.inputs;
  read.push_back(*path);
  if (Status kept = keep_inputs(flags.options.output, read); !kept) return tl::unexpected(kept.error());
  auto tokenizer = Tokenizer::load(*path);
  if (!tokenizer) return tl::unexpected(tokenizer.error());
  flags.options.progress = [](std::uint64_t tokens) {
    show_count("counting", fmt::format("{} tokens", tokens));
  };
  auto report = build_ngram(*tokenizer, flags.options);
  clear_progress();
  if (!report) return tl::unexpected(report.error());
  say("{}: {} tokens of {} texts, {:.2f} MB\n", flags.options.output, report->tokens, report->texts,
      static_cast<double>(report->bytes) / 1e6);
  return kOk;
}

Result<int> run_slice(SliceOptions options) {
  auto input = find_model_file(options.input);
  if (!input) return tl::unexpected(input.error());
  options.input = *input;
  if (Status writable = check_output(options.output); !writable) return tl::unexpected(writable.error());
  if (Status kept = keep_inputs(options.output, {options.input, options.text}); !kept)
    return tl::unexpected(kept.error());
  options.progress = [](double fraction) { show_progress("measuring layers", fraction); };
  auto report = slice(options);
  clear_progress();
  if (!report) return tl::unexpected(report.error());
  std::string kept;
  for (int layer : report->kept) kept += fmt::format("{}{}", kept.empty() ? "" : " ", layer);
  say("{}: {} layers ({}), head of {} tokens, {:.1f} MB\n", options.output, report->kept.size(), kept,
      report->vocabulary, static_cast<double>(report->bytes) / 1e6);
  for (std::size_t layer = 0; layer < report->importance.size(); ++layer) {
    say("layer {:>3}  importance {:.4f}\n", layer, report->importance[layer]);
  }
  return kOk;
}

}  // namespace

void add_ngram(CLI::App& app, const Choose& choose) {
  CLI::App* ngram = app.add_subcommand("ngram", "n-gram models of tokens");
  ngram->require_subcommand(1);
  auto flags = std::make_shared<Ngram>();
  CLI::App* command = ngram->add_subcommand("build", "count a Katz n-gram model of texts or token files");
  flags->model.add(*command);
  command
      ->add_option("inputs", flags->options.inputs,
                   ".txt, .jsonl (\"ids\", \"start\", or \"text\"), .bin (int32), or a corpus folder")
      ->required();
  command->add_option("-o,--output", flags->options.output, "the n-gram file")->required();
  command->add_option("--order", flags->options.order, "longest context, in tokens")->capture_default_str();
  command->add_option("--min-count", flags->options.min_count, "per context length: drop rarer continuations")
      ->delimiter(',');
  command->add_option("--max-continuations", flags->options.max_continuations, "per context; 0: all");
  command->callback([flags, choose] { choose([flags] { return run_ngram(*flags); }); });
}

void add_slice(CLI::App& app, const Choose& choose) {
  auto options = std::make_shared<SliceOptions>();
  CLI::App* command = app.add_subcommand("slice", "cut a draft out of a model: weak, but a real one");
  command->add_option("input", options->input, "GGUF file, or the name of one that `coppice models` lists")
      ->required();
  command->add_option("-o,--output", options->output, "the draft")->required();
  command->add_option("--layers", options->layers, "keep the first n layers")->check(at_least(1));
  command->add_option("--keep", options->keep, "keep these layers")->delimiter(',');
  command->add_option("--drop", options->drop, "drop the n least important layers, measured on --text")
      ->check(at_least(1));
  command->add_option("--text", options->text,
                      "text or token file to measure on; for --vocabulary alone an .ngram file will do");
  command->add_option("--vocabulary", options->vocabulary, "head of the n most used tokens of --text")
      ->check(at_least(1));
  command->callback([options, choose] { choose([options] { return run_slice(*options); }); });
}

}  // namespace coppice::app
