// coppice bench staged: the tables of Spector and Ré (arXiv:2308.04623) on a model of one's own. Every mode
// writes the same answers in turn; what was counted goes to a journal line by line, and at the end to a JSON
// file, of which bench/staged/report.py makes pages.
#include <memory>

#include "bench/benches.h"
#include "bench/long_run.h"
#include "bench/replay.h"
#include "bench/staged_calibrate.h"
#include "bench/staged_measure.h"
#include "bench/staged_plan.h"
#include "bench/staged_print.h"
#include "files.h"
#include "options.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

struct Flags : BenchFlags {
  StagedWish wish;
  ReplayFlags replay;
  std::string config = "bench/staged.json", calibrate;
  int tokens = 256;
  std::uint64_t seed = 0;
};

// What a journal must have been made with, to be gone on with.
Result<ordered_json> settings_of(const Flags& flags, const StagedConfig& config, const Model& model,
                                 const EngineOptions& options) {
  auto common = settings_json(flags, config, model, options);
  if (!common) return tl::unexpected(common.error());
  ordered_json settings = {
      {"coppice_staged", 1},    {"modes", flags.wish.modes},   {"instruction", flags.wish.instruction},
      {"tokens", flags.tokens}, {"rounds", flags.wish.rounds}, {"seed", flags.seed}};
  settings.update(*common);
  return settings;
}

Result<ordered_json> measure_one(const StagedWork& work, const Flags& flags, StagedBench& bench) {
  auto sampling = bench_sampling(work.sampling, flags.seed, flags.tokens);
  if (!sampling) return tl::unexpected(sampling.error());
  auto record = bench.measure(work.prompt, *sampling, *work.contenders, work.rounds, work.painted);
  if (!record) return fail(fmt::format("{}: {}", work.prompt.name, record.error().message));
  ordered_json whole = {{"group", work.group},
                        {"set", work.prompt.set},
                        {"form", work.prompt.form},
                        {"sampling", work.sampling},
                        {"prompt", work.prompt.name}};
  whole.update(*record);
  return whole;
}

Result<int> measure(const Flags& flags, const StagedConfig& config, const Model& model,
                    const EngineOptions& options) {
  auto plan = plan_staged(flags.wish, config, model, options.context);
  if (!plan) return tl::unexpected(plan.error());
  auto settings = settings_of(flags, config, model, options);
  if (!settings) return tl::unexpected(settings.error());
  StagedBench bench(model, options);
  for (const auto& list : plan->lists) {
    for (const Contender& contender : list) {
      if (Status made = bench.prepare(contender); !made) return tl::unexpected(made.error());
    }
  }
  LongRun run{"staged",    model_json(model.info()), std::move(*settings), ordered_json::object(), {},
              print_staged};
  for (const auto& [mode, file] : plan->left_out) run.left_out[mode] = "there is no file " + file;
  for (const StagedWork& work : plan->works)
    run.works.push_back(
        {work.key(), work.group, work.weight(), [&] { return measure_one(work, flags, bench); }});
  return run.run(flags.report);
}

Result<int> calibrate(const Flags& flags, const StagedConfig& config, const Model& model,
                      const EngineOptions& options) {
  catch_interrupts();
  CalibrateWish wish;
  wish.prompts = flags.calibrate;
  if (flags.wish.prompts > 0) wish.limit = flags.wish.prompts;
  wish.tokens = flags.tokens;
  wish.seed = flags.seed;
  wish.samplings = flags.wish.samplings;
  wish.modes = flags.wish.modes;
  auto text = calibrate_staged(model, options, config, wish);
  if (!text) return ended(text.error());
  if (Status written = write_text(flags.config, text->dump(2) + "\n"); !written)
    return tl::unexpected(written.error());
  return kOk;
}

Result<int> run_staged(const Flags& flags) {
  int asked = 0;
  for (const std::string* file : {&flags.wish.humaneval, &flags.calibrate, &flags.replay.recording})
    asked += file->empty() ? 0 : 1;
  if (asked != 1)
    return fail(
        "say one of --humaneval FILE (to measure), --calibrate PROMPTS.jsonl (to choose the budgets) and "
        "--replay RESULTS.json (for models of other shapes)");
  if (!flags.replay.recording.empty()) return flags.replay.run("staged-replay", flags, flags.wish.prompts);
  auto config = read_staged_config(flags.config);
  if (!config) return tl::unexpected(config.error());
  auto opened = open_model(flags, {flags.wish.humaneval, flags.config});
  if (!opened) return tl::unexpected(opened.error());
  return flags.calibrate.empty() ? measure(flags, *config, opened->model, opened->options)
                                 : calibrate(flags, *config, opened->model, opened->options);
}

}  // namespace

void add_staged(CLI::App& bench, const Choose& choose) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = bench.add_subcommand(
      "staged", "all ways of speculation on the same answers: speed, bandwidth, who made which token");
  StagedWish& wish = flags->wish;
  flags->model.add(*command);
  command->add_option("--humaneval", wish.humaneval, "JSON lines with \"task_id\" and \"prompt\"");
  command->add_option("--data", wish.data, "a folder with spec_bench_dev.jsonl, for the part trees");
  command->add_option("--config", flags->config, "which drafters make a mode, and how much they may draft")
      ->capture_default_str();
  command->add_option("--calibrate", flags->calibrate,
                      "instead: choose the budgets on these prompts and write them to --config");
  flags->replay.add(*command);
  command->add_option("--prompts", wish.prompts, "spread over the set; 0: all (--calibrate: 8)")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--tokens", flags->tokens, "of an answer, at most")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--rounds", wish.rounds, "of each prompt in part main")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--modes", wish.modes, "of part main; without it all whose files are there")
      ->delimiter(',');
  command->add_option("--forms", wish.forms, "chat, raw")->delimiter(',')->capture_default_str();
  command->add_option("--samplings", wish.samplings, "greedy, top-k (50, T=1)")
      ->delimiter(',')
      ->capture_default_str();
  command
      ->add_option("--parts", wish.parts,
                   "main (every mode), trees (fixed sizes, agreement), sweeps (exploratory)")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--sweep-prompts", wish.sweep_prompts, "of the sweeps")
      ->check(at_least(1))
      ->capture_default_str();
  command->add_option("--texts", wish.texts, "prompts whose tokens are kept with who made them")
      ->check(at_least(0))
      ->capture_default_str();
  command->add_option("--instruction", wish.instruction, "of the chat form, around the prompt at {}");
  command->add_option("--seed", flags->seed)->check(not_negative)->capture_default_str();
  flags->report.add(*command);
  flags->engine.add(*command);
  command->callback([flags, choose] { choose([flags] { return run_staged(*flags); }); });
}

}  // namespace coppice::app
