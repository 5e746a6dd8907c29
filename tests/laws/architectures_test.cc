// The three laws for every architecture: a row of the table, a small random model, every law once.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "kernels/kernels.h"
#include "laws/harness.h"

namespace coppice::core::laws {
namespace {

Case law_case(float temperature) {
  Case c;
  for (int i = 0; i < 45; ++i) c.prompt.push_back(static_cast<Token>(33 + (i * 37) % 90));
  c.sampling.max_tokens = 32;  // past the window of those models that have one
  c.sampling.ignore_eos = true;
  c.sampling.temperature = temperature;
  c.sampling.top_p = temperature > 0 ? 0.95f : 1.0f;
  c.sampling.seed = 42;
  c.nodes = 8;
  return c;
}

TEST(Architectures, TheSameTextWithEveryKindOfDrafter) {
  for (const LawModel& model : every_architecture())
    for (const float temperature : {0.0f, 1.0f}) {
      Case c = law_case(temperature);
      const Outcome plain = run(model, c);
      ASSERT_EQ(plain.ids.size(), 32u) << model.name;
      c.script = c.prompt;
      c.script.insert(c.script.end(), plain.ids.begin(), plain.ids.end());
      c.truth = 700;
      const std::string self = "\"" + model.path + "\"";
      for (const std::string& drafters :
           {std::string("scripted"), std::string("lookup"), std::string("self(layers=0-1) | lookup"),
            std::string("self(layers=1, window=64)"), "model(" + self + ")", "stage(" + self + ", lookup)"}) {
        c.drafters = drafters;
        expect_same(plain, run(model, c), model.name + " T=" + std::to_string(temperature) + " " + drafters);
      }
    }
}

TEST(Architectures, ARowDoesNotKnowItsNeighbours) {
  for (const LawModel& model : every_architecture()) {
    Case c = law_case(1);
    c.sampling.max_tokens = 8;
    c.chunk = 64;
    c.threads = 1;
    const Outcome whole = run(model, c);
    for (const int chunk : {1, 7, 33}) {
      c.chunk = chunk;
      c.threads = chunk == 7 ? 3 : 2;
      expect_same(whole, run(model, c), model.name + " chunk " + std::to_string(chunk));
    }
  }
}

// Of token ids, logits bits and text, as same_bits_test.cc has them, by the model's name.
std::map<std::string, std::string> committed_hashes() {
  std::ifstream file(COPPICE_SOURCE_FOLDER "/tests/architectures.json");
  const nlohmann::json table = nlohmann::json::parse(file);
  std::map<std::string, std::string> hashes;
  for (const auto& [name, entry] : table.items())
    for (const auto& [model, hash] : entry.at("laws").items()) hashes[model] = hash.get<std::string>();
  return hashes;
}

std::string hex(std::uint64_t hash) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%016llx", static_cast<unsigned long long>(hash));
  return text;
}

TEST(Architectures, EveryInstructionSetGivesTheCommittedBits) {
  const std::string before(kernels().name);
  const std::map<std::string, std::string> committed = committed_hashes();
  for (const LawModel& model : every_architecture()) {
    const Case c = law_case(1);
    for (const Kernels* table : all_kernels()) {
      if (!usable(*table)) continue;
      ASSERT_TRUE(force_kernels(table->name));
      const std::string hash = hex(run(model, c).hash);
      if (std::getenv("COPPICE_PRINT_HASHES") != nullptr) {
        if (table->name == "scalar") std::printf("\"%s\": \"%s\"\n", model.name.c_str(), hash.c_str());
        continue;
      }
      ASSERT_TRUE(committed.contains(model.name))
          << model.name << " has no hash in tests/architectures.json; it is " << hash;
      EXPECT_EQ(hash, committed.at(model.name))
          << model.name << " on " << table->name << ": not the committed bits";
    }
  }
  force_kernels(before);
}

}  // namespace
}  // namespace coppice::core::laws
