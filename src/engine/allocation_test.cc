// The decode cycle does not allocate: counted by replacing operator new in this test binary.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "draft/lookup_drafter.h"
#include "engine/engine.h"
#include "model/random_model.h"

namespace {
std::atomic<bool> counting{false};
std::atomic<int> allocations{0};

void* allocate(std::size_t bytes) {
  if (counting.load()) allocations.fetch_add(1);
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace coppice::core {
namespace {

constexpr int kContext = 256;

std::unique_ptr<Engine> make_engine(ThreadPool& pool) {
  static const auto bytes = *random_model({});
  const auto file = *gguf::File::parse(bytes, "random");
  EngineSetup setup;
  setup.model = *Model::load(file, pool);
  setup.tokenizer = *Tokenizer::make(*Vocabulary::read(*file));
  setup.pool = &pool;
  setup.context = kContext;
  setup.speculation.price = 0;
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::make_unique<LookupDrafter>(1, kContext));
  setup.grower = std::make_unique<Grower>(std::move(drafters), Grower::Options{});
  return std::move(*Engine::make(std::move(setup)));
}

TEST(Allocation, NoCycleBetweenTheFirstAndTheLastAllocates) {
  ThreadPool pool(2);
  for (const float temperature : {0.0f, 1.0f}) {
    auto engine = make_engine(pool);
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
    allocations = 0;
    while (tokens < 150) {
      counting = true;
      engine->step();
      counting = false;
    }
    EXPECT_EQ(allocations.load(), 0) << "temperature " << temperature;
    EXPECT_LT(tokens, 200u);
  }
}

}  // namespace
}  // namespace coppice::core
