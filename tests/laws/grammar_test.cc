// Law 1 with grammars: the same text with speculation and without, and always a text of the grammar.
#include <gtest/gtest.h>

#include <array>

#include "grammar/grammar_impl.h"
#include "grammar/machine.h"
#include "laws/harness.h"

namespace coppice::core::laws {
namespace {

// What random models can be made to say in a few dozen tokens: some end, some are cut.
constexpr const char* kSchema = R"({"type": "object", "properties": {
    "kind": {"enum": ["alpha", "beta", "gamma"]}, "n": {"type": "integer", "minimum": -20, "maximum": 3000},
    "name": {"type": "string", "maxLength": 12}, "tags": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3}},
    "required": ["kind", "name"]})";
constexpr const char* kRules =
    "root ::= item (\",\" item){0,3} \".\"\nitem ::= [a-m]{1,6} | \"(\" root \")\" | \"hello\" | \" w\" "
    "[0-9]+";

Grammar of_schema() { return *Grammar::json_schema(kSchema); }
Grammar of_rules() { return *Grammar::parse(kRules); }

Case base_case(const Grammar& grammar) {
  Case c;
  for (Token token : {72, 101, 108, 108, 111, 44, 32, 119, 111, 114, 108, 100, 33}) c.prompt.push_back(token);
  c.sampling.max_tokens = 60;
  c.sampling.grammar = grammar;
  return c;
}

// Whole texts are the grammar's; cut ones begin one. `cut` counts the latter.
void expect_of_grammar(const Grammar& grammar, const Generation& generation, int& whole, int& cut) {
  grammar::Machine machine(grammar.impl().compiled);
  const auto state = machine.walk(machine.start(), generation.text);
  if (generation.stop == StopReason::end_of_text) {
    ++whole;
    EXPECT_TRUE(machine.may_end(state)) << generation.text;
  } else {
    ++cut;
    EXPECT_EQ(generation.stop, StopReason::max_tokens);
    // The last bytes may be a character's first: they are shown as what they are not.
    if (generation.text.find("\xEF\xBF\xBD") == std::string::npos) {
      EXPECT_NE(state, grammar::kDead) << generation.text;
    }
  }
}

TEST(GrammarLaw, TheSameTextWithEveryDrafterGreedyAndSampled) {
  int whole = 0, cut = 0;
  std::uint64_t accepted = 0;
  for (const LawModel* model : random_models()) {
    const std::string self = "\"" + model->path + "\"", other = "\"" + other_llama().path + "\"";
    const std::string head = "head(\"" + head_for(*model) + "\")";
    for (const bool rules : {false, true}) {
      const Grammar grammar = rules ? of_rules() : of_schema();
      const std::array<int, 2> samplings = rules ? std::array<int, 2>{1, 2} : std::array<int, 2>{0, 3};
      for (const int sampling : samplings) {
        Case c = base_case(grammar);
        c.sampling.temperature = sampling == 0 ? 0.0f : 1.0f;
        if (sampling == 2) c.sampling.top_k = 8, c.sampling.max_tokens = 7;
        if (sampling == 3) c.sampling.top_p = 0.8f, c.sampling.logprobs = 3;
        c.sampling.seed = 17 + static_cast<std::uint64_t>(sampling);
        const Outcome plain = run(*model, c);
        expect_of_grammar(grammar, plain.generation, whole, cut);
        c.script = c.prompt;
        c.script.insert(c.script.end(), plain.ids.begin(), plain.ids.end());
        for (const std::string& drafters :
             {std::string("scripted"), std::string("lookup"), "model(" + self + ") | lookup",
              "model(" + other + ")", "stage(" + other + ", lookup) | lookup", std::string("self(layers=1)"),
              head, "stage(" + self + ", stage(" + other + ", lookup))"}) {
          c.drafters = drafters;
          const Outcome guessed = run(*model, c);
          expect_same(plain, guessed, model->name + " " + drafters + " " + std::to_string(sampling));
          accepted += guessed.generation.stats.accepted;
        }
      }
    }
  }
  EXPECT_GT(whole, 0);
  EXPECT_GT(cut, 0);
  EXPECT_GT(accepted, 100u);
}

TEST(GrammarLaw, GuessesThatTheGrammarForbidsAreNoRows) {
  const LawModel& model = random_llama();
  Case c = base_case(of_schema());
  c.sampling.temperature = 1;
  const Outcome plain = run(model, c);
  c.script = c.prompt;
  c.script.insert(c.script.end(), plain.ids.begin(), plain.ids.end());
  for (const std::string& drafters :
       {std::string("scripted"), "model(\"" + other_llama().path + "\") | lookup"}) {
    c.drafters = drafters;
    auto engine = make_engine(model, c);
    ASSERT_TRUE(engine);
    Request request = request_of(c);
    request.trace = true;
    std::vector<Token> written;
    std::size_t nodes = 0;
    grammar::Matcher matcher(c.sampling.grammar->impl().compiled, GrammarTokens(model.tokenizer).get(),
                             model.model->config().vocab);
    request.on_event = [&](const Event& event) {
      if (event.tree != nullptr) {
        const auto& tree = event.tree->nodes;
        for (std::size_t n = 1; n < tree.size(); ++n) {
          std::vector<Token> path;
          for (int at = tree[n].parent; at > 0; at = tree[static_cast<std::size_t>(at)].parent)
            path.insert(path.begin(), tree[static_cast<std::size_t>(at)].token);
          EXPECT_TRUE(matcher.allows(matcher.at(written, path), tree[n].token)) << drafters;
          ++nodes;
        }
      }
      for (const EmittedToken& token : event.tokens) written.push_back(token.token);
      return true;
    };
    ASSERT_TRUE(engine->submit(std::move(request)));
    while (engine->step()) {
    }
    EXPECT_GT(nodes, 20u) << drafters;
  }
}

TEST(GrammarLaw, ManyAnswersAndRequestsAtOnceSayWhatEachSaysAlone) {
  const LawModel& model = random_llama();
  std::vector<Case> cases;
  for (std::uint32_t i = 0; i < 8; ++i) {
    Case c = base_case(i % 2 == 0 ? of_schema() : of_rules());
    if (i == 5) c.sampling.grammar.reset(), c.sampling.ignore_eos = true;
    c.sampling.temperature = i % 3 == 0 ? 0.0f : 1.0f;
    c.sampling.choice = i / 2;  // answers of one request
    if (i == 6) c.prompt.resize(4);
    cases.push_back(c);
  }
  Case engine_case = cases[0];
  for (const std::string& drafters :
       {std::string("lookup"), "model(\"" + other_llama().path + "\") | lookup"}) {
    engine_case.drafters = drafters;
    engine_case.policy = "restless";
    auto engine = make_engine(model, engine_case, 4);
    ASSERT_TRUE(engine);
    std::vector<std::uint64_t> ids;
    for (const Case& c : cases) ids.push_back(*engine->submit(request_of(c)));
    while (engine->step()) {
    }
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const auto generation = engine->take(ids[i]);
      ASSERT_TRUE(generation.has_value());
      const Outcome alone = run(model, cases[i]);
      EXPECT_EQ(ids_of(*generation), alone.ids) << i;
      EXPECT_EQ(generation->text, alone.generation.text) << i;
      EXPECT_EQ(generation->stop, alone.generation.stop) << i;
    }
  }
}

TEST(GrammarLaw, RejectionSamplingStaysInsideTheGrammar) {
  const LawModel& model = random_llama();
  int whole = 0, cut = 0;
  std::uint64_t accepted = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Case c = base_case(of_rules());
    c.sampling.temperature = 1;
    c.sampling.acceptance = Acceptance::rejection;
    c.sampling.seed = seed;
    c.drafters =
        seed % 2 == 0 ? "model(\"" + model.path + "\")" : "model(\"" + other_llama().path + "\") | lookup";
    const Outcome out = run(model, c);
    expect_of_grammar(of_rules(), out.generation, whole, cut);
    accepted += out.generation.stats.accepted;
  }
  EXPECT_GT(whole + cut, 5);
  EXPECT_GT(accepted, 0u);
}

TEST(GrammarLaw, WhereNothingButTheEndCanFollowTheAnswerEnds) {
  for (const LawModel* model : random_models()) {
    for (const float temperature : {0.0f, 2.0f}) {
      Case c = base_case(*Grammar::parse("root ::= \"yes, hello\""));
      c.sampling.temperature = temperature;
      const Outcome plain = run(*model, c);
      EXPECT_EQ(plain.generation.text, "yes, hello");
      EXPECT_EQ(plain.generation.stop, StopReason::end_of_text);
      EXPECT_TRUE(model->tokenizer->ends_text(plain.ids.back()));
      c.drafters = "model(\"" + model->path + "\") | lookup";
      expect_same(plain, run(*model, c), "only one text");
      c.sampling.max_tokens = 2;
      EXPECT_EQ(run(*model, c).generation.stop, StopReason::max_tokens);
    }
  }
}

// Bans the tokens whose bytes are not as wanted, and those that are no text.
void ban_unless(const LawModel& model, Case& c, bool (*wanted)(std::string_view bytes)) {
  for (Token t = 0; t < model.tokenizer->size(); ++t) {
    const auto bytes = model.tokenizer->bytes(t);
    if (bytes.empty() || !wanted(bytes)) c.sampling.banned.push_back(t);
  }
}

TEST(GrammarLaw, WhatWouldHaveBeenAllowedAnywayIsUnchanged) {
  const LawModel& model = random_llama();
  Case c = base_case(*Grammar::parse("root ::= .*"));
  c.sampling.max_tokens = 20;
  ban_unless(model, c, [](std::string_view bytes) { return bytes[0] >= 'a' && bytes[0] <= 'z'; });
  for (const float temperature : {0.0f, 1.0f}) {
    c.sampling.temperature = temperature;
    Case free = c;
    free.sampling.grammar.reset();
    EXPECT_EQ(run(model, c).ids, run(model, free).ids);
  }
}

TEST(GrammarLaw, WhatCannotGoOnFailsInTheSameWay) {
  const LawModel& model = random_llama();
  Case c = base_case(*Grammar::parse("root ::= \"abc\""));
  ban_unless(model, c, [](std::string_view bytes) { return bytes.size() == 1 && bytes != "c"; });
  for (const char* drafters : {"none", "lookup"}) {
    c.drafters = drafters;
    auto engine = make_engine(model, c);
    ASSERT_TRUE(engine);
    const auto id = engine->submit(request_of(c));
    ASSERT_TRUE(id);
    while (engine->step()) {
    }
    const auto generation = engine->take(*id);
    ASSERT_TRUE(generation.has_value());
    EXPECT_EQ(generation->stop, StopReason::failed);
    EXPECT_NE(generation->error.find("of the tokens that the grammar allows here"), std::string::npos);
    EXPECT_EQ(generation->tokens.size(), 2u);
  }
  Request forced = request_of(c);
  forced.forced = {65};
  EXPECT_FALSE(make_engine(model, c)->submit(forced));
}

}  // namespace
}  // namespace coppice::core::laws
