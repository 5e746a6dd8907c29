// coppice train gate, tau: what the policy `adaptive` decides by.
#include <coppice/fit_policy.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/prompts.h"
#include "files.h"
#include "fit.h"
#include "options.h"
#include "terminal.h"

namespace coppice::app {
namespace {

using nlohmann::ordered_json;

auto progress() {
  return [](const std::string& what, double fraction) {
    show_progress(what, fraction);
    return !interrupted();
  };
}

// Also of "folder/".
std::string base(const std::string& path) {
  const auto end = path.find_last_not_of('/');
  return std::filesystem::path(path.substr(0, end + 1)).filename().string();
}

// --- gate ---

struct Gate {
  ModelFlags model;
  TrainGateOptions options;
  std::vector<std::string> corpora;
  bool json = false;
};

// For the file: what a person can type again, without the folders of this machine.
std::string command_of(const TrainGateOptions& options) {
  const TrainGateOptions usual;
  std::string text =
      fmt::format("coppice train gate -m {} --draft {}", base(options.target), base(options.draft));
  for (const std::string& path : options.texts) text += " --texts " + base(path);
  const auto add = [&text](const char* name, auto value, auto otherwise) {
    if (value != otherwise) text += fmt::format(" {} {}", name, value);
  };
  add("--compute", options.compute, usual.compute);
  add("--layer", options.layer, usual.layer);
  add("--units", options.units, usual.units);
  add("--every", options.every, usual.every);
  add("--depth", options.depth, usual.depth);
  add("--reject", options.reject, usual.reject);
  add("--exit", options.exit, usual.exit);
  add("--epochs", options.epochs, usual.epochs);
  add("--tokens", options.tokens, usual.tokens);
  add("--seed", options.seed, usual.seed);
  return text + " -o " + base(options.output);
}

ordered_json to_json(const GateJudgement& one) {
  return {{"name", one.name},       {"alpha", one.alpha},       {"pass", one.pass},
          {"compute", one.compute}, {"accepted", one.accepted}, {"share", one.share}};
}

ordered_json to_json(const TrainGateReport& report, const std::string& output) {
  ordered_json out = {{"gate", output},          {"texts", report.texts},         {"learned", report.learned},
                      {"judged", report.judged}, {"decisions", report.decisions}, {"layer", report.layer},
                      {"price", report.price}};
  for (const GateJudgement& one : report.constants) out["constants"].push_back(to_json(one));
  out["whole"] = to_json(report.whole);
  out["judgement"] = {{"compute", report.gate.compute},
                      {"accepted", report.gate.accepted},
                      {"constant_accepted", report.constant_accepted},
                      {"gain", report.gain},
                      {"gain_95", {report.gain_low, report.gain_high}},
                      {"beats_constants", report.beats}};
  if (!report.beats) out["constant_alpha"] = report.constant_alpha;
  return out;
}

void print(const TrainGateReport& report, const TrainGateOptions& options) {
  say("{} decisions in {} tokens to learn from, {} held-out tokens; states at layer {}; a draft pass may "
      "cost "
      "{:.3f} passes of the target\n\n",
      report.decisions, report.learned, report.judged, report.layer, report.price);
  say("width    a pass   compute   accepted a cycle   the gate's decisions\n");
  for (const GateJudgement& one : report.constants)
    say("{:8} {:6.3f} {:9.3f} {:18.4f} {:21.1f}%\n", one.name, one.pass, one.compute, one.accepted,
        100 * one.share);
  const std::string part =
      report.whole.accepted > 0
          ? fmt::format("{:.1f}% of the whole draft's", 100 * report.gate.accepted / report.whole.accepted)
          : "";
  say("{:8}        {:9.3f} {:18.4f}   {}\n", "gate", report.gate.compute, report.gate.accepted, part);
  say("{:8}        {:9.3f} {:18.4f}\n\n", "constant", report.gate.compute, report.constant_accepted);
  const std::string interval = fmt::format(
      "{:+.4f} accepted a cycle beside the best constants at its compute (95% of resampled texts: "
      "{:+.4f} to {:+.4f})",
      report.gain, report.gain_low, report.gain_high);
  if (report.beats)
    say("{}: the gate, {}\n", options.output, interval);
  else
    say("{}: NOT a learned gate but the constant alpha {:.3f}: the learned one does not beat constants, {}\n",
        options.output, report.constant_alpha, interval);
}

Result<int> run_gate(Gate flags) {
  TrainGateOptions& options = flags.options;
  options.texts.insert(options.texts.end(), flags.corpora.begin(), flags.corpora.end());
  if (options.texts.empty()) return fail("say what to learn from: --texts FILE or --corpus FOLDER");
  if (Status writable = check_output(options.output); !writable) return tl::unexpected(writable.error());
  auto path = flags.model.resolve();
  if (!path) return tl::unexpected(path.error());
  options.target = *path;
  options.threads = flags.model.threads;
  std::vector<std::string> read = options.texts;
  read.push_back(options.target);
  read.push_back(options.draft);
  if (Status kept = keep_inputs(options.output, read); !kept) return tl::unexpected(kept.error());
  options.command = command_of(options);
  catch_interrupts();
  options.progress = progress();
  auto report = train_gate(options);
  clear_progress();
  if (!report) return tl::unexpected(report.error());
  if (report->stopped) return kInterrupted;
  if (flags.json)
    say("{}\n", to_json(*report, options.output).dump(2));
  else
    print(*report, options);
  return kOk;
}

// --- tau ---

struct Tau {
  ModelFlags model;
  SpeculationFlags speculation;
  PromptFlags prompts;
  TrainTauOptions options;
  bool json = false;
};

ordered_json to_json(const TrainTauReport& report, const std::string& output) {
  ordered_json out = {
      {"file", output},
      {"tau", report.tau},
      {"analyse", report.analyse},
      {"constant", report.constant},
      {"confusion",
       {{"said_plain",
         {{"plain_faster", report.confusion[0][0]}, {"drafting_faster", report.confusion[0][1]}}},
        {"said_drafting",
         {{"plain_faster", report.confusion[1][0]}, {"drafting_faster", report.confusion[1][1]}}}}},
      {"seconds",
       {{"by_tau", report.by_tau},
        {"by_tau_of_the_others", report.by_others},
        {"always_plain", report.never},
        {"always_drafting", report.always},
        {"best", report.best}}}};
  for (const TauPrompt& prompt : report.prompts)
    out["prompts"].push_back({{"confidence", prompt.confidence},
                              {"reading_seconds", prompt.reading},
                              {"plain_seconds", prompt.plain},
                              {"drafting_seconds", prompt.drafted},
                              {"tokens", prompt.tokens}});
  return out;
}

void print(const TrainTauReport& report, const std::string& output) {
  const auto& c = report.confusion;
  const int all = static_cast<int>(report.prompts.size());
  say("the analyser says   plain is faster   drafting is faster\n");
  say("plain            {:18} {:20}\n", c[0][0], c[0][1]);
  say("drafting         {:18} {:20}\n\n", c[1][0], c[1][1]);
  const auto row = [&](const char* what, int right, double seconds) {
    say("{:26} {:5} right {:9.3f} s {:8.1f}% slower than the best choices\n", what,
        right < 0 ? "" : fmt::format("{:.0f}%", 100.0 * right / all), seconds,
        100 * (seconds / report.best - 1));
  };
  row("by tau", c[0][0] + c[1][1], report.by_tau);
  row("always plain", c[0][0] + c[1][0], report.never);
  row("always drafting", c[0][1] + c[1][1], report.always);
  say("{:26} {:5}       {:9.3f} s {:8.1f}% (each prompt by the tau of the others)\n", "to be expected", "",
      report.by_others, 100 * (report.by_others / report.best - 1));
  if (report.constant)
    say("a constant choice is as good on prompts that a threshold was not fitted on, so that is what was "
        "written\n");
  say("{}: tau = {}, of the last {} tokens, fitted on {} prompts\n", output,
      report.tau > 0 ? fmt::format("{:.4f}", report.tau) : "off", report.analyse, all);
}

Result<int> run_tau(Tau flags) {
  TrainTauOptions& options = flags.options;
  if (Status writable = check_output(options.output); !writable) return tl::unexpected(writable.error());
  auto speculation = flags.speculation.resolve();
  if (!speculation) return tl::unexpected(speculation.error());
  options.speculation = *speculation;
  auto texts = flags.prompts.read();
  if (!texts) return tl::unexpected(texts.error());
  auto model = flags.model.load();
  if (!model) return tl::unexpected(model.error());
  if (Status kept = keep_inputs(options.output, {flags.prompts.path, model->info().path}); !kept)
    return tl::unexpected(kept.error());
  auto prompts = flags.prompts.tokenise(*model, *texts, options.context);
  if (!prompts) return tl::unexpected(prompts.error());
  options.prompts = std::move(*prompts);
  options.remark =
      fmt::format("coppice train tau -m {} --prompts {}{}; drafters: {}, policy {}", base(model->info().path),
                  base(flags.prompts.path), flags.prompts.chat ? " --chat" : "", options.speculation.drafters,
                  options.speculation.policy);
  catch_interrupts();
  options.progress = progress();
  auto report = train_tau(*model, options);
  clear_progress();
  if (!report) return tl::unexpected(report.error());
  if (report->stopped) return kInterrupted;
  if (flags.json)
    say("{}\n", to_json(*report, options.output).dump(2));
  else
    print(*report, options.output);
  return kOk;
}

}  // namespace

void add_gate_training(CLI::App& train, const Choose& choose) {
  auto flags = std::make_shared<Gate>();
  TrainGateOptions& options = flags->options;
  CLI::App* command = train.add_subcommand("gate", "learn how wide a slimmable draft should be, and when");
  flags->model.add(*command);
  const auto option = [&](const char* name, auto& value, const char* help) {
    return command->add_option(name, value, help)->capture_default_str();
  };
  command->add_option("--draft", options.draft, "the slimmable draft (GGUF)")->required();
  command->add_option("--texts", options.texts,
                      "token files that the model wrote: .jsonl (\"ids\", \"start\"), .npy, .bin");
  command->add_option("--corpus", flags->corpora, "folders that `coppice corpus` wrote");
  command->add_option("-o,--out", options.output, "the .gate file")->required();
  option("--compute", options.compute, "the whole draft's work that may be spent, a share");
  command
      ->add_option("--layer", options.layer,
                   "of the model, where its states are read (default: two thirds up)")
      ->check(at_least(0));
  option("--units", options.units, "of the hidden layer");
  option("--every", options.every, "tokens from one decision to the next");
  option("--depth", options.depth, "guesses of a chain");
  option("--reject", options.reject, "least chance of a guess that is submitted");
  option("--exit", options.exit, "alpha under which the early exit is chosen; 0: never");
  option("--epochs", options.epochs, "over all decisions");
  option("--tokens", options.tokens, "to learn from")->check(not_negative);
  option("--held-out", options.held_out, "share of the texts that is judged only");
  option("--judged", options.judged, "tokens of them")->check(not_negative);
  command->add_option("--context", options.context, "positions; longer texts are cut")->check(at_least(16));
  option("--seed", options.seed, "of the order of texts and of the weights at first")->check(not_negative);
  command->add_flag("--json", flags->json, "the report as JSON");
  command->callback([flags, choose] { choose([flags] { return run_gate(*flags); }); });
}

void add_tau_training(CLI::App& train, const Choose& choose) {
  auto flags = std::make_shared<Tau>();
  flags->speculation.speculation.policy = "fixed";
  TrainTauOptions& options = flags->options;
  CLI::App* command =
      train.add_subcommand("tau", "fit to your prompts how confident a draft must be to be asked at all");
  flags->model.add(*command);
  flags->speculation.add(*command);
  flags->prompts.add(*command);
  flags->model.add_chat(*command);
  const auto option = [&](const char* name, auto& value, const char* help) {
    return command->add_option(name, value, help)->capture_default_str();
  };
  command->add_option("-o,--out", options.output, "the file of thresholds: lines name = value")->required();
  option("-n,--tokens", options.tokens, "of each answer");
  option("--rounds", options.rounds, "each with every prompt decoded both ways");
  option("--analyse", options.analyse,
         "last tokens of a prompt that count; of several numbers the best stays")
      ->delimiter(',');
  option("-c,--context", options.context, "tokens of prompt and answer")->check(at_least(16));
  command->add_flag("--json", flags->json, "the report as JSON");
  command->callback([flags, choose] { choose([flags] { return run_tau(*flags); }); });
}

}  // namespace coppice::app
