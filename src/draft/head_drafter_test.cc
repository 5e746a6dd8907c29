#include "draft/head_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/allocation_count.h"
#include "draft/mixture.h"
#include "model/random_head.h"
#include "model/testing.h"

namespace coppice::core {
namespace {

constexpr int kVocab = 320;
constexpr Budget kBudget{8, 16, 0.01f, 1.0f, 0.0f};

// A target, a head for it, and the target's features of a text.
struct Target {
  ThreadPool pool{2};
  std::shared_ptr<const Model> model;
  std::shared_ptr<const HeadModel> head;

  Target() {
    RandomModelOptions shape;
    shape.layers = 3;
    model = testing::make_model(shape, pool);
    RandomHeadOptions options;
    options.rows = 200;
    const auto bytes = *random_head(model->config(), options);
    head = *HeadModel::load(**gguf::File::parse(bytes, "head.gguf"), model, pool);
  }

  // [positions, features]
  std::vector<std::vector<float>> features(std::span<const Token> tokens) {
    ContextOptions options;
    options.feature_layers = head->config().feature_layers;
    auto context = testing::make_context(model, pool, options);
    const int s = *context->cache().open();
    testing::expect_ok(context->cache().reserve(s, static_cast<int>(tokens.size())));
    std::vector<std::vector<float>> all;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const Row row{s, tokens[i], static_cast<int>(i), kCommitted, kCommitted, kFeatures};
      testing::expect_ok(context->forward({&row, 1}));
      all.push_back(testing::copy(context->features(0)));
    }
    return all;
  }
};

Target& target() {
  static Target one;
  return one;
}

// Texts as a target would have written and shown them: at every root the first token is one of the tree's, so
// that cycles of every length come up.
struct Texts {
  HeadDrafter* head = nullptr;
  std::unique_ptr<Grower> grower;
  Sampler sampler;
  ThreadPool pool;

  explicit Texts(const Sampling& sampling = {}, int sequences = 1, int context = 512, int threads = 2)
      : sampler(*Sampler::make(sampling, kVocab, {})), pool(threads) {
    HeadDrafter::Options options;
    options.sequences = sequences;
    options.context = context;
    auto made = HeadDrafter::make(target().head, options, pool);
    EXPECT_TRUE(made.has_value());
    head = made->get();
    std::vector<std::unique_ptr<Drafter>> one;
    one.push_back(std::move(*made));
    grower = std::make_unique<Grower>(std::move(one), Grower::Options{sequences, 64});
    std::vector<float> prior = Mixture::untaught(grower->features(), 1);
    for (int mode = 0; mode < 2; ++mode) {  // the chance of a candidate is the head's own
      std::fill_n(prior.begin() + mode * grower->features(), grower->features(), 0.0f);
      prior[mode * grower->features() + kOwnFeatures + 1] = 4.0f;
    }
    EXPECT_TRUE(grower->set_prior(prior));
  }

  struct Job {
    std::vector<Token> text;
    std::vector<std::vector<float>> features;
    std::size_t at = 0;  // committed
    std::string trees;   // all that were grown
    int guesses = 0;
    TokenTree tree;
  };
  static Job job(std::vector<Token> text, std::size_t prompt) {
    Job made;
    made.features = target().features(text);
    made.text = std::move(text);
    made.at = prompt;
    return made;
  }

  void show(int sequence, const Job& job, std::size_t first, std::size_t end) {
    std::vector<const float*> rows;
    for (std::size_t p = first; p < end; ++p) rows.push_back(job.features[p].data());
    grower->see(sequence, std::span(job.text).first(std::max(end + 1, job.at)),
                {static_cast<int>(first), rows, grower->feature_layers(), target().model->config().hidden});
  }
  // `known`: positions the target had in its cache.
  void begin(int sequence, const Job& job, std::size_t chunk = 16, std::size_t known = 0) {
    ASSERT_TRUE(grower->begin(sequence, std::span(job.text).first(job.at), sampler));
    for (std::size_t first = known; first < job.at - 1; first += chunk)
      show(sequence, job, first, std::min(first + chunk, job.at - 1));
  }
  void grow(std::span<Job* const> jobs, int first_sequence = 0) {
    std::vector<GrowJob> grow_jobs;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      jobs[i]->tree.reset(jobs[i]->text[jobs[i]->at - 1]);
      grow_jobs.push_back({first_sequence + static_cast<int>(i),
                           std::span(jobs[i]->text).first(jobs[i]->at),
                           &sampler,
                           kBudget,
                           &jobs[i]->tree,
                           {}});
    }
    grower->grow(grow_jobs);
    for (Job* job : jobs) {
      for (int n = 1; n < job->tree.size(); ++n)
        job->trees += std::to_string(job->tree.parent(n)) + ":" + std::to_string(job->tree.token(n)) + "=" +
                      std::to_string(job->tree.value(n)) + " ";
      job->guesses += job->tree.size() - 1;
      job->trees += "\n";
    }
  }
  void accept(int sequence, Job& job, std::size_t count) {
    show(sequence, job, job.at - 1, job.at + count - 1);
    grower->observe(sequence, std::span(job.text).first(job.at), std::span(job.text).subspan(job.at, count));
    job.at += count;
  }
  // Cycles of 1, 2, 3, 1 ... tokens to the end of the text.
  void run(int sequence, Job& job) {
    for (std::size_t count = 1; job.at + count < job.text.size(); count = 1 + count % 3) {
      Job* one[] = {&job};
      grow(one, sequence);
      accept(sequence, job, count);
    }
    grower->end(sequence);
  }
};

std::vector<Token> text(int count, unsigned seed = 7) { return testing::some_tokens(count, kVocab, seed); }

// What the head says after text + path, by itself.
std::vector<Ranked> expected(const Texts::Job& job, std::span<const Token> path, const Sampler& sampler) {
  ContextOptions options;
  options.kv.positions = 64;
  auto context = *HeadContext::make(target().head, options, target().pool);
  const int s = *context->cache().open();
  const int rows = static_cast<int>(job.at) - 1;
  testing::expect_ok(context->cache().reserve(s, rows));
  std::vector<float> hidden;
  for (int p = 0; p < rows + static_cast<int>(path.size()); ++p) {
    HeadRow row;
    const int depth = p - rows;  // of guesses, from 0
    row.row = {s,
               depth < 0 ? job.text[p + 1] : path[depth],
               p,
               depth < 0 ? kCommitted : depth,
               std::max(depth - 1, -1),
               kLogits};
    row.position = p;
    row.features = depth < 0 ? job.features[p].data() : nullptr;
    row.hidden = hidden.data();
    testing::expect_ok(context->forward({&row, 1}));
    hidden = testing::copy(context->hidden(0));
  }
  Sampler::Scratch scratch(kVocab);
  std::vector<Ranked> ranked(kMaxCandidates);
  ranked.resize(sampler.rank({context->logits(0), context->maxima(0)},
                             {std::span(job.text).first(job.at), path}, scratch, ranked));
  return ranked;
}

TEST(HeadDrafter, SaysWhatTheHeadSaysAtEveryNode) {
  Sampling sampling;
  sampling.temperature = 0.7f;
  for (const Sampling& how : {Sampling{}, sampling}) {
    Texts texts(how);
    Texts::Job job = Texts::job(text(40), 20);
    texts.begin(0, job);
    texts.grower->take_cost();
    const std::vector<std::vector<Token>> levels[] = {{{}}, {{5}, {9}}, {{5, 6}, {9, 1}}};
    for (const auto& paths : levels) {
      std::vector<Query> queries(paths.size());
      std::vector<std::array<Candidate, kMaxCandidates>> said(paths.size());
      for (std::size_t i = 0; i < paths.size(); ++i) {
        queries[i].state = {std::span(job.text).first(job.at), paths[i]};
        queries[i].sampler = &texts.sampler;
        queries[i].wanted = kMaxCandidates;
        queries[i].candidates = said[i].data();
        EXPECT_FALSE(texts.head->knows(queries[i]));
      }
      texts.head->predict(queries);
      EXPECT_EQ(texts.head->take_cost().passes, 1u) << "one pass a level";
      for (std::size_t i = 0; i < paths.size(); ++i) {
        EXPECT_TRUE(texts.head->knows(queries[i]));
        const auto want = expected(job, paths[i], texts.sampler);
        ASSERT_EQ(queries[i].count, static_cast<int>(want.size()));
        for (std::size_t c = 0; c < want.size(); ++c) {
          EXPECT_EQ(said[i][c].token, want[c].token);
          EXPECT_EQ(said[i][c].logprob, want[c].logprob);
        }
      }
    }
  }
}

TEST(HeadDrafter, AnswersForNodesWhoseParentsNobodyAskedAbout) {
  Texts texts;
  Texts::Job job = Texts::job(text(30), 20);
  texts.begin(0, job);
  const std::vector<Token> path{5, 6, 7};
  std::array<Candidate, kMaxCandidates> said;
  Query query;
  query.state = {std::span(job.text).first(job.at), path};
  query.sampler = &texts.sampler;
  query.candidates = said.data();
  texts.head->predict({&query, 1});
  const auto want = expected(job, path, texts.sampler);
  ASSERT_GT(query.count, 0);
  EXPECT_EQ(said[0].token, want[0].token);
}

TEST(HeadDrafter, AcceptedTokensRunAgainWithTheTargetsStates) {
  // After some cycles it says what a head says that saw all of it as a prompt.
  Texts texts;
  Texts::Job job = Texts::job(text(60), 10);
  texts.begin(0, job);
  for (const std::size_t count : {3, 1, 4, 2}) {
    Texts::Job* one[] = {&job};
    texts.grow(one);
    texts.accept(0, job, count);
  }
  std::array<Candidate, kMaxCandidates> said;
  Query query;
  query.state = {std::span(job.text).first(job.at), {}};
  query.sampler = &texts.sampler;
  query.wanted = kMaxCandidates;
  query.candidates = said.data();
  texts.head->predict({&query, 1});
  const auto want = expected(job, {}, texts.sampler);
  ASSERT_EQ(query.count, static_cast<int>(want.size()));
  for (std::size_t c = 0; c < want.size(); ++c) {
    EXPECT_EQ(said[c].token, want[c].token);
    EXPECT_EQ(said[c].logprob, want[c].logprob);
  }
}

TEST(HeadDrafter, TheSameTreesWhateverChunksThreadsAndNeighbours) {
  const auto words = text(120);
  Texts alone({}, 1, 512, 1);
  Texts::Job first = Texts::job(words, 50);
  alone.begin(0, first, 1);
  alone.run(0, first);
  EXPECT_GT(first.guesses, 100);
  for (const std::size_t chunk : {7, 64, 128}) {
    Texts again;
    Texts::Job job = Texts::job(words, 50);
    again.begin(0, job, chunk);
    again.run(0, job);
    EXPECT_EQ(job.trees, first.trees) << chunk;
  }
  Texts both({}, 2);
  Texts::Job one = Texts::job(words, 50), other = Texts::job(text(120, 8), 90);
  both.begin(0, other);
  both.begin(1, one);
  for (std::size_t count = 1; one.at + count < one.text.size(); count = 1 + count % 3) {
    const bool goes_on = other.at + 1 < other.text.size();
    Texts::Job* pair[] = {&other, &one};
    both.grow(pair);
    both.accept(1, one, count);
    if (goes_on) both.accept(0, other, 1);
  }
  EXPECT_EQ(one.trees, first.trees);
}

TEST(HeadDrafter, ATextThatBeginsLikeAnEarlierOneGoesOnFromItsCache) {
  const auto words = text(120);
  Texts fresh, texts;
  Texts::Job expected_job = Texts::job(words, 80);
  fresh.begin(0, expected_job);
  fresh.run(0, expected_job);
  Texts::Job before = Texts::job(words, 30);  // writes up to 119 of these
  texts.begin(0, before);
  texts.run(0, before);
  Texts::Job job = Texts::job(words, 80);
  texts.begin(0, job, 16, 60);  // the target shows no position below 60
  texts.run(0, job);
  EXPECT_EQ(job.trees, expected_job.trees);
}

TEST(HeadDrafter, WithoutTheBeginningItStartsAtTheFirstPositionShown) {
  const auto words = text(120);
  Texts texts;
  Texts::Job job = Texts::job(words, 80);
  texts.begin(0, job, 16, 60);
  texts.run(0, job);
  EXPECT_GT(job.guesses, 50);
  // What it made of the part is no use to a text that is shown from its beginning.
  Texts fresh;
  Texts::Job expected_job = Texts::job(words, 80), again = Texts::job(words, 80);
  fresh.begin(0, expected_job);
  fresh.run(0, expected_job);
  texts.begin(0, again);
  texts.run(0, again);
  EXPECT_EQ(again.trees, expected_job.trees);
}

TEST(HeadDrafter, IsSilentWhereTheTargetShowedNothingAndSpeaksInTheNextCycle) {
  Texts texts;
  Texts::Job job = Texts::job(text(40), 1);  // before the only token there is no state
  texts.begin(0, job);
  Texts::Job* one[] = {&job};
  texts.grow(one);
  EXPECT_EQ(job.guesses, 0);
  EXPECT_EQ(texts.grower->take_cost().passes, 0u);
  texts.accept(0, job, 1);
  texts.grow(one);
  EXPECT_GT(job.guesses, 0);
  texts.grower->end(0);
  Texts::Job same = Texts::job(text(40), 2);  // the target has all of it, and shows nothing
  texts.begin(0, same, 16, 1);
  Texts::Job* other[] = {&same};
  texts.grow(other);
  texts.accept(0, same, 1);
  texts.grow(other);
  EXPECT_GT(same.guesses, 0);
}

TEST(HeadDrafter, AFullContextStopsTheGuessesOnly) {
  Texts texts({}, 1, 48);
  Texts::Job job = Texts::job(text(100), 40);
  texts.begin(0, job);
  texts.run(0, job);
  EXPECT_GT(job.guesses, 0);
  EXPECT_EQ(job.trees.substr(job.trees.size() - 4), "\n\n\n\n");
}

TEST(HeadDrafter, OffersTheDistributionItsGuessesAreDrawnFrom) {
  Sampling sampling;
  sampling.temperature = 1;
  sampling.acceptance = Acceptance::rejection;
  Texts texts(sampling);
  Texts::Job job = Texts::job(text(40), 20);
  texts.begin(0, job);
  Texts::Job* one[] = {&job};
  texts.grow(one);
  ASSERT_GT(job.guesses, 0);
  const auto q = texts.grower->distribution(0, {std::span(job.text).first(job.at), {}});
  ASSERT_EQ(q.size(), static_cast<std::size_t>(kVocab));
  double sum = 0;
  for (const float p : q) sum += p;
  EXPECT_NEAR(sum, 1, 1e-4);
  const auto& tokens = target().head->weights().tokens;
  for (int id = 0; id < kVocab; ++id) {
    if (!std::binary_search(tokens.begin(), tokens.end(), id)) {
      EXPECT_EQ(q[id], 0.0f) << id;
    }
  }
}

TEST(HeadDrafter, NothingIsAllocatedBetweenBeginAndEnd) {
  Texts texts;
  Texts::Job job = Texts::job(text(300), 150);
  ASSERT_TRUE(texts.grower->begin(0, std::span(job.text).first(job.at), texts.sampler));
  std::vector<const float*> rows;
  for (const auto& row : job.features) rows.push_back(row.data());
  const int hidden = target().model->config().hidden;
  const testing::AllocationCount count;
  const auto show = [&](std::size_t first, std::size_t end) {
    texts.grower->see(0, std::span(job.text).first(std::max(end + 1, job.at)),
                      {static_cast<int>(first), std::span(rows).subspan(first, end - first),
                       texts.grower->feature_layers(), hidden});
  };
  show(0, 100);
  show(100, 149);
  int guesses = 0;
  for (; job.at + 3 < job.text.size(); job.at += 3) {
    job.tree.reset(job.text[job.at - 1]);
    GrowJob grow{0, std::span(job.text).first(job.at), &texts.sampler, kBudget, &job.tree, {}};
    texts.grower->grow({&grow, 1});
    guesses += job.tree.size() - 1;
    show(job.at - 1, job.at + 2);
    texts.grower->observe(0, std::span(job.text).first(job.at), std::span(job.text).subspan(job.at, 3));
  }
  EXPECT_EQ(count.so_far(), 0);
  EXPECT_GT(guesses, 100);
}

TEST(HeadDrafter, IsRefusedWhereItCannotWork) {
  const std::string folder = ::testing::TempDir();
  const std::string path = folder + "coppice_head_drafter_test.gguf";
  ASSERT_TRUE(write_random_head(target().model->config(), {}, path));
  const auto bytes = *random_model({});
  const auto vocabulary = *Vocabulary::read(**gguf::File::parse(bytes, "target"));
  DraftEnvironment environment;
  environment.vocabulary = &vocabulary;
  environment.pool = &target().pool;
  environment.target = target().model;
  const auto make = [&](const std::string& drafters) {
    return make_grower(*parse_drafters(drafters), environment);
  };
  const auto message = [&](const std::string& drafters) {
    auto made = make(drafters);
    EXPECT_FALSE(made.has_value()) << drafters;
    return made ? "" : made.error().message;
  };
  EXPECT_TRUE(make("head(" + path + ") | lookup")) << message("head(" + path + ")");
  EXPECT_NE(message("stage(" + path + ", lookup)").find("not trained with a substitute for missing states"),
            std::string::npos);
  EXPECT_NE(message("head(nothing.gguf)").find("nothing.gguf"), std::string::npos);
  EXPECT_NE(message("head").find("takes 1 file"), std::string::npos);
  environment.for_a_draft = true;  // as inside a stage
  EXPECT_NE(message("head(" + path + ")").find("inside a stage"), std::string::npos);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace coppice::core
