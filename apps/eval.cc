// coppice eval ppl, logits, layers, head, blocks: passes over a given text.
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
  std::string output, cache = "f32", head;
  std::vector<Token> ids;
  int context = 512, chunks = 0, removals = 0, steps = 1;
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
  if (Status kept = keep_inputs(flags.output, {flags.file.value_or(""), flags.head}); !kept)
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

// "0-9+25-29", as the drafter `self` takes it: all blocks but those.
std::string blocks_left(int blocks, std::span<const BlockReport::Removal> removed) {
  std::vector<bool> left(static_cast<std::size_t>(blocks), true);
  for (const auto& removal : removed) left[static_cast<std::size_t>(removal.block)] = false;
  std::string text;
  for (int first = 0; first < blocks; ++first) {
    if (!left[static_cast<std::size_t>(first)]) continue;
    int last = first;
    while (last + 1 < blocks && left[static_cast<std::size_t>(last + 1)]) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : "+", first);
    if (last > first) text += fmt::format("-{}", last);
    first = last;
  }
  return text;
}

Status run_blocks(const Flags& flags, const Model& model, std::span<const Token> tokens) {
  BlockOptions options;
  options.removals = flags.removals;
  catch_interrupts();
  options.progress = [](double fraction) {
    show_progress("trying blocks", fraction);
    return !interrupted();
  };
  auto report = measure_blocks(model, tokens, options);
  clear_progress();
  if (!report) return tl::unexpected(report.error());
  say("block  influence\n");
  for (std::size_t i = 0; i < report->influence.size(); ++i) say("{:>5}  {:.4f}\n", i, report->influence[i]);
  if (report->removals.empty()) return {};
  say("\nremoved  agreement  what is left\n");
  const int blocks = static_cast<int>(report->influence.size());
  for (std::size_t i = 0; i < report->removals.size(); ++i)
    say("{:>7}  {:>9.3f}  self(layers={})\n", report->removals[i].block, report->removals[i].agreement,
        blocks_left(blocks, std::span(report->removals).first(i + 1)));
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
  logits->add_option("--cache", flags->cache, "KV cache")
      ->check(one_of("f32|f16|q8_0"))
      ->capture_default_str();
  logits->callback([flags, choose] {
    choose([flags] {
      return with_tokens(*flags,
                         [&](auto& m, auto& t) { return write_logits(m, t, flags->output, flags->cache); });
    });
  });
  CLI::App* head =
      add(*eval, *flags, "head",
          "what a draft head says along a text, as float32 .npy [(tokens - steps) * steps, vocab]");
  head->add_option("--head", flags->head, "the draft head, a GGUF file")->required();
  head->add_option("-o,--output", flags->output, ".npy file")->required();
  head->add_option("--steps", flags->steps,
                   "at each position: one from the target's states, the rest from its own")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  head->add_option("--cache", flags->cache, "KV cache")->check(one_of("f32|f16|q8_0"))->capture_default_str();
  head->callback([flags, choose] {
    choose([flags] {
      return with_tokens(*flags, [&](auto& m, auto& t) {
        return write_head_logits(m, flags->head, t, flags->steps, flags->output, flags->cache);
      });
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
  CLI::App* blocks = add(*eval, *flags, "blocks", "how much each block matters: what `self` may leave out");
  blocks->add_option("--removals", flags->removals, "find so many blocks that are missed least, one by one")
      ->check(at_least(0));
  blocks->callback([flags, choose] {
    choose([flags] {
      const bool own = !flags->file && !flags->text && flags->ids.empty();
      if (own) flags->text = "";  // the built-in text
      return with_tokens(*flags, [&](auto& m, auto& t) { return run_blocks(*flags, m, t); });
    });
  });
}

}  // namespace coppice::app
