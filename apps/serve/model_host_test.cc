// The thread that owns the engines, on a small random model: what it answers is what the engine alone
// answers.
#include "model_host.h"

#include <coppice/tools.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <future>
#include <thread>

namespace coppice::serve {
namespace {

// Collects what it hears; wait() until the end.
class Hears final : public Listener {
 public:
  explicit Hears(int requests, bool wants = true)
      : texts_(static_cast<std::size_t>(requests)), wants_(wants) {}
  void accepted(const std::vector<std::string>& sources) override { sources_ = sources; }
  bool event(int index, const Event& event) override {
    if (!event.tokens.empty() && !begun_) {
      begun_ = true;
      began_.set_value();
    }
    texts_[static_cast<std::size_t>(index)] += event.text;
    return wants_;
  }
  void done(int index, Generation generation) override {
    stops_.push_back(generation.stop);
    EXPECT_TRUE(generation.stop == StopReason::cancelled ||
                generation.text == texts_[static_cast<std::size_t>(index)]);
  }
  void finished() override { ended_.set_value(); }
  void failed(const ApiError& error) override {
    error_ = error;
    ended_.set_value();
  }
  void wait() { ended_future_.wait(); }
  void wait_for_a_token() { began_future_.wait(); }

  std::vector<std::string> texts_;
  std::vector<std::string> sources_;
  std::vector<StopReason> stops_;
  std::optional<ApiError> error_;

 private:
  const bool wants_;
  bool begun_ = false;
  std::promise<void> began_, ended_;
  std::future<void> began_future_ = began_.get_future(), ended_future_ = ended_.get_future();
};

class Hosted : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    path_ = testing::TempDir() + "coppice_model_host_" + std::to_string(::getpid()) + ".gguf";
    RandomModelOptions random;
    random.output = path_;
    ASSERT_TRUE(write_random_model(random));
    ModelOptions load;
    load.threads = 1;
    auto model = Model::load(path_, load);
    ASSERT_TRUE(model) << model.error().message;
    model_ = *model;
  }
  static void TearDownTestSuite() {
    model_.reset();
    std::remove(path_.c_str());
  }

  void start(const HostOptions& options = {}) {
    HostOptions small = options;
    small.engine.context = 2048;
    small.engine.max_requests = 4;
    auto host = ModelHost::make(*model_, small, Mix{"lookup", "lookup", "fixed"}, metrics_);
    ASSERT_TRUE(host) << host.error().message;
    host_ = *host;
  }
  static Request request(const std::string& prompt, std::uint64_t seed, int tokens = 40) {
    Request out;
    out.prompt = model_->tokenizer().encode(prompt);
    out.sampling.temperature = 0.8f;
    out.sampling.seed = seed;
    out.sampling.max_tokens = tokens;
    out.sampling.ignore_eos = true;
    return out;
  }
  // From the engine alone, without speculation.
  static std::string plain(const Request& request) {
    EngineOptions options;
    options.context = 2048;
    options.speculation.drafters = "none";
    auto engine = Engine::make(*model_, options);
    return engine->generate(request)->text;
  }
  ApiResult<std::uint64_t> ask(const std::shared_ptr<Hears>& hears, std::vector<Request> requests,
                               const Mix& mix = {"lookup", "lookup", "fixed"}) {
    return host_->submit({std::move(requests), mix, hears, steady_seconds()});
  }

  static inline std::string path_;
  static inline std::optional<Model> model_;
  std::shared_ptr<ModelMetrics> metrics_ = std::make_shared<ModelMetrics>();
  std::shared_ptr<ModelHost> host_;
};

TEST_F(Hosted, ManyAtOnceAndInSeveralMixesSayWhatEachSaysAlone) {
  start();
  const Mix mixes[] = {
      {"lookup", "lookup", "fixed"}, {"none", "none", "fixed"}, {"lookup", "lookup", "auto"}};
  std::vector<std::shared_ptr<Hears>> all;
  for (int i = 0; i < 9; ++i) {
    all.push_back(std::make_shared<Hears>(2));
    const auto seed = static_cast<std::uint64_t>(i);
    ASSERT_TRUE(ask(all.back(), {request("the quick brown", seed), request("call me", seed)}, mixes[i % 3]));
  }
  for (int i = 0; i < 9; ++i) {
    Hears& hears = *all[static_cast<std::size_t>(i)];
    hears.wait();
    ASSERT_FALSE(hears.error_);
    EXPECT_EQ(hears.sources_.size(), i % 3 == 1 ? 0u : 1u);
    EXPECT_EQ(hears.texts_[0], plain(request("the quick brown", static_cast<std::uint64_t>(i))));
    EXPECT_EQ(hears.texts_[1], plain(request("call me", static_cast<std::uint64_t>(i))));
  }
  EXPECT_EQ(metrics_->engines, 3);
  EXPECT_EQ(metrics_->read().first.tokens, 9u * 2 * 40);
}

// Takes its time with what it hears.
class Slow final : public Listener {
 public:
  void accepted(const std::vector<std::string>&) override {}
  bool event(int, const Event&) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return true;
  }
  void done(int, Generation) override {}
  void finished() override { ended_.set_value(); }
  void failed(const ApiError&) override { ended_.set_value(); }
  std::promise<void> ended_;
};

TEST_F(Hosted, WhatListenersTakeIsTheThreadsTimeAndNotTheEngines) {
  start();
  const auto slow = std::make_shared<Slow>();
  ASSERT_TRUE(host_->submit({{request("a", 1, 20)}, host_->mix(), slow, steady_seconds()}));
  slow->ended_.get_future().wait();
  host_.reset();  // its last pass is counted then
  EXPECT_GT(metrics_->engine_seconds, 0);
  EXPECT_GE(metrics_->thread_seconds - metrics_->engine_seconds, 20 * 0.002);
}

TEST_F(Hosted, ACancelledRequestLeavesAndEverythingIsFreed) {
  start();
  const auto hears = std::make_shared<Hears>(2);
  const auto id = ask(hears, {request("a", 1, 1500), request("b", 1, 1500)});
  ASSERT_TRUE(id);
  hears->wait_for_a_token();
  host_->cancel(*id);
  hears->wait();
  EXPECT_EQ(hears->stops_, (std::vector<StopReason>{StopReason::cancelled, StopReason::cancelled}));
  EXPECT_EQ(host_->in_flight(), 0);
  EXPECT_EQ(metrics_->running, 0);
  EXPECT_EQ(metrics_->waiting, 0);
  EXPECT_EQ(metrics_->positions, 0);
}

TEST_F(Hosted, AListenerThatWantsNoMoreCancelsItsJob) {
  start();
  const auto hears = std::make_shared<Hears>(2, false);
  ASSERT_TRUE(ask(hears, {request("a", 1, 1500), request("b", 1, 1500)}));
  hears->wait();
  EXPECT_EQ(hears->stops_.size(), 2u);
  EXPECT_EQ(metrics_->running, 0);
}

TEST_F(Hosted, OneMoreThanMayWaitIsRefused) {
  HostOptions options;
  options.max_waiting = 1;
  start(options);
  std::vector<std::shared_ptr<Hears>> all;
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 5; ++i) {
    all.push_back(std::make_shared<Hears>(1));
    const auto id = ask(all.back(), {request("a", 1, 1500)});
    ASSERT_TRUE(id);
    ids.push_back(*id);
  }
  const auto refused = ask(std::make_shared<Hears>(1), {request("a", 1)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 429);
  EXPECT_EQ(metrics_->refused, 1u);
  const auto never = ask(std::make_shared<Hears>(6), std::vector<Request>(6, request("a", 1)));
  EXPECT_EQ(never.error().status, 400) << "waiting would not help";
  for (const std::uint64_t id : ids) host_->cancel(id);
  for (const auto& hears : all) hears->wait();
}

TEST_F(Hosted, AJobWithARequestThatIsRefusedIsRefusedWhole) {
  start();
  const auto hears = std::make_shared<Hears>(2);
  Request too_long = request("a", 1);
  too_long.prompt.assign(3000, too_long.prompt[0]);
  ASSERT_TRUE(ask(hears, {request("a", 1), too_long}));
  hears->wait();
  ASSERT_TRUE(hears->error_);
  EXPECT_EQ(hears->error_->status, 400);
  EXPECT_EQ(hears->error_->code, "context_length_exceeded");
  EXPECT_EQ(hears->error_->param, "prompt");
  const auto next = std::make_shared<Hears>(1);
  ASSERT_TRUE(ask(next, {request("a", 1)}));
  next->wait();
  EXPECT_EQ(next->texts_[0], plain(request("a", 1)));
  EXPECT_EQ(host_->in_flight(), 0);
}

TEST_F(Hosted, AGrammarOrBansThatLeaveNothingToDrawAreTheSendersMistake) {
  start();
  Request banned = request("a", 1);
  for (Token token = 0; token < model_->info().vocab; ++token) banned.sampling.banned.push_back(token);
  std::string rule = "root ::= \"0\"";
  for (int i = 1; i < 50000; ++i) rule += " | \"" + std::to_string(i) + "\"";
  Request ambiguous = request("a", 1);
  ambiguous.sampling.ignore_eos = false;
  ambiguous.sampling.grammar = *Grammar::parse(rule);
  const std::pair<Request, const char*> wrong[] = {{banned, "logit_bias"}, {ambiguous, "grammar"}};
  for (const auto& [asked, field] : wrong) {
    const auto hears = std::make_shared<Hears>(1);
    ASSERT_TRUE(ask(hears, {asked}));
    hears->wait();
    ASSERT_TRUE(hears->error_) << field;
    EXPECT_EQ(hears->error_->status, 400);
    EXPECT_EQ(hears->error_->param, field);
    EXPECT_EQ(hears->error_->message.find("no token can be drawn"), 0u) << hears->error_->message;
  }
}

TEST_F(Hosted, ABudgetOfGuessesIsNoMistakeWhereNobodyGuesses) {
  start();
  const auto hears = std::make_shared<Hears>(1);
  Request budget = request("a", 1);
  budget.nodes = 13;
  ASSERT_TRUE(ask(hears, {budget}, {"none", "none", "fixed"}));
  hears->wait();
  EXPECT_FALSE(hears->error_);
  EXPECT_EQ(hears->texts_[0], plain(request("a", 1)));
}

TEST_F(Hosted, AnAnswerEndsWhenItsTimeIsOver) {
  HostOptions options;
  options.request_seconds = 0.05;
  start(options);
  const auto hears = std::make_shared<Hears>(1);
  ASSERT_TRUE(ask(hears, {request("a", 1, 2000)}));
  hears->wait();
  EXPECT_EQ(hears->stops_, std::vector<StopReason>{StopReason::timed_out});
}

TEST_F(Hosted, EnginesBeyondTheLimitReplaceIdleOnesOrAreRefused) {
  HostOptions options;
  options.max_engines = 2;
  start(options);
  const Mix second{"none", "none", "fixed"}, third{"lookup", "lookup", "auto"};
  const auto busy = std::make_shared<Hears>(1);
  const auto id = ask(busy, {request("a", 1, 1500)}, second);
  busy->wait_for_a_token();
  const auto refused = std::make_shared<Hears>(1);
  ASSERT_TRUE(ask(refused, {request("a", 1)}, third));
  refused->wait();
  ASSERT_TRUE(refused->error_);
  EXPECT_EQ(refused->error_->status, 503);
  host_->cancel(*id);
  busy->wait();
  const auto taken = std::make_shared<Hears>(1);
  ASSERT_TRUE(ask(taken, {request("a", 1)}, third));
  taken->wait();
  EXPECT_FALSE(taken->error_);
  EXPECT_EQ(metrics_->engines, 2);
}

TEST_F(Hosted, WhoIsInWorkWhenTheHostEndsIsTold) {
  start();
  const auto hears = std::make_shared<Hears>(1);
  ASSERT_TRUE(ask(hears, {request("a", 1, 1500)}));
  hears->wait_for_a_token();
  host_.reset();
  hears->wait();
  ASSERT_TRUE(hears->error_);
  EXPECT_EQ(hears->error_->status, 503);
  EXPECT_EQ(metrics_->bytes, 0);
}

}  // namespace
}  // namespace coppice::serve
