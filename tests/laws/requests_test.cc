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
  EXPECT_EQ(failed.failure, FailureKind::nothing_to_draw);
  EXPECT_NE(failed.error.find("no token can be drawn"), std::string::npos) << failed.error;
  EXPECT_EQ(ids_of(finish(*engine, submit(*engine, request_of(c)))), run(model, c).ids);
}

TEST(Requests, OneWhoseTimeIsUpSaysSoAndKeepsWhatCame) {
  const LawModel& model = random_llama();
  Case c = chat_case(20, 5);
  const Outcome whole = run(model, c);
  double now = 0;
  c.clock = [&now] { return now; };
  auto engine = make_engine(model, c);
  ASSERT_TRUE(engine);
  Request hurried = request_of(c);
  hurried.timeout_seconds = 10;
  const std::uint64_t first = submit(*engine, hurried);
  const std::uint64_t second = submit(*engine, hurried);  // waits for a place
  const std::uint64_t patient = submit(*engine, request_of(c));
  for (int i = 0; i < 6; ++i) engine->step();
  now = 9.9;
  engine->step();
  EXPECT_FALSE(engine->take(first).has_value());
  now = 10;
  engine->step();
  const auto stopped = engine->take(first), never = engine->take(second);
  ASSERT_TRUE(stopped && never);
  EXPECT_EQ(stopped->stop, StopReason::timed_out);
  EXPECT_EQ(to_string(stopped->stop), "timed_out");
  const auto ids = ids_of(*stopped);
  ASSERT_GT(ids.size(), 0u);
  ASSERT_LT(ids.size(), whole.ids.size());
  EXPECT_TRUE(std::equal(ids.begin(), ids.end(), whole.ids.begin()));
  EXPECT_EQ(never->stop, StopReason::timed_out);
  EXPECT_TRUE(never->tokens.empty());
  EXPECT_EQ(ids_of(finish(*engine, patient)), whole.ids);
  hurried.timeout_seconds = -1;
  EXPECT_NE(engine->submit(hurried).error().message.find("timeout_seconds = -1"), std::string::npos);
}

TEST(Requests, OneMoreThanMayWaitIsRefusedAndOthersAreNot) {
  const LawModel& model = random_llama();
  Case c = chat_case(20, 5);
  c.max_waiting = 2;
  auto engine = make_engine(model, c);
  ASSERT_TRUE(engine);
  const std::uint64_t first = submit(*engine, request_of(c));
  engine->step();
  submit(*engine, request_of(c));
  const std::uint64_t last = submit(*engine, request_of(c));
  const auto refused = engine->submit(request_of(c));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "1 requests are in work and 2 wait, as many as may; try again later");
  EXPECT_EQ(ids_of(finish(*engine, first)), run(model, c).ids);
  EXPECT_TRUE(engine->take(last).has_value());
  submit(*engine, request_of(c));
}

TEST(Requests, AlikePromptsAtOnceAreReadOnceAndTheirBlocksAreShared) {
  const LawModel& model = random_llama();
  Case cases[3] = {chat_case(150, 1), chat_case(150, 1), chat_case(150, 1)};
  for (std::size_t i = 0; i < 3; ++i) {
    cases[i].prompt.resize(120 + 10 * i);
    cases[i].prompt.push_back(static_cast<Token>(50 + i));  // they part here
    cases[i].sampling.stream = static_cast<std::uint32_t>(i);
  }
  auto engine = make_engine(model, cases[0], 3);
  ASSERT_TRUE(engine);
  std::uint64_t ids[3], reused = 0, unshared = 0, tree_rows = 0;
  for (std::size_t i = 0; i < 3; ++i) ids[i] = submit(*engine, request_of(cases[i]));
  while (engine->step()) {
  }
  for (std::size_t i = 0; i < 3; ++i) {
    const auto generation = engine->take(ids[i]);
    ASSERT_TRUE(generation.has_value());
    EXPECT_EQ(ids_of(*generation), run(model, cases[i]).ids) << i;
    const Stats& stats = generation->stats;
    reused += stats.reused_tokens;
    unshared += stats.prompt_tokens - 1 - stats.reused_tokens;  // the last token is the first root
    tree_rows += stats.cycles + stats.guesses;
  }
  EXPECT_GE(reused, 2u * 112u) << "whole blocks of the first prompt, for both others";
  EXPECT_EQ(engine->context().stats().rows, unshared + tree_rows);
}

TEST(Requests, AShortPromptIsNotHeldUpByALongOneAndALongOneGoesOn) {
  const LawModel& model = random_llama();
  Case slow = chat_case(400, 1), quick = chat_case(24, 2);
  slow.chunk = quick.chunk = 16;
  auto engine = make_engine(model, slow, 2);
  ASSERT_TRUE(engine);
  const std::uint64_t long_one = submit(*engine, request_of(slow));
  engine->step();
  const std::uint64_t short_one = submit(*engine, request_of(quick));
  int steps = 0;
  while (!engine->take(short_one).has_value()) {
    ASSERT_TRUE(engine->step());
    ++steps;
  }
  EXPECT_LE(steps, 3 + 24) << "half of each chunk, and a pass for each token at most";
  EXPECT_FALSE(engine->take(long_one).has_value());
  EXPECT_EQ(ids_of(finish(*engine, long_one)), run(model, slow).ids);
}

TEST(Requests, WhoFindsTheCacheFullWaitsThoughThereIsAPlace) {
  const LawModel& model = random_llama();
  Case c = chat_case(300, 1), d = chat_case(290, 2);
  c.positions = 512;
  auto engine = make_engine(model, c, 2);
  ASSERT_TRUE(engine);
  bool begun = false;
  Request waits = request_of(d);
  waits.on_event = [&](const Event&) { return begun = true; };
  const std::uint64_t first = submit(*engine, request_of(c)), second = submit(*engine, waits);
  std::optional<Generation> answered;
  while (!(answered = engine->take(first)).has_value()) {
    EXPECT_FALSE(begun);
    ASSERT_TRUE(engine->step());
  }
  EXPECT_EQ(ids_of(*answered), run(model, c).ids);
  EXPECT_EQ(ids_of(finish(*engine, second)), run(model, d).ids);
  EngineSetup setup;
  setup.model = model.model;
  setup.context = 512;
  setup.positions = 500;
  EXPECT_NE(Engine::check(setup).error().message.find("a cache of 500 positions"), std::string::npos);
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

TEST(Requests, AForcedAnswerIsWrittenAsItIsAndGoesOnAsDrawn) {
  const LawModel& model = random_llama();
  Case c = chat_case(20, 6);
  c.sampling.logprobs = 0;
  const Outcome drawn = run(model, c);
  for (const std::string drafters : {"none", "lookup"}) {
    c.drafters = drafters;
    auto engine = make_engine(model, c);
    ASSERT_TRUE(engine);
    Request own = request_of(c);
    own.forced.assign(drawn.ids.begin(), drawn.ids.begin() + 10);
    const Generation same = finish(*engine, submit(*engine, own));
    EXPECT_EQ(ids_of(same), drawn.ids);
    for (std::size_t i = 0; i < same.tokens.size(); ++i)
      EXPECT_EQ(same.tokens[i].logprob, drawn.generation.tokens[i].logprob);
    Request other = request_of(c);
    other.forced = {40, 41, 42, 40, 41, 42, 40, 41, 42, 40, 41, 42, 40,
                    41, 42, 40, 41, 42, 40, 41, 42, 40, 41, 42, 7};
    const Generation given = finish(*engine, submit(*engine, other));
    EXPECT_EQ(ids_of(given), std::vector<Token>(other.forced.begin(), other.forced.begin() + 24));
    if (drafters != "none") {
      EXPECT_GT(given.stats.accepted, 8u);
    }
  }
}

TEST(Requests, AForcedAnswerThatCannotBeIsRefused) {
  const LawModel& model = random_llama();
  Case c = chat_case(20, 6);
  auto engine = make_engine(model, c);
  ASSERT_TRUE(engine);
  Request request = request_of(c);
  request.forced = {1000000};
  EXPECT_NE(engine->submit(request).error().message.find("the forced answer has token id 1000000"),
            std::string::npos);
  request.forced = {5};
  request.sampling.acceptance = Acceptance::rejection;
  EXPECT_NE(engine->submit(request).error().message.find("rejection"), std::string::npos);
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
