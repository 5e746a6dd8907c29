// The decode cycle does not allocate: counted by replacing operator new in this test binary.
#include <gtest/gtest.h>

#include "base/allocation_count.h"
#include "draft/lookup_drafter.h"
#include "draft/model_drafter.h"
#include "engine/engine.h"
#include "model/random_model.h"

namespace coppice::core {
namespace {

constexpr int kContext = 256;

std::unique_ptr<Engine> make_engine(ThreadPool& pool, const std::string& policy) {
  static const auto bytes = *random_model({});
  const auto file = *gguf::File::parse(bytes, "random");
  EngineSetup setup;
  setup.model = *Model::load(file, pool);
  setup.tokenizer = *Tokenizer::make(*Vocabulary::read(*file));
  setup.pool = &pool;
  setup.context = kContext;
  setup.speculation.price = 0;
  setup.speculation.policy = policy;
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::make_unique<LookupDrafter>(1, kContext));
  if (policy.starts_with("adaptive")) {  // which asks what a draft thinks of what is drawn
    ModelDrafter::Options options;
    options.context = kContext;
    drafters.push_back(*ModelDrafter::make(setup.model, nullptr, options, pool));
  }
  setup.grower = std::make_unique<Grower>(std::move(drafters), Grower::Options{});
  return std::move(*Engine::make(std::move(setup)));
}

TEST(Allocation, NoCycleBetweenTheFirstAndTheLastAllocates) {
  ThreadPool pool(2);
  const char* adaptive =
      "adaptive(tau=off, reject=off, compare=4, stop=0.5, monitor=4, rest=2, probe=2, batch=6)";
  for (const auto& [temperature, policy] :
       {std::pair(0.0f, "fixed"), std::pair(1.0f, "fixed"), std::pair(0.0f, "auto"), std::pair(1.0f, "auto"),
        std::pair(0.0f, adaptive), std::pair(1.0f, adaptive)}) {
    auto engine = make_engine(pool, policy);
    Request request;
    for (Token token = 40; token < 60; ++token) request.prompt.push_back(token);
    request.sampling.temperature = temperature;
    request.sampling.top_p = 0.95f;
    request.sampling.max_tokens = 200;
    request.sampling.ignore_eos = true;
    request.sampling.stop = {"a text that never comes"};
    std::size_t tokens = 0;
    request.on_event = [&](const Event& event) {
      tokens += event.tokens.size();
      return true;
    };
    ASSERT_TRUE(engine->submit(std::move(request)));
    while (tokens == 0) engine->step();
    int allocations = 0;
    while (tokens < 150) {
      const testing::AllocationCount count;
      engine->step();
      allocations += count.so_far();
    }
    EXPECT_EQ(allocations, 0) << "temperature " << temperature << ", " << policy;
    EXPECT_LT(tokens, 200u);
  }
}

}  // namespace
}  // namespace coppice::core
