// coppice random-model: a model of any shape and format, to measure or to try things on.
#include <coppice/coppice.h>

#include <memory>

#include "command.h"
#include "files.h"
#include "options.h"
#include "terminal.h"

namespace coppice::app {
namespace {

Result<int> run(RandomModelOptions options) {
  if (Status writable = check_output(options.output); !writable) return tl::unexpected(writable.error());
  catch_interrupts();
  options.progress = [&](double fraction) {
    show_progress("writing", fraction);
    return !interrupted();
  };
  auto report = write_random_model(options);
  clear_progress();
  if (interrupted()) {
    note("[stopped; nothing was written]\n");
    return kInterrupted;
  }
  if (!report) {
    const bool field = report.error().message.find(" = ") != std::string::npos;
    return tl::unexpected(field ? name_the_option(report.error()) : report.error());
  }
  say("{}: {:.1f} million parameters, {:.1f} MB\n", options.output,
      static_cast<double>(report->parameters) / 1e6, static_cast<double>(report->bytes) / 1e6);
  return kOk;
}

Result<int> run_head(RandomHeadOptions options, const RandomModelOptions& common) {
  if (Status kept = keep_inputs(common.output, {options.target}); !kept) return tl::unexpected(kept.error());
  if (Status writable = check_output(common.output); !writable) return tl::unexpected(writable.error());
  options.output = common.output;
  options.seed = common.seed;
  options.formats = common.formats;
  if (Status written = write_random_head(options); !written) return tl::unexpected(written.error());
  say("{}: a draft head for {}\n", options.output, options.target);
  return kOk;
}

}  // namespace

void add_random_model(CLI::App& app, const Choose& choose) {
  auto options = std::make_shared<RandomModelOptions>();
  auto untied = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("random-model", "write a model with random weights, of any shape");
  command->add_option("-o,--output", options->output, "the GGUF file")->required();
  const auto option = [&](const char* name, auto& value, const char* help) {
    return command->add_option(name, value, help)->capture_default_str();
  };
  option("--architecture", options->architecture,
         "llama, qwen2, gemma3, ...; a wrong one is answered with the list");
  option("--hidden", options->hidden, "width, a multiple of 32");
  option("--layers", options->layers, "blocks");
  option("--heads", options->heads, "query heads");
  option("--kv-heads", options->kv_heads, "key and value heads; 0: as many as query heads")
      ->check(at_least(0));
  option("--head-dim", options->head_dim, "of one head; 0: hidden / heads")->check(at_least(0));
  option("--feed-forward", options->feed_forward, "width of the feed-forward layer; 0: four times hidden")
      ->check(at_least(0));
  option("--vocab", options->vocab, "tokens, at least 260");
  option("--context-length", options->context_length, "positions it claims to be trained on");
  option("--window", options->window, "positions of layers with a sliding window; 0: the file names none")
      ->check(at_least(0));
  option("--experts", options->experts,
         "experts of a layer; 0: none, or 4 where the architecture must have some")
      ->check(at_least(0));
  option("--experts-used", options->experts_used, "experts a token uses");
  option("--formats", options->formats, "formats of the blocks' matrices, in turn")->delimiter(',');
  option("--embedding-format", options->embedding_format, "format of the embedding and the head");
  command->add_flag("--untied", *untied, "a head of its own, not the embedding");
  command->add_option("--slim", options->slim, "width factors of a slimmable draft, rising, as in 0.5,0.75,1")
      ->delimiter(',');
  command->add_option("--exit-layer", options->exit_layer, "blocks its early exit runs; 0: none")
      ->check(at_least(0));
  command->add_option("--exit-factor", options->exit_factor,
                      "width factor of the exit; the first where nobody says it");
  option("--seed", options->seed, "another seed, other weights")->check(not_negative);
  option("-t,--threads", options->threads, "threads; 0: all that this process may use")
      ->check(CLI::Range(0, 1024));
  auto head = std::make_shared<RandomHeadOptions>();
  command->add_option(
      "--head-for", head->target,
      "instead a draft head for this model (a GGUF file), in its shape; of the options above only "
      "--formats and --seed are used");
  command->add_option("--head-vocabulary", head->vocabulary, "tokens the head may guess; 0: all")
      ->check(at_least(0));
  command
      ->add_option("--head-layers", head->feature_layers, "layers of the model whose states the head reads")
      ->delimiter(',');
  command->add_flag("--head-standardised", head->standardised, "with a mean and a scale of each state");
  command->callback([options, untied, head, choose] {
    options->tied_head = !*untied;
    choose([options, head] { return head->target.empty() ? run(*options) : run_head(*head, *options); });
  });
}

}  // namespace coppice::app
