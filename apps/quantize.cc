// coppice quantize, imatrix: a model's weights in another format, and what of them matters.
#include <coppice/coppice.h>

#include <memory>

#include "command.h"
#include "files.h"
#include "options.h"
#include "terminal.h"

namespace coppice::app {
namespace {

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text;
  for (const std::int64_t size : shape) text += fmt::format("{}{}", text.empty() ? "" : " x ", size);
  return text;
}

void show(const QuantizeReport& report, const QuantizeOptions& options) {
  std::size_t known = 0, changed = 0;
  for (const QuantizedTensor& tensor : report.tensors) {
    const bool same = tensor.from == tensor.to;
    say("{:<36} {:>16}  {}{}\n", tensor.name, shape_text(tensor.shape),
        same ? tensor.to : fmt::format("{} -> {}", tensor.from, tensor.to),
        tensor.why.empty() ? "" : fmt::format("  ({})", tensor.why));
    known += tensor.importance ? 1 : 0;
    changed += same ? 0 : 1;
  }
  if (!options.importance.empty())
    say("{}: importances of {} of the {} tensors that change\n", options.importance, known, changed);
  say("{}: {:.1f} MB, was {:.1f} MB\n", options.output, static_cast<double>(report.bytes_after) / 1e6,
      static_cast<double>(report.bytes_before) / 1e6);
}

Result<int> stopped() {
  note("[stopped; nothing was written]\n");
  return kInterrupted;
}

// The library names fields; those that are options here are called as they are typed.
Error option_error(const Error& error) {
  for (const std::string_view field : {"keep", "threads", "context", "chunks"})
    if (error.message.starts_with(fmt::format("{} = ", field))) return name_the_option(error);
  return error;
}

void list_formats() {
  say("format  bits a weight\n");
  for (const QuantizeFormat& row : quantize_formats())
    say("{:<7} {:>6.2f}  {}\n", row.name, row.bits, row.summary);
}

Result<int> run_quantize(QuantizeOptions options) {
  auto input = find_model_file(options.input);
  if (!input) return tl::unexpected(input.error());
  options.input = *input;
  if (Status writable = check_output(options.output); !writable) return tl::unexpected(writable.error());
  if (Status kept = keep_inputs(options.output, {options.input, options.importance}); !kept)
    return tl::unexpected(kept.error());
  catch_interrupts();
  options.progress = [](double fraction) {
    show_progress("quantizing", fraction);
    return !interrupted();
  };
  auto report = quantize(options);
  clear_progress();
  if (interrupted()) return stopped();
  if (!report) return tl::unexpected(option_error(report.error()));
  show(*report, options);
  return kOk;
}

struct ImportanceFlags {
  ModelFlags model;
  ImportanceOptions options;
};

Result<int> run_importance(ImportanceFlags flags) {
  ImportanceOptions& options = flags.options;
  if (Status writable = check_output(options.output); !writable) return tl::unexpected(writable.error());
  auto text = read_text(options.source);
  if (!text) return tl::unexpected(text.error());
  auto model = flags.model.load();
  if (!model) return tl::unexpected(model.error());
  if (Status kept = keep_inputs(options.output, {options.source, model->info().path}); !kept)
    return tl::unexpected(kept.error());
  const std::vector<Token> tokens = model->tokenizer().encode(*text);
  catch_interrupts();
  options.progress = [](double fraction) {
    show_progress("reading", fraction);
    return !interrupted();
  };
  auto report = measure_importance(*model, tokens, options);
  clear_progress();
  if (interrupted()) return stopped();
  if (!report) return tl::unexpected(option_error(report.error()));
  say("{}: importances of {} tensors, from {} tokens in {} chunks\n", options.output, report->tensors,
      report->tokens, report->chunks);
  return kOk;
}

}  // namespace

void add_quantize(CLI::App& app, const Choose& choose) {
  auto options = std::make_shared<QuantizeOptions>();
  auto list = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("quantize", "write a model again with its weights in another format");
  command->add_option("input", options->input, "GGUF file, or the name of one that `coppice models` lists");
  command->add_option("output", options->output, "the GGUF file to write");
  command->add_option("format", options->format, "a block format or a mix; --list shows them");
  command->add_option("--imatrix", options->importance,
                      "importance matrix: what of the weights matters (`coppice imatrix`)");
  command
      ->add_option("--keep", options->keep,
                   "NAME=FORMAT: a tensor in this format, whatever else is chosen; * stands for any letters")
      ->allow_extra_args(false);
  command->add_option("-t,--threads", options->threads, "threads; 0: all that this process may use")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_flag("--list", *list, "list formats and mixes, and write nothing");
  command->callback([options, list, choose] {
    choose([options, list]() -> Result<int> {
      if (*list) {
        list_formats();
        return kOk;
      }
      if (options->format.empty())
        return tl::unexpected(
            Error{"say what to read, what to write and the format, as in coppice quantize "
                  "in.gguf out.gguf Q4_K_M (coppice quantize --list shows the formats)"});
      return run_quantize(*options);
    });
  });
}

void add_importance(CLI::App& app, const Choose& choose) {
  auto flags = std::make_shared<ImportanceFlags>();
  CLI::App* command =
      app.add_subcommand("imatrix", "measure on a text which weights matter, for `coppice quantize`");
  flags->model.add(*command);
  ImportanceOptions& options = flags->options;
  command->add_option("-f,--file", options.source, "a text; - is stdin")->required();
  command->add_option("-o,--output", options.output, "the importance matrix, a GGUF file")->required();
  command->add_option("-c,--context", options.context, "tokens are read in chunks of so many")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_option("--chunks", options.chunks, "at most so many chunks; 0: all")->check(at_least(0));
  command->callback([flags, choose] { choose([flags] { return run_importance(*flags); }); });
}

}  // namespace coppice::app
