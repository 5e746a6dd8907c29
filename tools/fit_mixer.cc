// coppice_fit_mixer TEXTS.jsonl OUT.mixer: fits the mixer's prior on text the model wrote itself; with
// --ngram it also counts the n-grams of all texts into a file, which is what is shipped beside the prior.
//
// The n-grams are counted on three quarters of the texts, so that the mixer sees them as they are on unknown
// text; the mixer is fitted on the rest, fast, then slowly. Greedy weights come from all texts; those of
// sampled mode from the texts that were sampled, free of noise (mixture.h). The noise part needs texts
// whose noise is known (--keyed, from coppice_write_texts); without them it stays untaught.
//
// With --mix EXPRESSION it fits one more section for that mix, models in it included, and appends it to the
// file: trees are grown along the texts, which the mix's n-grams must not have been counted on.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <random>

#include "base/check.h"
#include "draft/lookup_drafter.h"
#include "draft/mixture.h"
#include "draft/ngram_corpus.h"
#include "draft/ngram_drafter.h"
#include "draft/prior.h"
#include "mixes.h"
#include "text/tokenizer.h"
#include "texts.h"

namespace coppice::tools {
namespace {

using namespace core;

struct Fit {
  std::string in, out, mix, keyed, ngram, vocabulary, provenance;
  int order = 4;
  std::vector<int> min_count{1, 1, 1, 2, 2};
  std::size_t tokens = 200000;  // of a round
  std::uint32_t seed = 1;
};

std::unique_ptr<Grower> make(const std::string& mix, const std::shared_ptr<const KatzModel>& katz) {
  std::vector<std::unique_ptr<Drafter>> drafters;
  if (mix != "ngram") drafters.push_back(std::make_unique<LookupDrafter>(1, 8192));
  if (mix != "lookup") drafters.push_back(std::make_unique<NgramDrafter>(katz));
  return std::make_unique<Grower>(std::move(drafters), Grower::Options{});
}

// One text after the other, each starting with the weights the one before left.
Status fit(Grower& grower, const std::vector<const Text*>& texts, const Fit& options, int vocab) {
  Budget budget;
  budget.price = 0;
  budget.nodes = options.mix.empty() ? 0 : 8;
  std::vector<float> weights;
  for (const float rate : {0.05f, 0.015f, 0.005f}) {
    grower.set_rate(rate);
    std::size_t seen = 0;
    for (const Text* text : texts) {
      COPPICE_TRY(const Sampler sampler, sampler_of(*text, vocab));
      seen += replay(grower, *text, budget, sampler, &weights).tokens;
      if (!weights.empty()) (void)grower.set_prior(weights);
      if (seen > options.tokens) break;
    }
    fmt::print("  rate {}: {} tokens\n", rate, seen);
  }
  return {};
}

// What `coppice ngram build` does.
Status count_all(const Fit& options) {
  COPPICE_TRY(const auto file, gguf::File::open(options.vocabulary));
  COPPICE_TRY(auto vocabulary, Vocabulary::read(*file));
  COPPICE_TRY(const auto tokenizer, Tokenizer::make(std::move(vocabulary)));
  NgramCorpus corpus;
  corpus.inputs = {options.in};
  corpus.output = options.ngram;
  corpus.order = options.order;
  corpus.min_count = options.min_count;
  corpus.provenance = options.provenance;
  COPPICE_TRY(const NgramReport report, build_ngram(*tokenizer, corpus));
  fmt::print("{}: {} tokens of {} texts, {} bytes\n", options.ngram, report.tokens, report.texts,
             report.bytes);
  return {};
}

// What a request would start with now.
Result<std::vector<float>> weights_of(Grower& grower) {
  const Sampler sampler;
  const Token two[] = {0, 0};
  COPPICE_TRY_STATUS(grower.begin(0, two, sampler));
  std::vector<float> weights(grower.weights(0).begin(), grower.weights(0).end());
  grower.end(0);
  return weights;
}

// One more section: greedy weights from the texts, sampled ones from those whose noise is known.
Status fit_mix(const Fit& options, const std::vector<Text>& texts) {
  ThreadPool pool(2);
  Vocabulary vocabulary;
  COPPICE_TRY(const auto grower, make_mix(options.mix, options.vocabulary, pool, vocabulary));
  const int vocab = static_cast<int>(vocabulary.tokens.size());
  std::vector<Text> keyed;
  if (!options.keyed.empty()) {
    COPPICE_TRY(keyed, read_texts(options.keyed));
  }
  std::vector<const Text*> greedy, sampled;
  for (const Text& text : texts)
    if (text.temperature == 0) greedy.push_back(&text);
  for (const Text& text : keyed)
    if (text.keyed) sampled.push_back(&text);
  COPPICE_TRY_STATUS(fit(*grower, greedy, options, vocab));
  COPPICE_TRY_STATUS(fit(*grower, sampled, options, vocab));
  const Sampler sampler = *Sampler::make({}, vocab, {});
  const Token two[] = {0, 0};
  COPPICE_TRY_STATUS(grower->begin(0, two, sampler));
  std::ofstream written(options.out, std::ios::binary | std::ios::app);
  written << to_string(make_section(*grower, grower->weights(0)));
  return written ? Status{} : fail("cannot write " + options.out);
}

Status run(const Fit& options) {
  COPPICE_TRY(auto texts, read_texts(options.in));
  if (!options.mix.empty()) return fit_mix(options, texts);
  if (!options.ngram.empty()) COPPICE_TRY_STATUS(count_all(options));
  std::mt19937 random(options.seed);
  for (std::size_t i = texts.size(); i > 1; --i) std::swap(texts[i - 1], texts[random() % i]);
  Token most = 0;
  for (const Text& text : texts)
    for (const Token t : text.ids) most = std::max(most, t);
  const std::size_t counted = texts.size() * 3 / 4;
  KatzBuildOptions build;
  build.order = options.order;
  build.min_count = options.min_count;
  build.vocab = most + 1;
  KatzBuilder builder(build);
  for (std::size_t i = 0; i < counted; ++i) builder.add(texts[i].ids, texts[i].start);
  const std::vector<std::byte> bytes = builder.to_bytes();
  COPPICE_TRY(const auto katz, KatzModel::parse(bytes, "counted"));

  std::vector<Text> keyed;
  if (!options.keyed.empty()) {
    COPPICE_TRY(keyed, read_texts(options.keyed));
  }
  std::vector<const Text*> keyed_texts;
  for (const Text& text : keyed)
    if (text.keyed) keyed_texts.push_back(&text);
  std::string file = "coppice-mixer 1\n";
  for (const std::string mix : {"lookup", "ngram", "lookup | ngram"}) {
    std::vector<const Text*> all, sampled;
    for (std::size_t i = counted; i < texts.size(); ++i) {
      all.push_back(&texts[i]);
      if (texts[i].temperature > 0) sampled.push_back(&texts[i]);
    }
    fmt::print("{}\n", mix);
    const auto greedy = make(mix, katz), hot = make(mix, katz), noisy = make(mix, katz);
    COPPICE_TRY_STATUS(fit(*greedy, all, options, build.vocab));
    COPPICE_TRY_STATUS(fit(*hot, sampled, options, build.vocab));
    // Both were fitted in greedy mode: the features are the same.
    std::vector<float> weights = Mixture::untaught(greedy->features(), greedy->buckets());
    const std::size_t one = static_cast<std::size_t>(greedy->features()) * greedy->buckets();
    COPPICE_TRY(const auto from_greedy, weights_of(*greedy));
    COPPICE_TRY(const auto from_hot, weights_of(*hot));
    std::copy_n(from_greedy.begin(), one, weights.begin());
    std::copy_n(from_hot.begin(), one, weights.begin() + one);
    if (!keyed.empty()) {
      COPPICE_TRY_STATUS(noisy->set_prior(weights));
      COPPICE_TRY_STATUS(fit(*noisy, keyed_texts, options, build.vocab));
      COPPICE_TRY(const auto from_noisy, weights_of(*noisy));
      std::copy(from_noisy.begin() + one, from_noisy.end(), weights.begin() + one);
    }
    file += to_string(make_section(*greedy, weights));
  }
  std::ofstream written(options.out, std::ios::binary);
  written << file;
  return written ? Status{} : fail("cannot write " + options.out);
}

}  // namespace
}  // namespace coppice::tools

int main(int argc, char** argv) {
  CLI::App app{"Fits the prior of the mixer of drafters on text that a model wrote."};
  coppice::tools::Fit options;
  app.add_option("texts", options.in, "JSON lines: ids, start, temperature")->required();
  app.add_option("out", options.out, "the .mixer file")->required();
  app.add_option("--mix", options.mix, "fit this mix and append it to the file; needs --vocabulary");
  app.add_option("--keyed", options.keyed, "texts of coppice_write_texts, for the noise");
  app.add_option("--ngram", options.ngram, "the .ngram file");
  app.add_option("--vocabulary", options.vocabulary, "the GGUF whose token ids these are");
  app.add_option("--provenance", options.provenance, "kept in the .ngram file");
  app.add_option("--order", options.order, "longest context of the n-grams");
  app.add_option("--min-count", options.min_count, "least count of a continuation, per context length")
      ->delimiter(',');
  app.add_option("--tokens", options.tokens, "tokens of a round");
  app.add_option("--seed", options.seed, "of the order of the texts");
  CLI11_PARSE(app, argc, argv);
  const auto done = coppice::tools::run(options);
  if (!done) fmt::print(stderr, "coppice_fit_mixer: {}\n", done.error().message);
  return done ? 0 : 2;
}
