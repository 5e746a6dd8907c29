// Law 2: a row does not know its neighbours - chunk sizes, threads, and what else is in the cache.
#include <gtest/gtest.h>

#include "laws/harness.h"

namespace coppice::core::laws {
namespace {

Case long_prompt() {
  Case c;
  for (int i = 0; i < 150; ++i) c.prompt.push_back(static_cast<Token>(35 + (i * i + 7 * i) % 90));
  c.sampling.max_tokens = 24;
  c.sampling.temperature = 1;
  c.sampling.ignore_eos = true;
  return c;
}

TEST(Rows, ThePromptMayComeInChunksOfAnySize) {
  for (const LawModel* model : random_models()) {
    Case c = long_prompt();
    c.chunk = 512;
    const Outcome whole = run(*model, c);
    for (int chunk : {1, 2, 7, 16, 33, 64, 149}) {
      c.chunk = chunk;
      expect_same(whole, run(*model, c), model->name + " chunk " + std::to_string(chunk));
    }
  }
}

TEST(Rows, AnyNumberOfThreads) {
  for (const LawModel* model : random_models()) {
    Case c = long_prompt();
    c.threads = 1;
    const Outcome one = run(*model, c);
    for (int threads : {2, 3, 5}) {
      c.threads = threads;
      const Outcome plain = run(*model, c);
      expect_same(one, plain, model->name + " threads " + std::to_string(threads));
      Case guessing = c;
      guessing.drafters = "lookup";
      expect_same(one, run(*model, guessing), model->name + " lookup, threads " + std::to_string(threads));
    }
  }
}

TEST(Rows, RequestsInOnePassDoNotKnowEachOther) {
  const LawModel& model = random_llama();
  std::vector<Case> cases;
  for (int i = 0; i < 4; ++i) {
    Case c = long_prompt();
    c.prompt.resize(static_cast<std::size_t>(20 + 40 * i));
    c.sampling.seed = static_cast<std::uint64_t>(i);
    c.sampling.max_tokens = 10 + 5 * i;
    cases.push_back(c);
  }
  Case guessing = cases[0];
  guessing.drafters = "scripted";
  guessing.truth = 0;
  guessing.nodes = 6;
  guessing.chunk = 24;
  auto engine = make_engine(model, guessing, 3);  // the fourth waits
  ASSERT_TRUE(engine);
  std::vector<std::uint64_t> ids;
  for (const Case& c : cases) {
    auto id = engine->submit(request_of(c));
    ASSERT_TRUE(id);
    ids.push_back(*id);
  }
  while (engine->step()) {
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    auto together = engine->take(ids[i]);
    ASSERT_TRUE(together);
    EXPECT_EQ(ids_of(*together), run(model, cases[i]).ids) << "request " << i;
  }
}

TEST(Rows, APrefixFoundInTheCacheGivesTheSameText) {
  const LawModel& model = random_llama();
  Case c = long_prompt();
  const Outcome fresh = run(model, c);
  auto engine = make_engine(model, c);
  ASSERT_TRUE(engine);
  Request request = request_of(c);
  for (std::size_t cut : {150u, 97u, 150u}) {  // the same, one that begins alike, and the first again
    request.prompt.assign(c.prompt.begin(), c.prompt.begin() + cut);
    auto id = engine->submit(request);
    ASSERT_TRUE(id);
    while (engine->step()) {
    }
    auto generation = engine->take(*id);
    ASSERT_TRUE(generation);
    if (cut != 150) {
      EXPECT_EQ(generation->stats.reused_tokens, 96u);
      continue;
    }
    EXPECT_EQ(ids_of(*generation), fresh.ids);
  }
}

}  // namespace
}  // namespace coppice::core::laws
