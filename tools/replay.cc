// coppice_replay EVAL.jsonl --ngram FILE --prior FILE: how many tokens a pass of the target would yield on
// texts it wrote, by kind and by number of nodes, and at how many tokens the first guess is right. The text
// is the answer: the target runs only where a drafter of --mix reads its states.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>

#include "base/check.h"
#include "base/thread_pool.h"
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
  std::string in, ngram, prior, count, mix, model;
  std::size_t limit = 0;
  float price = 0, pass_price = 0, rate = 0;
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
Result<Mix> make(const Setup& setup, int context, std::vector<std::byte>& counted, ThreadPool& pool,
                 Vocabulary& vocabulary) {
  if (!setup.mix.empty()) return make_mix(setup.mix, setup.model, context, pool, vocabulary);
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
  Mix mix{std::make_unique<Grower>(std::move(drafters), Grower::Options{}), nullptr};
  (void)apply_prior(builtin_prior(), *mix.grower);
  return mix;
}

// Of one kind of texts.
struct Sums {
  Replayed everywhere;               // Pace::each_token: of first guesses
  std::map<int, Replayed> in_trees;  // by their nodes
};

Status replay_one(const Setup& setup, const Mix& mix, const Text& text, int vocab, Sums& sums) {
  ReplayText along{text.ids, std::max<std::size_t>(text.start, 2)};
  if (mix.states) {
    COPPICE_TRY(along.states, mix.states->of(text.ids));
  }
  COPPICE_TRY(const Sampler sampler, sampler_of(text, vocab));
  Budget budget;
  budget.price = setup.price;
  budget.pass_price = setup.pass_price;
  for (const int nodes : setup.sizes) {
    budget.nodes = nodes;
    COPPICE_TRY(const Replayed one, replay(*mix.grower, along, budget, sampler));
    sums.in_trees[nodes].add(one);
  }
  budget.nodes = budget.depth = 1;
  COPPICE_TRY(const Replayed one, replay(*mix.grower, along, budget, sampler, {}, Pace::each_token));
  sums.everywhere.add(one);
  return {};
}

void print(const std::string& kind, const Sums& sums) {
  for (const auto& [nodes, sum] : sums.in_trees) {
    const auto passes = static_cast<double>(sum.passes);
    fmt::print("{:8} {:3} nodes: {:.3f} tokens a pass", kind, nodes,
               static_cast<double>(sum.tokens) / passes);
    if (sum.draft_passes > 0)
      fmt::print(", {:.3f} passes of drafts, trees {:016x}", static_cast<double>(sum.draft_passes) / passes,
                 sum.trees);
    fmt::print("\n");
  }
  fmt::print("{:8} first guess right at {:.3f} of {} tokens\n", kind,
             static_cast<double>(sums.everywhere.top1) / static_cast<double>(sums.everywhere.tokens),
             sums.everywhere.tokens);
}

Status run(const Setup& setup) {
  COPPICE_TRY(const auto texts, read_texts(setup.in));
  std::size_t longest = 2048;
  for (const Text& text : texts) longest = std::max(longest, text.ids.size());
  std::vector<std::byte> counted;
  ThreadPool pool(setup.mix.empty() ? 1 : usable_cores());
  Vocabulary vocabulary;
  COPPICE_TRY(const Mix mix, make(setup, static_cast<int>(longest), counted, pool, vocabulary));
  if (!setup.prior.empty()) {
    COPPICE_TRY(const auto loaded, load_prior(setup.prior));
    COPPICE_TRY_STATUS(apply_prior(loaded, *mix.grower));
  }
  if (setup.rate > 0) mix.grower->set_rate(setup.rate);
  int vocab = static_cast<int>(vocabulary.tokens.size());
  for (const Text& text : texts)
    for (const Token t : text.ids) vocab = std::max(vocab, t + 1);
  std::map<std::string, Sums> sums;
  std::map<std::string, std::size_t> taken;
  for (const Text& text : texts) {
    if (setup.limit > 0 && ++taken[text.kind] > setup.limit) continue;
    COPPICE_TRY_STATUS(replay_one(setup, mix, text, vocab, sums[text.kind]));
  }
  for (const auto& [kind, sum] : sums) print(kind, sum);
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
  auto* mix = app.add_option("--mix", setup.mix, "any drafter expression instead");
  mix->needs(app.add_option("-m,--model", setup.model, "the GGUF that wrote the texts, for --mix"));
  app.add_option("--limit", setup.limit, "texts of each kind");
  app.add_option("--rate", setup.rate, "of the mixer's learning, instead of its own");
  app.add_option("--price", setup.price, "the least value worth a node");
  app.add_option("--pass-price", setup.pass_price, "expected tokens that another pass of a draft is worth");
  app.add_option("--prior", setup.prior, "a .mixer file");
  app.add_option("--nodes", setup.sizes, "sizes of the trees")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  const auto done = coppice::tools::run(setup);
  if (!done) fmt::print(stderr, "coppice_replay: {}\n", done.error().message);
  return done ? 0 : 2;
}
