// Law 1 for drafters that a user brings: whatever they say, and however they fail, the text is the plain one.
#include <gtest/gtest.h>

#include <stdexcept>

#include "laws/harness.h"

namespace coppice::core::laws {
namespace {

Case case_of(float temperature) {
  Case c;
  for (Token token = 70; token < 90; ++token) c.prompt.push_back(token);
  c.sampling.max_tokens = 40;
  c.sampling.ignore_eos = true;
  c.sampling.temperature = temperature;
  c.sampling.seed = 3;
  return c;
}

// Any tokens, in any shape of tree, now and then none or one that is not in the vocabulary.
class Garbage final : public CustomDrafter {
 public:
  Result<std::vector<Guess>> propose(const DraftPlace&) override {
    std::vector<Guess> guesses(next() % 12);
    for (std::size_t i = 0; i < guesses.size(); ++i) {
      guesses[i] = {static_cast<Token>(next() % 320), 0.01f * static_cast<float>(1 + next() % 100),
                    static_cast<int>(next() % (i + 1)) - 1, next() % 3 == 0};
      if (next() % 50 == 0) guesses[i].token = 1 << 20;
    }
    return guesses;
  }

 private:
  std::uint32_t next() { return (state_ = state_ * 1664525u + 1013904223u) >> 8; }
  std::uint32_t state_ = 1;
};

class Throwing final : public CustomDrafter {
 public:
  void begin(std::uint64_t, std::span<const Token>) override { throw std::runtime_error("not today"); }
  Result<std::vector<Guess>> propose(const DraftPlace&) override { throw std::runtime_error("not here"); }
  void accepted(std::uint64_t, std::span<const Token>) override { throw 1; }
  void end(std::uint64_t) override { throw 2; }
};

// Knows the plain answer.
class Oracle final : public CustomDrafter {
 public:
  explicit Oracle(std::vector<Token> text) : text_(std::move(text)) {}
  Result<std::vector<Guess>> propose(const DraftPlace& place) override {
    const std::size_t at = place.committed.size() + place.path.size();
    if (at >= text_.size()) return std::vector<Guess>{};
    return std::vector<Guess>{{text_[at], 0.99f}};
  }

 private:
  std::vector<Token> text_;
};

TEST(SameText, CustomDraftersOfEveryKind) {
  const LawModel& model = random_llama();
  for (const float temperature : {0.0f, 1.0f}) {
    const Case plain_case = case_of(temperature);
    const Outcome plain = run(model, plain_case);
    std::vector<Token> text = plain_case.prompt;
    text.insert(text.end(), plain.ids.begin(), plain.ids.end());
    for (const char* mix :
         {"garbage", "throwing", "oracle", "garbage | oracle | throwing", "oracle | lookup"}) {
      Case c = plain_case;
      c.custom = {{"garbage", std::make_shared<Garbage>()},
                  {"throwing", std::make_shared<Throwing>()},
                  {"oracle", std::make_shared<Oracle>(text)}};
      c.drafters = mix;
      const Outcome guessed = run(model, c);
      const std::string what = std::string(mix) + " at temperature " + std::to_string(temperature);
      expect_same(plain, guessed, what);
      const Stats& stats = guessed.generation.stats;
      for (const SourceStats& source : stats.sources) {
        if (source.name == "throwing") {
          EXPECT_GT(source.failures, stats.cycles) << what;
          EXPECT_EQ(source.problem, "drafter `throwing`: not today");
        } else if (source.name == "oracle") {
          EXPECT_GT(source.accepted, 20u) << what;
          EXPECT_EQ(source.failures, 0u);
        }
      }
    }
  }
}

TEST(SameText, ACustomDrafterUnderAStageSaysWhatWentWrongThere) {
  const LawModel& model = random_llama();
  const Outcome plain = run(model, case_of(0));
  Case c = case_of(0);
  c.custom = {{"throwing", std::make_shared<Throwing>()}};
  c.drafters = "stage(\"" + other_llama().path + "\", throwing | lookup) | lookup";
  const Outcome guessed = run(model, c);
  expect_same(plain, guessed, c.drafters);
  EXPECT_EQ(guessed.generation.stats.sources[0].problem, "drafter `throwing`: not today");
}

}  // namespace
}  // namespace coppice::core::laws
