// coppice-train: trains drafts and heads. Started by `coppice train`, whose arguments it takes.
#include <fmt/core.h>
#include <malloc.h>

#include <csignal>
#include <cstdio>
#include <exception>

#include "flags.h"

namespace coppice::app {
namespace {

constexpr int kBadInput = 2, kInterrupted = 130;

volatile std::sig_atomic_t g_interrupted = 0;

// The first Ctrl-C ends the run with what it has; the second ends the program.
void on_signal(int signal) {
  g_interrupted = 1;
  std::signal(signal, SIG_DFL);
}

int refuse(const std::string& sentence) {
  fmt::print(stderr, "coppice train: {}\n", sentence);
  return kBadInput;
}

// The command as a person would type it, for the file's provenance.
std::string command_line(int argc, char** argv) {
  std::string line = "coppice train";
  for (int i = 1; i < argc; ++i) line += std::string(" ") + argv[i];
  return line;
}

void print_report(const TrainReport& report) {
  fmt::print("{} steps, {} tokens, {:.0f} tokens/s, loss {:.4f}, about {:.2f} tokens a pass in a chain\n",
             report.steps, report.tokens, report.tokens_per_second, report.loss, report.accepted);
  for (const TrainAgreement& each : report.agreement)
    fmt::print("  {}: top-1 {:.3f}, top-4 {:.3f}, top-8 {:.3f}, overlap {:.3f}\n", each.name, each.top1,
               each.top4, each.top8, each.overlap);
}

}  // namespace

bool interrupted() { return g_interrupted != 0; }

void print_line(const std::string& line) { fmt::print(stderr, "{}\n", line); }

static int run(int argc, char** argv) {
  CLI::App app{"Trains drafts and heads for a model on its own text."};
  app.name("coppice train");
  app.set_version_flag("--version", "coppice-train " COPPICE_VERSION);
  app.require_subcommand(1);
  Train chosen;
  const ChooseTraining choose = [&chosen](Train train) { chosen = std::move(train); };
  add_train_draft(app, choose, command_line(argc, argv));
  add_train_head(app, choose, command_line(argc, argv));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return refuse(std::string(error.what()) + " (coppice train --help lists what there is)");
  }
  // A step's tensors are those of the step before in size: memory that is kept need not be cleared again.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  const auto report = chosen();
  if (!report) return refuse(report.error().message);
  print_report(*report);
  return report->stopped ? kInterrupted : 0;
}

}  // namespace coppice::app

int main(int argc, char** argv) {
  try {
    return coppice::app::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "coppice train: %s; this is a bug of ours\n", error.what());
    return coppice::app::kBadInput;
  }
}
