// coppice eval ppl, logits, layers: passes over a given text.
#include <coppice/coppice.h>

#include <memory>

#include "answer.h"
#include "command.h"
#include "files.h"
#include "options.h"
#include "terminal.h"

namespace coppice::app {
namespace {

struct Flags {
  ModelFlags model;
  std::optional<std::string> file, text;
  std::string output, cache = "f32";
  std::vector<Token> ids;
  int context = 512, chunks = 0;
};

// The text to read, before there is a model; none where ids were given.
Result<std::string> text_of(const Flags& flags) {
  const int given = (flags.file ? 1 : 0) + (flags.text ? 1 : 0) + (flags.ids.empty() ? 0 : 1);
  if (given != 1) return fail("say one of -f FILE, -p TEXT and --ids");
  if (flags.file) return read_text(*flags.file);
  return flags.text.value_or("");
}

template <class Body>
Result<int> with_tokens(const Flags& flags, Body body) {
  if (Status kept = keep_inputs(flags.output, {flags.file.value_or("")}); !kept)
    return tl::unexpected(kept.error());
  auto text = text_of(flags);
  if (!text) return tl::unexpected(text.error());
  auto model = flags.model.load();
  if (!model) return tl::unexpected(model.error());
  if (Status kept = keep_inputs(flags.output, {model->info().path}); !kept)
    return tl::unexpected(kept.error());
  const std::vector<Token> tokens = flags.ids.empty() ? model->tokenizer().encode(*text) : flags.ids;
  Status done = body(*model, tokens);
  if (!done) return tl::unexpected(done.error());
  return kOk;
}

Status run_perplexity(const Flags& flags, const Model& model, std::span<const Token> tokens) {
  PerplexityOptions options;
  options.context = flags.context;
  options.chunks = flags.chunks;
  options.progress = [](int done, int all, double value) {
    show_progress("perplexity", static_cast<double>(done) / all, fmt::format("{:.4f}", value));
  };
  auto result = perplexity(model, tokens, options);
  clear_progress();
  if (!result) return tl::unexpected(result.error());
  say("perplexity {:.4f} +/- {:.4f} over {} tokens in {} chunks of {}\n", result->perplexity,
      result->standard_error, result->tokens, result->chunks, flags.context);
  return {};
}

CLI::App* add(CLI::App& eval, Flags& flags, const char* name, const char* help) {
  CLI::App* command = eval.add_subcommand(name, help);
  flags.model.add(*command);
  command->add_option("-f,--file", flags.file, "a text; - is stdin");
  command->add_option("-p,--prompt", flags.text, "a text");
  command->add_option("--ids", flags.ids, "token ids")->delimiter(',');
  return command;
}

}  // namespace

void add_eval(CLI::App& app, const Choose& choose) {
  CLI::App* eval = app.add_subcommand("eval", "what the model says about a text");
  eval->require_subcommand(1);
  auto flags = std::make_shared<Flags>();
  CLI::App* ppl = add(*eval, *flags, "ppl", "perplexity, as llama.cpp computes it");
  ppl->add_option("-c,--context", flags->context, "chunk length; its second half is scored")
      ->check(CLI::Range(4, 1 << 20))
      ->capture_default_str();
  ppl->add_option("--chunks", flags->chunks, "at most this many; 0: all")->check(at_least(0));
  ppl->callback([flags, choose] {
    choose([flags] {
      return with_tokens(*flags, [&](auto& m, auto& t) { return run_perplexity(*flags, m, t); });
    });
  });
  CLI::App* logits = add(*eval, *flags, "logits", "logits of every position as float32 .npy [tokens, vocab]");
  logits->add_option("-o,--output", flags->output, ".npy file")->required();
  logits->add_option("--cache", flags->cache, "KV cache: f32, f16, q8_0")->capture_default_str();
  logits->callback([flags, choose] {
    choose([flags] {
      return with_tokens(*flags,
                         [&](auto& m, auto& t) { return write_logits(m, t, flags->output, flags->cache); });
    });
  });
  CLI::App* layers =
      add(*eval, *flags, "layers", "inputs and outputs of every matmul of one pass as .npy files");
  layers->add_option("-o,--output", flags->output, "folder")->required();
  layers->callback([flags, choose] {
    choose([flags] {
      return with_tokens(*flags, [&](auto& m, auto& t) { return write_layers(m, t, flags->output); });
    });
  });
}

}  // namespace coppice::app
