// Law 1: the same text with speculation and without - ids, logits bits, log-probabilities, text and end.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>

#include "draft/katz.h"
#include "laws/harness.h"
#include "policy/gate.h"

namespace coppice::core::laws {
namespace {

constexpr int kTokens = 48;

Case base_case() {
  Case c;
  for (Token token :
       {72, 101, 108, 108, 111, 44, 32, 72, 101, 108, 108, 111, 44, 32, 119, 111, 114, 108, 100, 33}) {
    c.prompt.push_back(token);
  }
  c.sampling.max_tokens = kTokens;
  c.sampling.ignore_eos = true;  // random models end at random places; ends have tests of their own
  return c;
}

struct NamedSampling {
  const char* name;
  void (*set)(Sampling&);
};

constexpr NamedSampling kSamplings[] = {
    {"greedy", [](Sampling&) {}},
    {"temperature", [](Sampling& s) { s.temperature = 1; }},
    {"hot", [](Sampling& s) { s.temperature = 3.5f; }},
    {"top_k", [](Sampling& s) { s.temperature = 1, s.top_k = 5; }},
    {"top_p", [](Sampling& s) { s.temperature = 0.9f, s.top_p = 0.7f; }},
    {"min_p", [](Sampling& s) { s.temperature = 1, s.min_p = 0.1f; }},
    {"typical_p", [](Sampling& s) { s.temperature = 1, s.typical_p = 0.6f; }},
    {"all_filters",
     [](Sampling& s) {
       s.temperature = 0.8f, s.top_k = 40, s.typical_p = 0.95f, s.top_p = 0.9f, s.min_p = 0.02f;
     }},
    {"repetition", [](Sampling& s) { s.repetition_penalty = 1.5f; }},
    {"presence_frequency",
     [](Sampling& s) {
       s.temperature = 1, s.presence_penalty = 1, s.frequency_penalty = 0.7f, s.penalty_window = 6;
     }},
    {"penalties_over_all",
     [](Sampling& s) { s.repetition_penalty = 1.2f, s.frequency_penalty = 0.3f, s.penalty_window = -1; }},
    {"bias_and_bans",
     [](Sampling& s) {
       s.temperature = 1, s.logit_bias = {{65, 4.0f}, {66, -3.0f}}, s.banned = {67, 68, 101};
     }},
    {"logprobs", [](Sampling& s) { s.temperature = 1, s.logprobs = 4; }},
    {"other_seed",
     [](Sampling& s) { s.temperature = 1, s.seed = 0x123456789abcdefull, s.stream = 7, s.choice = 3; }},
};

std::vector<Token> script_of(const Case& c, const Outcome& plain) {
  std::vector<Token> script = c.prompt;
  script.insert(script.end(), plain.ids.begin(), plain.ids.end());
  return script;
}

TEST(SameText, RandomTreesUnderEverySamplerOption) {
  for (const LawModel* model : random_models()) {
    int none = 0, partial = 0, full = 0;
    for (const NamedSampling& sampling : kSamplings) {
      Case c = base_case();
      sampling.set(c.sampling);
      const Outcome plain = run(*model, c);
      ASSERT_EQ(plain.ids.size(), static_cast<std::size_t>(kTokens));
      c.drafters = "scripted";
      c.script = script_of(c, plain);
      for (int truth : {0, 400, 900, 1000}) {
        c.truth = truth;
        const Outcome guessed = run(*model, c);
        expect_same(plain, guessed, model->name + " " + sampling.name + " truth " + std::to_string(truth));
        EXPECT_GT(guessed.generation.stats.guesses, 0u) << "it did speculate";
        none += guessed.none;
        partial += guessed.partial;
        full += guessed.full;
      }
    }
    EXPECT_GT(none, 0);
    EXPECT_GT(partial, 0);
    EXPECT_GT(full, 0);
  }
}

TEST(SameText, EveryShapeOfTree) {
  for (const LawModel* model : random_models()) {
    Case c = base_case();
    c.sampling.temperature = 1;
    const Outcome plain = run(*model, c);
    c.drafters = "scripted";
    c.script = script_of(c, plain);
    c.truth = 700;
    for (int nodes : {1, 2, 5, 16, 64}) {
      for (int depth : {1, 3, 16}) {
        c.nodes = nodes;
        c.depth = depth;
        c.width = depth == 3 ? 1 : 16;  // a chain
        expect_same(plain, run(*model, c),
                    model->name + " nodes " + std::to_string(nodes) + " depth " + std::to_string(depth));
      }
    }
  }
}

// The controller believes that rows are free, or that they are dear from the first on, or that they come in
// steps; its clock is the machine's, or says what it likes.
TEST(SameText, WhateverTheControllerBelievesAndDecides) {
  const CostTable beliefs[] = {
      {{{1, 1e-3}}, 0, 0, 0.8},
      {{{1, 1e-3}, {2, 1e-2}}, 0, 0, 0.8},
      {{{1, 1e-3}, {6, 1.1e-3}, {7, 2e-3}, {12, 2.1e-3}, {13, 3e-3}}, 1e-6, 1e-7, 0.8}};
  const std::string other = other_llama().path;
  std::uint64_t trimmed = 0, plain_cycles = 0, costly = 0, probes = 0;
  for (const LawModel* model : random_models()) {
    for (const NamedSampling& sampling : {kSamplings[0], kSamplings[2], kSamplings[7]}) {
      Case c = base_case();
      sampling.set(c.sampling);
      const Outcome plain = run(*model, c);
      c.script = script_of(c, plain);
      for (const std::string& drafters :
           {std::string("scripted"), std::string("lookup"), "model(" + model->path + ") | lookup",
            "stage(" + other + ", lookup) | lookup"}) {
        if (model == &random_gpt2() && drafters.starts_with("stage")) continue;  // another vocabulary
        c.drafters = drafters;
        for (std::size_t belief = 0; belief <= std::size(beliefs); ++belief) {
          c.policy = belief < std::size(beliefs) ? "auto" : "restless";
          if (belief < std::size(beliefs)) c.costs = beliefs[belief];
          c.clock = belief % 2 == 0 ? wild_clock() : seconds;
          const Outcome guessed = run(*model, c);
          expect_same(plain, guessed,
                      model->name + " " + sampling.name + " " + drafters + " under " + c.policy);
          const Stats& stats = guessed.generation.stats;
          EXPECT_GE(stats.wanted, stats.guesses);
          trimmed += stats.wanted - stats.guesses;
          plain_cycles += stats.plain_cycles;
          costly += stats.costly_cycles;
          probes += stats.probes;
        }
      }
    }
  }
  for (const std::uint64_t decided : {trimmed, plain_cycles, costly, probes}) EXPECT_GT(decided, 0u);
}

TEST(SameText, EveryCacheTypeWithItself) {
  for (const LawModel* model : random_models()) {
    for (CacheType cache : {CacheType::f32, CacheType::f16, CacheType::q8_0}) {
      Case c = base_case();
      c.sampling.temperature = 1;
      c.cache = cache;
      const Outcome plain = run(*model, c);
      c.drafters = "scripted";
      c.script = script_of(c, plain);
      c.truth = 800;
      expect_same(plain, run(*model, c), model->name + " cache " + std::to_string(static_cast<int>(cache)));
    }
  }
}

// The paper's rules, and rules that are seldom content: everything that they can decide, they do.
TEST(SameText, WhateverTheRulesOfConfidenceDecide) {
  const std::string self = "\"" + random_llama().path + "\"", slim = "\"" + slim_llama().path + "\"";
  const std::string fickle =
      "reject=off, sure=0.02, monitor=3, rest=2, probe=2, compare=2, upgrade=0.01, failure=0.02, first=3, ";
  const std::string gate = temporary_folder() + "/" + random_llama().name + ".gate";
  ASSERT_TRUE(write_gate(gate, Gate::constant(0.6f, random_llama().model->config().hidden, 1)));
  const std::string other = "\"" + other_llama().path + "\"";
  Case base = base_case();
  base.prompt = script_of(base, run(random_llama(), base));  // its end is what the model itself would say
  std::array<std::uint64_t, kRules> decided{};
  for (const NamedSampling& sampling : {kSamplings[0], kSamplings[2], kSamplings[7]}) {
    Case c = base;
    sampling.set(c.sampling);
    const Outcome plain = run(random_llama(), c);
    c.script = script_of(c, plain);
    for (const std::string& drafters :
         {std::string("scripted"), std::string("lookup"), "model(" + self + ") | lookup",
          "stage(" + slim + ", lookup) | lookup", "model(" + other + ") | model(" + slim + ")"}) {
      c.drafters = drafters;
      for (const std::string& policy :
           {std::string("adaptive-paper"), std::string("adaptive-fitted"),
            "adaptive(tau=off, stop=0.2, batch=5, pool=3, " + fickle + "gate=\"" + gate + "\")",
            "adaptive(tau=0.01, stop=off, batch=off, analyse=7, " + fickle + "acceptance=whole)"}) {
        c.policy = policy;
        const Outcome guessed = run(random_llama(), c);
        expect_same(plain, guessed, std::string(sampling.name) + " " + drafters + " under " + policy);
        for (std::size_t r = 0; r < kRules; ++r) decided[r] += guessed.generation.stats.decisions[r];
      }
    }
  }
  for (std::size_t r = 0; r < kRules; ++r) EXPECT_GT(decided[r], 0u) << to_string(static_cast<Rule>(r));
}

// Katz counts of the model's own text, so that the n-gram drafter has something to say.
std::string ngram_of(const LawModel& model, const std::vector<Token>& text) {
  KatzBuildOptions options;
  options.order = 3;
  options.vocab = model.model->config().vocab;
  options.vocabulary_hash = vocabulary_hash(model.tokenizer->vocabulary().tokens);
  KatzBuilder builder(options);
  builder.add(text);
  const std::string path = temporary_folder() + "/" + model.name + ".ngram";
  EXPECT_TRUE(builder.write(path));
  return path;
}

TEST(SameText, EveryDrafterAndThreeNestedStages) {
  for (const LawModel* model : random_models()) {
    for (float temperature : {0.0f, 1.0f}) {
      Case c = base_case();
      c.sampling.temperature = temperature;
      c.nodes = 8;
      const Outcome plain = run(*model, c);
      const std::string ngram = "ngram(\"" + ngram_of(*model, script_of(c, plain)) + "\")";
      const std::string self = "\"" + model->path + "\"";
      const std::string other = "\"" + other_llama().path + "\"";
      const std::string slim = "\"" + slim_llama().path + "\"";
      const std::string head = "head(\"" + head_for(*model) + "\")";
      for (const std::string& drafters :
           {std::string("lookup"),
            ngram,
            ngram + " | lookup",
            "model(" + self + ")",
            "model(" + other + ")",
            "model(" + other + ") | lookup",
            "stage(" + self + ", lookup)",
            "stage(" + other + ", " + ngram + " | lookup) | lookup",
            std::string("self(layers=1) | lookup"),
            "model(" + slim + ", width=0.5)",
            "model(" + slim + ", width=exit) | lookup",
            "stage(" + slim + ", lookup, width=0.75)",
            std::string("restless"),
            std::string("self(layers=0-0, window=64)"),
            std::string("self(lookup, window=64, sink=0)"),
            head,
            head + " | " + ngram + " | lookup",
            head + " | stage(" + other + ", lookup)",
            "stage(" + self + ", stage(" + other + ", " + ngram + "))",
            "stage(" + self + ", stage(" + other + ", stage(" + other + ", lookup) | lookup)) | " + ngram}) {
        c.drafters = drafters;
        const Outcome guessed = run(*model, c);
        expect_same(plain, guessed, model->name + " T=" + std::to_string(temperature) + " " + drafters);
        EXPECT_GT(guessed.generation.stats.guesses, 0u) << drafters;
      }
    }
  }
}

// A hot draw is mostly noise, which the head shares: its guesses are taken at times, and its cache follows.
TEST(SameText, ADraftHeadUnderEverySamplerOptionThreadsAndChunks) {
  for (const LawModel* model : random_models()) {
    const std::string head = "head(\"" + head_for(*model) + "\")";
    int partial = 0, full = 0;
    for (const NamedSampling& sampling : kSamplings) {
      Case c = base_case();
      sampling.set(c.sampling);
      const Outcome plain = run(*model, c);
      c.drafters = head;
      for (const int threads : {1, 2}) {
        c.threads = threads;
        c.chunk = threads == 1 ? 3 : 16;
        c.nodes = threads == 1 ? 5 : 24;
        const Outcome guessed = run(*model, c);
        expect_same(plain, guessed, model->name + " head " + sampling.name);
        partial += guessed.partial;
        full += guessed.full;
      }
    }
    EXPECT_GT(partial, 0);
    EXPECT_GT(full, 0);
  }
}

TEST(SameText, ADraftHeadAlongPromptsThatBeginAlikeAndBesideNeighbours) {
  const LawModel& model = random_llama();
  Case c = base_case();
  c.sampling.temperature = 2;
  std::vector<Case> cases(5, c);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].sampling.seed = i;
    // 0, 3 and 4 say the same at first; 1 is one token; 2 goes on where 0 ends.
    if (i == 1) cases[i].prompt.resize(1);
    if (i == 2) cases[i].prompt = script_of(c, run(model, cases[0]));
    if (i == 3) cases[i].prompt.resize(12);
  }
  c.drafters = "head(\"" + head_for(model) + "\")";
  auto engine = make_engine(model, c, 2);
  ASSERT_TRUE(engine);
  std::vector<std::uint64_t> ids;
  for (const Case& one : cases) ids.push_back(*engine->submit(request_of(one)));
  while (engine->step()) {
  }
  std::uint64_t reused = 0, guesses = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto generation = engine->take(ids[i]);
    ASSERT_TRUE(generation.has_value());
    EXPECT_EQ(ids_of(*generation), run(model, cases[i]).ids) << i;
    reused += generation->stats.reused_tokens;
    guesses += generation->stats.guesses;
  }
  EXPECT_GT(reused, 0u);
  EXPECT_GT(guesses, 100u);
}

// What a head guesses right below the root, cycle by cycle: the children's tokens, sorted, by the tokens
// before.
using GuessesBelowRoots = std::map<std::size_t, std::vector<Token>>;
GuessesBelowRoots guesses_below_roots(const LawModel& model, const Case& c) {
  GuessesBelowRoots guesses;
  auto engine = make_engine(model, c);
  if (!engine) return guesses;
  Request request = request_of(c);
  request.trace = true;
  std::size_t committed = c.prompt.size();
  request.on_event = [&](const Event& event) {
    if (event.tree == nullptr) return true;
    std::vector<Token> children;
    for (const auto& node : event.tree->nodes)
      if (node.parent == 0) children.push_back(node.token);
    std::sort(children.begin(), children.end());
    guesses[committed] = children;
    committed += event.tokens.size();
    return true;
  };
  EXPECT_TRUE(engine->submit(std::move(request)));
  while (engine->step()) {
  }
  return guesses;
}

TEST(SameText, ADraftHeadSaysTheSameOfAnAnswerAsOfAPrompt) {
  const LawModel& model = random_llama();
  Case c = base_case();
  c.sampling.temperature = 3;  // mostly noise, which they share: some guesses are taken
  c.drafters = "head(\"" + head_for(model) + "\")";
  c.nodes = 64;
  c.depth = 1;  // all it lists is in the tree
  const Outcome plain = run(model, c);
  EXPECT_GT(plain.full, 5);
  const std::vector<Token> script = script_of(c, plain);
  int compared = 0;
  for (const auto& [committed, children] : guesses_below_roots(model, c)) {
    if (children.empty()) continue;  // nothing is guessed where one token is left
    Case anew = c;
    anew.prompt.assign(script.begin(), script.begin() + static_cast<std::ptrdiff_t>(committed));
    anew.sampling.max_tokens = 4;  // of which the first cycle is looked at
    EXPECT_EQ(guesses_below_roots(model, anew)[committed], children) << committed;
    compared += children.size() == kMaxCandidates;
  }
  EXPECT_GT(compared, 10);
}

TEST(SameText, ADraftThatIsTheTargetIsTakenWhole) {
  const LawModel& model = random_llama();
  for (float temperature : {0.0f, 1.0f}) {
    Case c = base_case();
    c.sampling.temperature = temperature;
    c.drafters = "model(\"" + model.path + "\")";
    c.nodes = 6;
    c.depth = 6;
    const Outcome guessed = run(model, c);
    // Its best guess at every node is the target's own draw: the same logits, the same noise.
    EXPECT_GT(guessed.generation.stats.mean_accepted(), 1.5);
    EXPECT_EQ(guessed.none, 0);
  }
}

TEST(SameText, ASelfDraftOfAllBlocksIsTakenWhole) {
  const LawModel& model = random_llama();
  Case c = base_case();
  c.drafters = "self(layers=2)";
  c.nodes = 6;
  c.depth = 6;
  const Outcome guessed = run(model, c);
  EXPECT_GT(guessed.generation.stats.mean_accepted(), 1.5);
  EXPECT_EQ(guessed.none, 0);
}

TEST(SameText, AnswersEndAtTheSamePlace) {
  for (const LawModel* model : random_models()) {
    Case c = base_case();
    c.sampling.temperature = 1.5f;
    c.sampling.ignore_eos = false;
    c.sampling.logit_bias = {{model->tokenizer->vocabulary().eos, 3.0f}};
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      c.sampling.seed = seed;
      c.drafters = "none";
      const Outcome plain = run(*model, c);
      c.drafters = "scripted";
      c.script = script_of(c, plain);
      c.truth = 1000;
      expect_same(plain, run(*model, c), model->name + " ends");
    }
  }
}

// Three letters in a row that are characters of their own.
std::string plain_letters(const std::string& text) {
  for (std::size_t i = 10; i + 3 <= text.size(); ++i) {
    const std::string three = text.substr(i, 3);
    if (std::all_of(three.begin(), three.end(), [](char c) { return c >= 'a' && c <= 'z'; })) return three;
  }
  return "no such letters";
}

TEST(SameText, StopStringsEndTheAnswerOverTokenBordersAndInsideAnAcceptedRun) {
  const LawModel& model = random_llama();
  Case c = base_case();
  c.sampling.temperature = 1;
  const Outcome whole = run(model, c);
  ASSERT_GT(whole.generation.text.size(), 20u);
  c.sampling.stop = {plain_letters(whole.generation.text)};
  const Outcome plain = run(model, c);
  EXPECT_EQ(plain.generation.stop, StopReason::stop_string);
  EXPECT_EQ(plain.generation.text,
            whole.generation.text.substr(0, whole.generation.text.find(c.sampling.stop[0])));
  c.drafters = "scripted";
  c.script = script_of(c, whole);
  c.truth = 1000;
  expect_same(plain, run(model, c), "stop string");
}

TEST(SameText, AFullContextStopsBothAtTheSameTokenAndSaysSo) {
  const LawModel& model = random_llama();
  Case c = base_case();
  while (c.prompt.size() < 490) c.prompt.push_back(static_cast<Token>(40 + c.prompt.size() % 50));
  c.sampling.max_tokens = 100;
  const Outcome plain = run(model, c);
  EXPECT_EQ(plain.generation.stop, StopReason::context_full);
  EXPECT_EQ(plain.ids.size(), 512u - 490u);
  c.drafters = "scripted";
  c.script = script_of(c, plain);
  c.truth = 1000;
  expect_same(plain, run(model, c), "full context");
}

TEST(SameText, TheRealModelGreedyAndSampled) {
  const LawModel& model = smollm2();
  ASSERT_TRUE(model.model);
  Case c;
  c.prompt =
      model.tokenizer->encode("def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n");
  c.sampling.max_tokens = 40;
  int none = 0, partial = 0, full = 0;
  for (float temperature : {0.0f, 1.0f}) {
    c.sampling.temperature = temperature;
    c.sampling.top_k = temperature > 0 ? 50 : 0;
    c.drafters = "none";
    const Outcome plain = run(model, c);
    c.script = script_of(c, plain);
    for (const char* drafters : {"scripted", "lookup"}) {
      c.drafters = drafters;
      const Outcome guessed = run(model, c);
      expect_same(plain, guessed, std::string("SmolLM2 ") + drafters);
      none += guessed.none;
      partial += guessed.partial;
      full += guessed.full;
    }
  }
  EXPECT_GT(none, 0);
  EXPECT_GT(partial, 0);
  EXPECT_GT(full, 0);
}

}  // namespace
}  // namespace coppice::core::laws
