// Law 3: the same bits on every CPU. Every table this machine can run against the scalar one, and all of them
// against hashes that were committed on another machine. If a change of arithmetic is meant, print the new
// hashes with COPPICE_PRINT_HASHES=1 and say in docs/decisions/ why they changed.
#include <gtest/gtest.h>

#include <cfenv>
#include <cstdio>
#include <cstdlib>

#include "kernels/kernels.h"
#include "laws/harness.h"

namespace coppice::core::laws {
namespace {

struct Committed {
  const char* name;
  std::uint64_t hash;  // of token ids, logits bits and text
};

constexpr Committed kHashes[] = {
#include "laws/hashes.inc"
};

Case bits_case(bool sampled, CacheType cache) {
  Case c;
  for (int i = 0; i < 40; ++i) c.prompt.push_back(static_cast<Token>(33 + (i * 37) % 90));
  c.sampling.max_tokens = 32;
  c.sampling.ignore_eos = true;
  c.sampling.temperature = sampled ? 0.9f : 0.0f;
  c.sampling.top_p = sampled ? 0.95f : 1.0f;
  c.sampling.seed = 42;
  c.cache = cache;
  return c;
}

std::string name_of(const LawModel& model, bool sampled, CacheType cache) {
  constexpr const char* kCaches[] = {"f32", "f16", "q8_0"};
  return model.name + (sampled ? "/sampled/" : "/greedy/") + kCaches[static_cast<int>(cache)];
}

void expect_committed(const std::string& name, std::uint64_t hash) {
  if (std::getenv("COPPICE_PRINT_HASHES") != nullptr) {
    std::printf("    {\"%s\", 0x%016llxull},\n", name.c_str(), static_cast<unsigned long long>(hash));
    return;
  }
  for (const Committed& committed : kHashes) {
    if (name == committed.name) {
      EXPECT_EQ(hash, committed.hash) << name << ": not the committed bits";
      return;
    }
  }
  ADD_FAILURE() << name << " has no committed hash";
}

class SameBits : public testing::Test {
 protected:
  void SetUp() override { before_ = std::string(kernels().name); }
  void TearDown() override { force_kernels(before_); }
  std::string before_;
};

TEST_F(SameBits, EveryInstructionSetGivesTheScalarBitsAndTheCommittedOnes) {
  for (const LawModel* model : random_models()) {
    for (CacheType cache : {CacheType::f32, CacheType::f16, CacheType::q8_0}) {
      for (bool sampled : {false, true}) {
        const Case c = bits_case(sampled, cache);
        const std::string name = name_of(*model, sampled, cache);
        ASSERT_TRUE(force_kernels("scalar"));
        const Outcome scalar = run(*model, c);
        expect_committed(name, scalar.hash);
        for (const Kernels* table : all_kernels()) {
          if (!usable(*table)) {
            std::printf("%s: not on this machine\n", std::string(table->name).c_str());
            continue;
          }
          ASSERT_TRUE(force_kernels(table->name));
          expect_same(scalar, run(*model, c), name + " " + std::string(table->name));
          Case guessing = c;
          guessing.drafters = "lookup";
          expect_same(scalar, run(*model, guessing), name + " lookup " + std::string(table->name));
        }
      }
    }
  }
}

// Logits come out of passes, which look after themselves (numerics 13); draws and log-probabilities do not.
TEST_F(SameBits, TheHostsRoundingModeChangesNothing) {
  for (const LawModel* model : random_models()) {
    for (const char* drafters : {"none", "lookup"}) {
      Case c = bits_case(true, CacheType::f16);
      c.sampling.typical_p = 0.95f;
      c.sampling.logprobs = 3;
      c.sampling.frequency_penalty = 0.3f;
      const Outcome nearest = run(*model, c);
      c.drafters = drafters;
      std::fesetround(FE_UPWARD);
      const Outcome upward = run(*model, c);
      std::fesetround(FE_TONEAREST);
      expect_same(nearest, upward, model->name + " rounding upward, " + drafters);
    }
  }
}

TEST_F(SameBits, TheRealModelGivesTheCommittedBits) {
  const LawModel& model = smollm2();
  ASSERT_TRUE(model.model);
  for (bool sampled : {false, true}) {
    Case c = bits_case(sampled, CacheType::f16);
    c.prompt = model.tokenizer->encode("The capital of France is");
    c.sampling.max_tokens = 24;
    expect_committed(name_of(model, sampled, c.cache), run(model, c).hash);
  }
}

TEST_F(SameBits, TheRealModelOnTheScalarTable) {
  const LawModel& model = smollm2();
  ASSERT_TRUE(model.model);
  Case c = bits_case(true, CacheType::f16);
  c.prompt = model.tokenizer->encode("The capital of France is");
  c.sampling.max_tokens = 3;
  const Outcome best = run(model, c);
  ASSERT_TRUE(force_kernels("scalar"));
  expect_same(best, run(model, c), "SmolLM2 scalar");
}

}  // namespace
}  // namespace coppice::core::laws
