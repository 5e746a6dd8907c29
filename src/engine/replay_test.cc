// What draft/replay.h promises: along a text that the engine wrote it grows the engine's trees.
#include "draft/replay.h"

#include <gtest/gtest.h>

#include "draft/head_drafter.h"
#include "draft/lookup_drafter.h"
#include "draft/mixture.h"
#include "draft/target_states.h"
#include "engine/engine.h"
#include "model/random_head.h"
#include "model/testing.h"

namespace coppice::core {
namespace {

constexpr int kContext = 256, kPrompt = 21, kAnswer = 120;
constexpr Budget kBudget{8, 4, 0.0f, 1.0f, 0.0f};

struct Target {
  ThreadPool pool{2};
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const HeadModel> head;

  Target() {
    RandomModelOptions shape;
    shape.layers = 3;
    const auto bytes = *random_model(shape);
    const auto file = *gguf::File::parse(bytes, "random");
    model = *Model::load(file, pool);
    tokenizer = *Tokenizer::make(*Vocabulary::read(*file));
    head = *HeadModel::load(**gguf::File::parse(*random_head(model->config(), {}), "head"), model, pool);
  }

  // head | lookup; the chance of a candidate is mostly the head's own.
  std::unique_ptr<Grower> grower() {
    HeadDrafter::Options options;
    options.context = kContext;
    std::vector<std::unique_ptr<Drafter>> drafters;
    drafters.push_back(*HeadDrafter::make(head, options, pool));
    drafters.push_back(std::make_unique<LookupDrafter>(1, kContext));
    auto made = std::make_unique<Grower>(std::move(drafters), Grower::Options{});
    std::vector<float> prior = Mixture::untaught(made->features(), made->buckets());
    for (int mode = 0; mode < 2; ++mode)
      for (int bucket = 0; bucket < made->buckets(); ++bucket)
        prior[mode * Mixture::shape(made->features(), made->buckets()).weights() + bucket * made->features() +
              kOwnFeatures + 1] = 4.0f;
    EXPECT_TRUE(made->set_prior(prior));
    return made;
  }
};

struct Node {
  Token token;
  int parent;
  float value;
  bool operator==(const Node&) const = default;
};
using Trees = std::vector<std::vector<Node>>;  // by cycle

// The engine's answer is appended to `text`.
Trees written(Target& target, const Sampling& sampling, std::vector<Token>& text) {
  EngineSetup setup;
  setup.model = target.model;
  setup.tokenizer = target.tokenizer;
  setup.pool = &target.pool;
  setup.grower = target.grower();
  setup.context = kContext;
  setup.chunk = 8;  // the prompt in three passes
  setup.speculation.policy = "fixed";
  setup.speculation.nodes = kBudget.nodes;
  setup.speculation.depth = kBudget.depth;
  setup.speculation.price = kBudget.price;
  setup.speculation.pass_price = kBudget.pass_price;
  auto engine = *Engine::make(std::move(setup));
  Request request;
  request.prompt = text;
  request.sampling = sampling;
  request.trace = true;
  Trees trees;
  request.on_event = [&](const Event& event) {
    for (const EmittedToken& token : event.tokens) text.push_back(token.token);
    if (event.tree == nullptr) return true;
    trees.emplace_back();
    for (const auto& node : event.tree->nodes)
      if (node.parent >= 0) trees.back().push_back({node.token, node.parent, node.value});
    return true;
  };
  EXPECT_TRUE(engine->submit(std::move(request)));
  while (engine->step()) {
  }
  return trees;
}

Trees replayed(Target& target, const Sampling& sampling, std::span<const Token> text) {
  auto grower = target.grower();
  auto states = *TargetStates::make(target.model, grower->feature_layers(), kContext, target.pool);
  const auto sampler =
      *Sampler::make(sampling, target.model->config().vocab, target.tokenizer->vocabulary().end_tokens);
  Trees trees;
  const auto see = [&](const TokenTree& tree, std::span<const Token>) {
    trees.emplace_back();
    for (int n = 1; n < tree.size(); ++n)
      trees.back().push_back({tree.token(n), tree.parent(n), tree.value(n)});
  };
  EXPECT_TRUE(states->of(text.first(30)));  // another text before
  EXPECT_TRUE(replay(*grower, {text, kPrompt, *states->of(text)}, kBudget, sampler, see));
  return trees;
}

TEST(Replay, AlongATextOfTheEngineGrowsItsTreesFromTheStatesItShowed) {
  Target target;
  for (const float temperature : {0.0f, 3.0f}) {  // hot draws are mostly noise, which the head shares
    Sampling sampling;
    sampling.temperature = temperature;
    sampling.max_tokens = kAnswer;
    sampling.ignore_eos = true;
    std::vector<Token> text = testing::some_tokens(kPrompt, target.model->config().vocab);
    Trees engine = written(target, sampling, text);
    ASSERT_EQ(text.size(), static_cast<std::size_t>(kPrompt + kAnswer));
    Trees again = replayed(target, sampling, text);
    EXPECT_LT(engine.size(), static_cast<std::size_t>(kAnswer));  // guesses were taken
    // The last trees of the engine are cut where the answer ends.
    const std::size_t whole = engine.size() - kBudget.depth - 1;
    ASSERT_GT(whole, 20u);
    ASSERT_GE(again.size(), whole);
    for (std::size_t cycle = 0; cycle < whole; ++cycle)
      EXPECT_EQ(again[cycle], engine[cycle]) << temperature << ", cycle " << cycle;
  }
}

TEST(Replay, AtEveryTokenThereIsATree) {
  Target target;
  auto grower = target.grower();
  auto states = *TargetStates::make(target.model, grower->feature_layers(), kContext, target.pool);
  const auto text = testing::some_tokens(60, target.model->config().vocab);
  const auto sampler = *Sampler::make({}, target.model->config().vocab, {});
  const auto sum =
      replay(*grower, {text, kPrompt, *states->of(text)}, kBudget, sampler, {}, Pace::each_token);
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->tokens, 60u - kPrompt);
  EXPECT_EQ(sum->passes, sum->tokens);
}

TEST(TargetStates, AModelOfLearnedPositionsTakesNoLongerTexts) {
  RandomModelOptions shape;
  shape.architecture = "gpt2";
  ThreadPool pool(1);
  const auto model = testing::make_model(shape, pool);
  const int layers[] = {1};
  const auto made = TargetStates::make(model, layers, model->config().context_length + 1, pool);
  EXPECT_NE(testing::message(made).find("too long"), std::string::npos);
}

}  // namespace
}  // namespace coppice::core
