// The public engine, on a small random model.
#include <coppice/coppice.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>
#include <cstdio>

#include "base/os.h"
#include "model/random_model.h"

namespace coppice {
namespace {

class PublicEngine : public testing::Test {
 protected:
  void SetUp() override {
    const auto bytes = *core::random_model({});
    ASSERT_TRUE(core::write_file(path_, [&](const core::Append& append) { return append(bytes); }));
    ModelOptions options;
    options.threads = 1;
    auto model = Model::load(path_, options);
    ASSERT_TRUE(model) << model.error().message;
    model_ = std::make_unique<Model>(*model);
  }
  void TearDown() override { std::remove(path_.c_str()); }

  std::string refusal(const EngineOptions& options) const {
    auto engine = Engine::make(*model_, options);
    return engine ? "made" : engine.error().message;
  }

  std::string path_ = testing::TempDir() + "coppice_public_engine_" + std::to_string(::getpid()) + ".gguf";
  std::unique_ptr<Model> model_;
};

TEST_F(PublicEngine, NumbersThatMakeNoSenseAreRefusedBeforeAnythingIsBuiltFromThem) {
  EngineOptions options;
  for (const int requests : {0, -1, INT_MIN, INT_MAX}) {
    options.max_requests = requests;
    EXPECT_NE(refusal(options).find("1 to 256 are possible"), std::string::npos) << requests;
  }
  options = {};
  for (const int context : {-1, 1, INT_MAX}) {
    options.context = context;
    EXPECT_NE(refusal(options).find("context of " + std::to_string(context)), std::string::npos) << context;
  }
  options.max_requests = 256;
  options.context = 1 << 24;
  EXPECT_NE(refusal(options).find("256 requests at once"), std::string::npos);
  options = {};
  options.speculation.nodes = 256;
  EXPECT_NE(refusal(options).find("speculation.nodes = 256"), std::string::npos);
}

TEST_F(PublicEngine, ACacheHoldsAsManyTokensAsItsMemoryAllowsButAWholeContextAlways) {
  EngineOptions options;
  options.context = 64;
  options.max_requests = 16;
  const auto positions = [&](std::uint64_t bytes) {
    options.cache_bytes = bytes;
    auto engine = Engine::make(*model_, options);
    EXPECT_TRUE(engine);
    return engine ? engine->options().positions : -1;
  };
  const ModelInfo& info = model_->info();
  const auto keys_and_values = static_cast<std::uint64_t>(2 * info.layers * info.kv_heads * info.head_dim);
  const std::uint64_t position = keys_and_values * 2;  // f16
  EXPECT_EQ(positions(160 * position), 160);
  EXPECT_EQ(positions(1), 64);
  EXPECT_EQ(positions(16 * 64 * position), 0) << "all of them fit: no limit but theirs";
  options.positions = 100;
  EXPECT_EQ(positions(1), 100) << "who says how many is not overruled";
}

TEST_F(PublicEngine, AModelSaysWhereTheTimeOfItsLoadWent) {
  const LoadTimes& times = model_->info().load;
  for (const double part : {times.open, times.tokenizer, times.weights}) {
    EXPECT_GT(part, 0);
    EXPECT_LE(part, times.total);
  }
}

TEST_F(PublicEngine, AnEventMaySubmitAnotherRequest) {
  EngineOptions options;
  options.context = 64;
  auto engine = Engine::make(*model_, options);
  ASSERT_TRUE(engine) << engine.error().message;
  Request request;
  request.prompt = {40, 41, 42};
  request.sampling.max_tokens = 5;
  request.sampling.ignore_eos = true;
  std::uint64_t second = 0;
  Request first = request;
  first.on_event = [&](const Event&) {
    if (second == 0) second = engine->submit(request).value_or(0);
    return true;
  };
  auto one = engine->generate(first);
  ASSERT_TRUE(one);
  while (engine->step()) {
  }
  auto two = engine->take(second);
  ASSERT_TRUE(two);
  EXPECT_EQ(one->text, two->text);
  EXPECT_EQ(two->tokens.size(), 5u);
}

}  // namespace
}  // namespace coppice
