// coppice_replay EVAL.jsonl --ngram FILE --prior FILE: how many tokens a pass of the target would yield on
// texts it wrote, by kind and by number of nodes. No model runs: the text is the answer.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>

#include "base/check.h"
#include "draft/lookup_drafter.h"
#include "draft/ngram_drafter.h"
#include "draft/prior.h"
#include "texts.h"

namespace coppice::tools {
namespace {

using namespace core;

struct Setup {
  std::string in, ngram, prior, count;
  std::vector<int> sizes{1, 4, 8, 16};
  KatzBuildOptions build;
};

// Counts n-grams in memory, to try options before a file is made.
Result<std::vector<std::byte>> count(const std::string& path, KatzBuildOptions build) {
  COPPICE_TRY(const auto texts, read_texts(path));
  for (const Text& text : texts)
    for (const Token t : text.ids) build.vocab = std::max(build.vocab, t + 1);
  KatzBuilder builder(build);
  for (const Text& text : texts) builder.add(text.ids, text.start);
  auto bytes = builder.to_bytes();
  fmt::print("n-grams of {} tokens: {} bytes\n", builder.tokens(), bytes.size());
  return bytes;
}

Status run(const Setup& setup) {
  COPPICE_TRY(const auto texts, read_texts(setup.in));
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::make_unique<LookupDrafter>(1, 8192));
  std::vector<std::byte> counted;
  if (!setup.ngram.empty() || !setup.count.empty()) {
    if (!setup.count.empty()) {
      COPPICE_TRY(counted, count(setup.count, setup.build));
    }
    COPPICE_TRY(auto katz,
                setup.count.empty() ? KatzModel::open(setup.ngram) : KatzModel::parse(counted, "counted"));
    drafters.push_back(std::make_unique<NgramDrafter>(std::move(katz)));
  }
  Grower grower(std::move(drafters), {});
  if (!setup.prior.empty()) {
    COPPICE_TRY(const auto loaded, load_prior(setup.prior));
    COPPICE_TRY_STATUS(apply_prior(loaded, grower));
  }
  const Sampler sampler;
  std::map<std::string, std::map<int, Replayed>> sums;
  for (const int nodes : setup.sizes) {
    for (const Text& text : texts) {
      Budget budget;
      budget.nodes = nodes;
      budget.price = 0;
      const Replayed one = replay(grower, text, budget, sampler);
      Replayed& sum = sums[text.kind][nodes];
      sum.tokens += one.tokens;
      sum.passes += one.passes;
      sum.top1 += one.top1;
    }
  }
  for (const auto& [kind, by_nodes] : sums) {
    fmt::print("{:8}", kind);
    for (const auto& [nodes, sum] : by_nodes)
      fmt::print("  {:3}: {:.2f} (top-1 {:.3f})", nodes,
                 static_cast<double>(sum.tokens) / static_cast<double>(sum.passes),
                 static_cast<double>(sum.top1) / static_cast<double>(sum.passes));
    fmt::print("\n");
  }
  return {};
}

}  // namespace
}  // namespace coppice::tools

int main(int argc, char** argv) {
  CLI::App app{"Tokens per pass of the target, on texts it wrote."};
  coppice::tools::Setup setup;
  app.add_option("texts", setup.in, "JSON lines: ids, start, kind")->required();
  app.add_option("--ngram", setup.ngram, "an n-gram file");
  app.add_option("--count", setup.count, "instead: texts to count n-grams on");
  setup.build.order = 5;
  app.add_option("--order", setup.build.order, "longest context of --count");
  app.add_option("--min-count", setup.build.min_count, "per context length")->delimiter(',');
  app.add_option("--max-continuations", setup.build.max_continuations, "per context");
  app.add_option("--prior", setup.prior, "a .mixer file");
  app.add_option("--nodes", setup.sizes, "sizes of the trees")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  const auto done = coppice::tools::run(setup);
  if (!done) fmt::print(stderr, "coppice_replay: {}\n", done.error().message);
  return done ? 0 : 2;
}
