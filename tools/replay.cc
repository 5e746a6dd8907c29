// coppice_replay EVAL.jsonl --ngram FILE --prior FILE: how many tokens a pass of the target would yield on
// texts it wrote, by kind and by number of nodes. No model runs: the text is the answer.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>

#include "base/check.h"
#include "draft/lookup_drafter.h"
#include "draft/ngram_drafter.h"
#include "draft/prior.h"
#include "draft/replay.h"
#include "mixes.h"
#include "texts.h"

namespace coppice::tools {
namespace {

using namespace core;

struct Setup {
  std::string in, ngram, prior, count, mix, vocabulary;
  std::size_t limit = 0;
  float price = 0, rate = 0;
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

// lookup | ngram, the n-grams from a file or counted here; or any mix.
Result<std::unique_ptr<Grower>> make(const Setup& setup, std::vector<std::byte>& counted, ThreadPool& pool,
                                     Vocabulary& vocabulary) {
  if (!setup.mix.empty()) return make_mix(setup.mix, setup.vocabulary, pool, vocabulary);
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::make_unique<LookupDrafter>(1, 8192));
  if (!setup.count.empty()) {
    COPPICE_TRY(counted, count(setup.count, setup.build));
  }
  if (!setup.ngram.empty() || !setup.count.empty()) {
    COPPICE_TRY(auto katz,
                setup.count.empty() ? KatzModel::open(setup.ngram) : KatzModel::parse(counted, "counted"));
    drafters.push_back(std::make_unique<NgramDrafter>(std::move(katz)));
  }
  auto grower = std::make_unique<Grower>(std::move(drafters), Grower::Options{});
  (void)apply_prior(builtin_prior(), *grower);
  return grower;
}

Status run(const Setup& setup) {
  COPPICE_TRY(const auto texts, read_texts(setup.in));
  std::vector<std::byte> counted;
  ThreadPool pool(setup.mix.empty() ? 1 : 2);
  Vocabulary vocabulary;
  COPPICE_TRY(const auto made, make(setup, counted, pool, vocabulary));
  Grower& grower = *made;
  if (!setup.prior.empty()) {
    COPPICE_TRY(const auto loaded, load_prior(setup.prior));
    COPPICE_TRY_STATUS(apply_prior(loaded, grower));
  }
  if (setup.rate > 0) grower.set_rate(setup.rate);
  int vocab = static_cast<int>(vocabulary.tokens.size());
  for (const Text& text : texts)
    for (const Token t : text.ids) vocab = std::max(vocab, t + 1);
  std::map<std::string, std::map<int, Replayed>> sums;
  for (const int nodes : setup.sizes) {
    std::map<std::string, std::size_t> taken;
    for (const Text& text : texts) {
      if (setup.limit > 0 && ++taken[text.kind] > setup.limit) continue;
      Budget budget;
      budget.nodes = nodes;
      budget.price = setup.price;
      COPPICE_TRY(const Sampler sampler, sampler_of(text, vocab));
      COPPICE_TRY(const Replayed one,
                  replay(grower, text.ids, std::max<std::size_t>(text.start, 2), budget, sampler));
      sums[text.kind][nodes].add(one);
    }
  }
  for (const auto& [kind, by_nodes] : sums) {
    for (const auto& [nodes, sum] : by_nodes) {
      const auto passes = static_cast<double>(sum.passes);
      fmt::print("{:8} {:3} nodes: {:.3f} tokens a pass, first guess right {:.3f}", kind, nodes,
                 static_cast<double>(sum.tokens) / passes, static_cast<double>(sum.top1) / passes);
      if (sum.draft_passes > 0)
        fmt::print(", {:.3f} passes of drafts, trees {:016x}", static_cast<double>(sum.draft_passes) / passes,
                   sum.trees);
      fmt::print("\n");
    }
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
  app.add_option("--mix", setup.mix, "any drafter expression instead, with --vocabulary");
  app.add_option("--vocabulary", setup.vocabulary, "the GGUF whose token ids these are");
  app.add_option("--limit", setup.limit, "texts of each kind");
  app.add_option("--rate", setup.rate, "of the mixer's learning, instead of its own");
  app.add_option("--price", setup.price, "the least value worth a node");
  app.add_option("--prior", setup.prior, "a .mixer file");
  app.add_option("--nodes", setup.sizes, "sizes of the trees")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  const auto done = coppice::tools::run(setup);
  if (!done) fmt::print(stderr, "coppice_replay: {}\n", done.error().message);
  return done ? 0 : 2;
}
