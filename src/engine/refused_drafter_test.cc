// A drafter that cannot begin fails its request with its own sentence, and harms nobody else.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "model/random_model.h"
#include "model/testing.h"

namespace coppice::core {
namespace {

// Begins every second request.
class Moody : public Drafter {
 public:
  std::string_view name() const override { return "moody"; }
  DrafterShape shape() const override { return {}; }
  Status begin(int, std::span<const Token>, const Sampler&) override {
    if (++asked_ % 2 == 1) return fail("moody: not in the mood");
    open_ = true;
    return {};
  }
  void end(int) override {
    EXPECT_TRUE(open_);
    open_ = false;
  }
  void predict(std::span<Query> queries) override {
    for (Query& query : queries) query.count = 0;
  }
  void describe(const Query&, std::span<const Token>, float*, int) override {}
  void observe(int, std::span<const Token>) override {}

 private:
  int asked_ = 0;
  bool open_ = false;
};

TEST(RefusedDrafter, FailsItsRequestAndNotTheNext) {
  ThreadPool pool{1};
  const auto bytes = *random_model(RandomModelOptions{});
  const auto file = *gguf::File::parse(bytes, "random");
  EngineSetup setup;
  setup.model = *Model::load(file, pool);
  setup.tokenizer = *Tokenizer::make(*Vocabulary::read(*file));
  setup.pool = &pool;
  setup.context = 64;
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(std::make_unique<Moody>());
  setup.grower = std::make_unique<Grower>(std::move(drafters), Grower::Options{});
  setup.speculation.policy = "fixed";
  auto engine = *Engine::make(std::move(setup));
  Request request;
  request.prompt = {5, 6, 7};
  request.sampling.max_tokens = 4;
  request.sampling.ignore_eos = true;
  for (int round = 0; round < 2; ++round) {
    const auto first = *engine->submit(request), second = *engine->submit(request);
    while (engine->step()) {
    }
    const auto refused = engine->take(first), answered = engine->take(second);
    ASSERT_TRUE(refused && answered);
    EXPECT_EQ(refused->stop, StopReason::failed);
    EXPECT_EQ(refused->failure, FailureKind::drafter) << "and nothing its sender could change";
    EXPECT_NE(refused->error.find("not in the mood"), std::string::npos) << refused->error;
    EXPECT_EQ(answered->stop, StopReason::max_tokens);
    EXPECT_EQ(answered->tokens.size(), 4u);
  }
}

}  // namespace
}  // namespace coppice::core
