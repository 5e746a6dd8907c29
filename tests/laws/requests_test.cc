// What a request may count on, whatever its neighbours and those before it did: cancelled, failed or sharing
// its passes.
#include <gtest/gtest.h>

#include <numeric>

#include "laws/harness.h"

namespace coppice::core::laws {
namespace {

Case chat_case(std::size_t prompt, std::uint64_t seed) {
  Case c;
  for (std::size_t i = 0; i < prompt; ++i) c.prompt.push_back(static_cast<Token>(33 + (i * 29 + seed) % 90));
  c.sampling.max_tokens = 24;
  c.sampling.ignore_eos = true;
  c.sampling.temperature = 1;
  c.sampling.seed = seed;
  c.drafters = "lookup";
  return c;
}

Generation finish(Engine& engine, std::uint64_t id) {
  while (engine.step()) {
  }
  auto generation = engine.take(id);
  EXPECT_TRUE(generation.has_value());
  return generation.value_or(Generation{});
}

std::uint64_t submit(Engine& engine, Request request) {
  auto id = engine.submit(std::move(request));
  EXPECT_TRUE(id) << (id ? "" : id.error().message);
  return id.value_or(0);
}

TEST(Requests, AnAnswerCancelledAnywhereLeavesAPrefixThatGivesTheSameText) {
  const LawModel& model = random_llama();
  const Case c = chat_case(60, 5);
  const Outcome fresh = run(model, c);
  for (int steps = 1; steps <= 8; ++steps) {  // the prompt takes 4
    auto engine = make_engine(model, c);
    ASSERT_TRUE(engine);
    const std::uint64_t cancelled = submit(*engine, request_of(c));
    for (int i = 0; i < steps; ++i) engine->step();
    engine->cancel(cancelled);
    EXPECT_EQ(finish(*engine, cancelled).stop, StopReason::cancelled);
    const Generation again = finish(*engine, submit(*engine, request_of(c)));
    EXPECT_EQ(ids_of(again), fresh.ids) << "cancelled after " << steps << " passes";
    EXPECT_GT(again.stats.reused_tokens, 0u);
  }
}

TEST(Requests, ACancelledNeighbourAndAWaitingOneChangeNothing) {
  const LawModel& model = random_llama();
  Case cases[] = {chat_case(20, 1), chat_case(50, 2), chat_case(35, 3)};
  auto engine = make_engine(model, cases[0], 2);
  ASSERT_TRUE(engine);
  std::vector<std::uint64_t> ids;
  for (const Case& c : cases) ids.push_back(submit(*engine, request_of(c)));
  for (int i = 0; i < 6; ++i) engine->step();
  engine->cancel(ids[0]);
  const Generation waited = finish(*engine, ids[2]);
  EXPECT_EQ(engine->take(ids[0])->stop, StopReason::cancelled);
  EXPECT_EQ(ids_of(*engine->take(ids[1])), run(model, cases[1]).ids);
  EXPECT_EQ(ids_of(waited), run(model, cases[2]).ids);
}

TEST(Requests, AFailedOneSaysWhyAndTheNextStartsAnew) {
  const LawModel& model = random_llama();
  const Case c = chat_case(30, 7);
  auto engine = make_engine(model, c);
  ASSERT_TRUE(engine);
  Request impossible = request_of(c);
  impossible.sampling.banned.resize(static_cast<std::size_t>(model.model->config().vocab));
  std::iota(impossible.sampling.banned.begin(), impossible.sampling.banned.end(), 0);
  const Generation failed = finish(*engine, submit(*engine, impossible));
  EXPECT_EQ(failed.stop, StopReason::failed);
  EXPECT_NE(failed.error.find("no token can be drawn"), std::string::npos) << failed.error;
  EXPECT_EQ(ids_of(finish(*engine, submit(*engine, request_of(c)))), run(model, c).ids);
}

TEST(Requests, PassesThatAreSharedCountOnceInTheSum) {
  const LawModel& model = random_llama();
  const std::string drafters = "model(\"" + other_llama().path + "\")";
  Case cases[] = {chat_case(1, 1), chat_case(1, 2)};  // a prompt of one token has no pass of its own
  cases[0].drafters = drafters;
  auto engine = make_engine(model, cases[0], 2);
  ASSERT_TRUE(engine);
  const std::uint64_t first = submit(*engine, request_of(cases[0]));
  const std::uint64_t second = submit(*engine, request_of(cases[1]));
  Stats sum = finish(*engine, first).stats;
  sum.add(engine->take(second)->stats);
  EXPECT_EQ(sum.target_passes, engine->context().stats().passes);
  EXPECT_GT(sum.cycles, sum.target_passes);
  EXPECT_LE(sum.draft_passes, sum.target_passes * 16u);  // depth 8, and not twice that for two requests
}

TEST(Requests, RejectionGivesLogProbabilitiesToo) {
  const LawModel& model = random_llama();
  Case c = chat_case(20, 4);
  c.sampling.logprobs = 2;
  c.sampling.acceptance = Acceptance::rejection;
  const Outcome out = run(model, c);
  ASSERT_EQ(out.generation.tokens.size(), 24u);
  for (const EmittedToken& token : out.generation.tokens) {
    EXPECT_LT(token.logprob, 0.0f);
    ASSERT_EQ(token.top.size(), 2u);
    EXPECT_GE(token.top[0].second, token.top[1].second);
    EXPECT_LE(token.logprob, token.top[0].second);
  }
}

}  // namespace
}  // namespace coppice::core::laws
