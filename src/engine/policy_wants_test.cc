// What the engine finds out for a policy is what it is said to be. The draft is the target itself: it must
// think of every token what the target thinks.
#include <gtest/gtest.h>

#include <cmath>

#include "draft/model_drafter.h"
#include "engine/engine.h"
#include "model/random_model.h"
#include "model/testing.h"

namespace coppice::core {
namespace {

constexpr int kContext = 128, kLayer = 1, kAsked = 10;

struct Seen {
  std::vector<float> surprises;            // of requests that began
  std::vector<std::vector<float>> states;  // before each pass
  std::vector<int> lengths;                // tokens then
  int chances = 0, drawn = 0;              // tokens
  float farthest = 0;                      // ln of target's and draft's chance from each other
};

class Curious : public Policy {
 public:
  explicit Curious(Seen& seen) : seen_(seen) {}
  PolicyWants wants() const override { return {kAsked, true, kLayer}; }
  void plan(std::span<Decoding> requests) override {
    for (Decoding& request : requests) {
      request.budget = within_reach(request);
      if (request.first) seen_.surprises.push_back(request.surprise.value_or(-1.0f));
      seen_.states.emplace_back(request.state.begin(), request.state.end());
      seen_.lengths.push_back(request.length);
      Decision decision;
      decision.rule = Rule::batch;
      decision.number = request.length;
      request.log->add(decision);
    }
  }
  void learn(std::span<const Decoding> requests, const PassTimes&) override {
    for (const Decoding& request : requests) {
      seen_.drawn += static_cast<int>(request.drawn.size());
      seen_.chances += static_cast<int>(request.chances.size());
      for (const TokenChance& chance : request.chances)
        seen_.farthest = std::max(seen_.farthest, std::abs(chance.target - chance.draft));
    }
  }

 private:
  Seen& seen_;
};

struct World {
  ThreadPool pool{1};
  std::vector<std::byte> bytes = *random_model({});
  std::shared_ptr<const gguf::File> file = *gguf::File::parse(bytes, "random");
  std::shared_ptr<const Model> model = *Model::load(file, pool);
  Seen seen;
  std::vector<Token> tokens;  // prompt and answer
  std::vector<Decision> decisions;
  Stats stats;

  void answer(float temperature) {
    ModelDrafter::Options options;
    options.context = kContext;
    std::vector<std::unique_ptr<Drafter>> drafters;
    drafters.push_back(*ModelDrafter::make(model, nullptr, options, pool));
    EngineSetup setup;
    setup.model = model;
    setup.tokenizer = *Tokenizer::make(*Vocabulary::read(*file));
    setup.pool = &pool;
    setup.context = kContext;
    setup.chunk = 8;
    setup.grower = std::make_unique<Grower>(std::move(drafters), Grower::Options{});
    setup.policy = std::make_unique<Curious>(seen);
    setup.speculation.nodes = setup.speculation.depth = 4;
    setup.speculation.price = setup.speculation.pass_price = 0;
    auto engine = *Engine::make(std::move(setup));
    Request request;
    for (Token token = 40; token < 60; ++token) request.prompt.push_back(token);
    request.sampling.temperature = temperature;
    request.sampling.top_k = 8;
    request.sampling.max_tokens = 40;
    request.sampling.ignore_eos = true;
    request.on_event = [&](const Event& event) {
      decisions.insert(decisions.end(), event.decisions.begin(), event.decisions.end());
      return true;
    };
    tokens = request.prompt;
    const auto id = *engine->submit(request);
    while (engine->step()) {
    }
    const auto generation = *engine->take(id);
    for (const EmittedToken& token : generation.tokens) tokens.push_back(token.token);
    stats = generation.stats;
  }
};

TEST(PolicyWants, ADraftThatIsTheTargetThinksOfEveryTokenWhatTheTargetThinks) {
  for (const float temperature : {0.0f, 1.0f}) {
    World world;
    world.answer(temperature);
    EXPECT_GT(world.seen.chances, 20);
    EXPECT_LE(world.seen.chances, world.seen.drawn);
    EXPECT_LT(world.seen.farthest, 1e-6) << temperature;
  }
}

TEST(PolicyWants, ThePromptsSurpriseIsThatOfItsLastTokensUnderTheDraft) {
  World world;
  world.answer(0);
  const auto prompt = std::span(world.tokens).first(20);
  auto context = testing::make_context(world.model, world.pool);
  const auto logits = testing::run_chain(*context, *context->cache().open(), prompt);
  const int vocab = world.model->config().vocab;
  const Sampler sampler = *Sampler::make({}, vocab, {});
  Sampler::Scratch scratch(vocab);
  double sum = 0;
  for (std::size_t p = 19 - kAsked; p < 19; ++p)
    sum -= sampler.logprob(prompt[p + 1], logits[p], {prompt.first(p + 1), {}}, scratch);
  ASSERT_EQ(world.seen.surprises.size(), 1u) << "once a request";
  EXPECT_NEAR(world.seen.surprises[0], sum / kAsked, 1e-5);
}

TEST(PolicyWants, TheStateIsTheTargetsAtTheTokenBeforeTheRoot) {
  World world;
  world.answer(1.0f);
  ContextOptions options;
  options.kv.positions = 2 * kContext;
  options.kv.slots = 1;
  options.max_rows = 128;
  options.feature_layers = {kLayer};
  auto context = *Context::make(world.model, options, world.pool);
  const int sequence = *context->cache().open();
  ASSERT_TRUE(context->cache().reserve(sequence, static_cast<int>(world.tokens.size())));
  std::vector<Row> rows;
  for (std::size_t p = 0; p < world.tokens.size(); ++p)
    rows.push_back({sequence, world.tokens[p], static_cast<int>(p), kCommitted, kCommitted, kFeatures});
  ASSERT_TRUE(context->forward(rows));
  ASSERT_GT(world.seen.states.size(), 5u);
  for (std::size_t i = 0; i < world.seen.states.size(); ++i) {
    const auto features = context->features(world.seen.lengths[i] - 2);
    EXPECT_EQ(world.seen.states[i], std::vector<float>(features.begin(), features.end())) << i;
  }
}

TEST(PolicyWants, DecisionsAreCountedAndToldWithTheirCycle) {
  World world;
  world.answer(0);
  EXPECT_EQ(world.decisions.size(), world.stats.cycles);
  EXPECT_EQ(world.stats.decided(Rule::batch), world.stats.cycles);
  for (std::size_t i = 0; i < world.decisions.size(); ++i) {
    EXPECT_EQ(world.decisions[i].cycle, i);
    EXPECT_EQ(world.decisions[i].number, world.seen.lengths[i]);
  }
}

}  // namespace
}  // namespace coppice::core
