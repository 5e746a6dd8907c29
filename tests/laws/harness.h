// One case of a law: a model, a way of decoding, and everything that must be equal afterwards.
#pragma once

#include <coppice/drafter.h>
#include <coppice/request.h>
#include <coppice/speculation.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/os.h"
#include "base/thread_pool.h"
#include "draft/drafter.h"
#include "engine/engine.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace coppice::core::laws {

struct LawModel {
  std::string name;
  std::string path;  // of the file, so that it can be a draft too
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Tokenizer> tokenizer;
};

// Loaded once a process. The real one is fetched by the test fixture; without it the test fails with the
// reason.
const LawModel& random_llama();
const LawModel& random_gpt2();
const LawModel& other_llama();  // other weights, the same vocabulary: a bad draft for random_llama()
const LawModel&
slim_llama();  // a slimmable draft of widths 0.5, 0.75 and 1 with an exit, the same vocabulary
// A random draft head's file for a model, whose output knows most of the vocabulary.
std::string head_for(const LawModel& model);
const LawModel& smollm2();
// A small random model of every row of the table of architectures, llama's with a sliding window, and one of
// a llama with experts.
const std::vector<LawModel>& every_architecture();
std::vector<const LawModel*> random_models();

struct Case {
  std::vector<Token> prompt;
  Sampling sampling;
  std::string drafters = "none";     // an expression, "scripted" or "restless" (see below)
  std::vector<NamedDrafter> custom;  // names that the expression may use
  std::vector<Token> script;         // scripted: prompt and answer of the plain run
  int truth = 500;  // scripted: of 1,000 nodes, at how many the true token is among the guesses
  int nodes = 12, depth = 8, width = 16;
  float price = 0;
  float pass_price = 0;
  CacheType cache = CacheType::f16;
  int threads = 2;
  int chunk = 16;
  std::string policy = "fixed";  // or another, or "restless": trims at random and drafts at random
  CostTable costs = {{{1, 1e-3}, {4, 1e-3}, {8, 1.5e-3}}, 0, 0, 0.8};  // what "auto" believes at first
  std::function<double()> clock = seconds;
  int max_waiting = 0, positions = 0;
};

// A clock that goes by as much as it likes, the same each time: what it says must not matter.
std::function<double()> wild_clock();

struct Outcome {
  Generation generation;
  std::vector<Token> ids;             // the answer's
  std::vector<std::uint64_t> logits;  // hash of the logits each of them was drawn from
  std::uint64_t hash = 0;             // of ids, logits and text
  std::uint64_t target_passes = 0, prefill_passes = 0;
  int none = 0, partial = 0, full = 0;  // cycles with a tree, by how much of it was taken
};

// An engine of 512 tokens of context as the case asks for it. Fails the test, and gives null, if it cannot be
// made.
using OnLogits = decltype(EngineSetup::on_logits);
std::unique_ptr<Engine> make_engine(const LawModel& model, const Case& c, int requests = 1,
                                    OnLogits on_logits = {});
Request request_of(const Case& c);
std::vector<Token> ids_of(const Generation& generation);

Outcome run(const LawModel& model, const Case& c);
// The grower of a case, for so many requests at once; null for plain decoding.
Result<std::unique_ptr<Grower>> make_drafters(const LawModel& model, const Case& c, int requests = 1);
// EXPECTs that everything the law promises is equal, and that every cycle was one pass of the target.
void expect_same(const Outcome& plain, const Outcome& other, const std::string& what);

std::uint64_t hash_bytes(std::uint64_t hash, const void* bytes, std::size_t size);
inline constexpr std::uint64_t kHashStart = 14695981039346656037ull;

// A folder that goes with the process.
std::string temporary_folder();

// slim_llama(), at another width each time it is asked ("restless").
Result<std::unique_ptr<Drafter>> make_restless(const Case& c, int requests);

// Plans and trims at random ("restless").
std::unique_ptr<Policy> make_restless_policy();

// Guesses at random, and at `truth` of 1,000 nodes slips in what the target will draw: trees of every kind.
std::unique_ptr<Drafter> make_scripted(std::vector<Token> script, int truth, int vocab);

}  // namespace coppice::core::laws
