// coppice bench adaptive: the evaluation of "Sub-second speculative decoding for latency-optimized neural
// inference" on a model of one's own: its four tasks and Spec-Bench, every method in turn on each prompt.
// What was counted goes to a journal line by line, and at the end to a JSON file, of which
// bench/adaptive/report.py makes pages.
#include <fmt/core.h>

#include <memory>

#include "bench/adaptive_measure.h"
#include "bench/adaptive_plan.h"
#include "bench/adaptive_print.h"
#include "bench/benches.h"
#include "bench/long_run.h"
#include "bench/replay.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

struct Flags : BenchFlags {
  AdaptiveWish wish;
  ReplayFlags replay;
  std::string config = "bench/adaptive.json";
  std::uint64_t seed = 0;
};

// What a journal must have been made with, to be gone on with.
Result<ordered_json> settings_of(const Flags& flags, const AdaptiveConfig& config, const BenchModel& model) {
  auto common = settings_json(flags, config, model.model, model.options);
  if (!common) return tl::unexpected(common.error());
  const AdaptiveWish& wish = flags.wish;
  ordered_json settings = {{"coppice_adaptive", 1},
                           {"methods", wish.methods},
                           {"tokens", wish.tokens},
                           {"length_tokens", wish.length_tokens},
                           {"seed", flags.seed}};
  settings.update(*common);
  return settings;
}

Result<ordered_json> measure_one(const AdaptiveWork& work, const Flags& flags, AdaptiveBench& bench) {
  auto sampling = bench_sampling(work.sampling, flags.seed, work.tokens);
  if (!sampling) return tl::unexpected(sampling.error());
  auto record = bench.measure({work.prompt, *sampling, work.round, work.painted}, *work.contenders);
  if (!record) return fail(fmt::format("{}: {}", work.prompt->name, record.error().message));
  ordered_json whole = {
      {"group", work.group},       {"set", work.prompt->set},   {"category", work.prompt->category},
      {"form", work.prompt->form}, {"sampling", work.sampling}, {"prompt", work.prompt->name},
      {"round", work.round}};
  whole.update(*record);
  return whole;
}

Result<int> measure(const Flags& flags, const AdaptiveConfig& config, const BenchModel& model) {
  auto plan = plan_adaptive(flags.wish, config, model.model, model.options.context);
  if (!plan) return tl::unexpected(plan.error());
  auto settings = settings_of(flags, config, model);
  if (!settings) return tl::unexpected(settings.error());
  AdaptiveBench bench(model.model, model.options);
  for (const auto& list : plan->lists) {
    for (const Contender& contender : list) {
      if (Status made = bench.prepare(contender); !made) return tl::unexpected(made.error());
    }
  }
  const std::string full = config.text.value("full", "");
  const auto print = [&](const std::vector<ordered_json>& records) { print_adaptive(records, full); };
  LongRun run{"adaptive", model_json(model.model.info()), std::move(*settings), ordered_json::object(), {},
              print};
  for (const auto& [method, why] : plan->left_out) run.left_out[method] = why;
  for (const AdaptiveWork& work : plan->works)
    run.works.push_back(
        {work.key(), work.group, work.weight(), [&] { return measure_one(work, flags, bench); }});
  return run.run(flags.report);
}

Result<int> run_adaptive(const Flags& flags) {
  const TaskFiles& files = flags.wish.files;
  if (!flags.replay.recording.empty()) return flags.replay.run("adaptive-replay", flags, flags.wish.prompts);
  if (files.data.empty() || files.humaneval.empty())
    return fail(
        "--data DIR (gsm8k_train.jsonl, gsm8k_test_dev.jsonl, spec_bench_dev.jsonl) and --humaneval FILE "
        "(scripts/fetch_humaneval.sh) say what to measure on; --replay RESULTS.json is for models of other "
        "shapes");
  auto config = read_adaptive_config(flags.config);
  if (!config) return tl::unexpected(config.error());
  auto opened = open_model(flags, {files.humaneval, flags.config});
  if (!opened) return tl::unexpected(opened.error());
  return measure(flags, *config, *opened);
}

void add_sizes(CLI::App& command, AdaptiveWish& wish) {
  const auto number = [&](const char* name, int& value, int least, const char* what) {
    command.add_option(name, value, what)->check(at_least(least))->capture_default_str();
  };
  number("--prompts", wish.prompts, 0, "of each task and category, spread over it; 0: all");
  number("--rounds", wish.rounds, 1, "over the tasks and categories");
  number("--tokens", wish.tokens, 1, "of an answer, at most");
  number("--length-prompts", wish.length_prompts, 1, "of each kind of conversation in part lengths");
  number("--length-tokens", wish.length_tokens, 1, "of its answers, at most");
  number("--ablation-prompts", wish.ablation_prompts, 1, "of each task in part ablations");
  number("--texts", wish.texts, 0, "prompts of each task and category whose cycles are kept, for --replay");
}

}  // namespace

void add_adaptive(CLI::App& bench, const Choose& choose) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      bench.add_subcommand("adaptive", "ways to decide how much to draft, on the tasks of the second paper");
  AdaptiveWish& wish = flags->wish;
  flags->model.add(*command);
  command->add_option("--data", wish.files.data,
                      "a folder with gsm8k_train.jsonl, gsm8k_test_dev.jsonl and spec_bench_dev.jsonl");
  command->add_option("--humaneval", wish.files.humaneval, "JSON lines with \"task_id\" and \"prompt\"");
  command->add_option("--config", flags->config, "the methods: drafters, policy, how much they may draft")
      ->capture_default_str();
  command
      ->add_option("--parts", wish.parts,
                   "tasks (the paper's four), categories (all of Spec-Bench), lengths, ablations")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--methods", wish.methods, "without it all whose files and policies are there")
      ->delimiter(',');
  command->add_option("--samplings", wish.samplings, "greedy, top-k (50, T=1)")
      ->delimiter(',')
      ->capture_default_str();
  add_sizes(*command, wish);
  flags->replay.add(*command);
  command->add_option("--seed", flags->seed)->check(not_negative)->capture_default_str();
  flags->report.add(*command);
  flags->engine.add(*command);
  command->callback([flags, choose] { choose([flags] { return run_adaptive(*flags); }); });
}

}  // namespace coppice::app
