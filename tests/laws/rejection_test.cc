// acceptance = rejection, end to end: the tokens of many requests have exactly the target's distribution,
// whoever guessed them; and a draft that is the target is never refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "draft/model_drafter.h"
#include "engine/engine.h"
#include "laws/harness.h"
#include "model/testing.h"
#include "policy/auto_policy.h"
#include "sample/testing.h"

namespace coppice::core::laws {
namespace {

constexpr int kAllowed = 7;  // tokens; the best 6 of them can be drawn, and each model has its own best 6
constexpr int kRequests = 20000;
constexpr int kAtOnce = 16;
// Repeats itself, so that lookup has something to say.
const std::vector<Token> kPrompt{40, 71, 55, 40, 71, 62, 80, 40, 71, 97, 40, 71, 55, 40, 71};
constexpr Token kTokens[kAllowed] = {40, 71, 55, 62, 80, 97, 120};

Sampling sampling_of(std::uint32_t stream) {
  Sampling sampling;
  sampling.temperature = 1.5f;
  sampling.top_k = kAllowed - 1;
  for (const Token token : kTokens) sampling.logit_bias.emplace_back(token, 60.0f);
  sampling.seed = 5;
  sampling.stream = stream;
  sampling.max_tokens = 4;
  sampling.ignore_eos = true;
  sampling.acceptance = Acceptance::rejection;
  return sampling;
}

int place_of(Token token) {
  const auto at = std::find(std::begin(kTokens), std::end(kTokens), token);
  return at == std::end(kTokens) ? -1 : static_cast<int>(at - std::begin(kTokens));
}

ThreadPool& pool() {
  static ThreadPool one(1);
  return one;
}

// Of the first two tokens, straight from the logits.
const std::vector<double>& exact_chances() {
  static const std::vector<double> all = [] {
    const LawModel& model = random_llama();
    const int vocab = model.model->config().vocab;
    Sampling sampling = sampling_of(0);
    const Sampler sampler = *Sampler::make(sampling, vocab, model.tokenizer->vocabulary().end_tokens);
    Sampler::Scratch scratch(vocab);
    const auto after = [&](const std::vector<Token>& path) {
      auto context = testing::make_context(model.model, pool());
      std::vector<Token> tokens = kPrompt;
      tokens.insert(tokens.end(), path.begin(), path.end());
      const auto logits = testing::run_chain(*context, *context->cache().open(), tokens).back();
      EXPECT_TRUE(sampler.distribution(logits, {kPrompt, path}, scratch));
      std::vector<double> chances;
      for (const Token token : kTokens) chances.push_back(scratch.probabilities[token]);
      return chances;
    };
    std::vector<double> out;
    const auto first = after({});
    for (int a = 0; a < kAllowed; ++a) {
      const auto second = after({kTokens[a]});
      for (int b = 0; b < kAllowed; ++b) out.push_back(first[a] * second[b]);
    }
    return out;
  }();
  return all;
}

struct Sampled {
  std::vector<std::int64_t> pairs = std::vector<std::int64_t>(kAllowed * kAllowed);
  std::uint64_t reached = 0, accepted = 0;  // nodes with guesses below them that were visited
  std::uint64_t guesses = 0, cycles = 0, tokens = 0;
};

Sampled sample(std::unique_ptr<Grower> grower, int nodes, int requests = kRequests,
               std::unique_ptr<Policy> policy = nullptr) {
  Sampled out;
  const LawModel& model = random_llama();
  EngineSetup setup;
  setup.model = model.model;
  setup.tokenizer = model.tokenizer;
  setup.pool = &pool();
  setup.grower = std::move(grower);
  setup.context = 64;
  setup.max_requests = kAtOnce;
  setup.speculation.nodes = nodes;
  setup.speculation.depth = 3;
  setup.speculation.price = 0;
  setup.speculation.pass_price = 0;
  setup.speculation.policy = "fixed";
  setup.policy = std::move(policy);
  auto engine = Engine::make(std::move(setup));
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  if (!engine) return out;
  for (int first = 0; first < requests; first += kAtOnce) {
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < kAtOnce; ++i) {
      Request request;
      request.prompt = kPrompt;
      request.sampling = sampling_of(static_cast<std::uint32_t>(first + i));
      ids.push_back(*(*engine)->submit(std::move(request)));
    }
    while ((*engine)->step()) {
    }
    for (const std::uint64_t id : ids) {
      const auto generation = (*engine)->take(id);
      const auto& tokens = generation->tokens;
      EXPECT_EQ(tokens.size(), 4u) << generation->error;
      const int a = place_of(tokens[0].token), b = place_of(tokens[1].token);
      EXPECT_TRUE(a >= 0 && b >= 0);
      if (a < 0 || b < 0) return out;
      ++out.pairs[static_cast<std::size_t>(a * kAllowed + b)];
      const Stats& stats = generation->stats;
      for (const auto n : stats.reached_at_depth) out.reached += n;
      for (const auto n : stats.accepted_at_depth) out.accepted += n;
      out.guesses += stats.guesses;
      out.cycles += stats.cycles;
      out.tokens += tokens.size();
    }
  }
  return out;
}

std::unique_ptr<Grower> drafters(const std::string& expression) {
  Case c;
  c.drafters = expression;
  c.threads = 1;
  auto made = make_drafters(random_llama(), c, kAtOnce);
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return std::move(*made);
}

std::string self() { return random_llama().path; }
std::string other() { return other_llama().path; }

void expect_exact(const std::string& expression, int nodes, int requests = kRequests,
                  std::unique_ptr<Policy> policy = nullptr) {
  const Sampled sampled = sample(drafters(expression), nodes, requests, std::move(policy));
  EXPECT_GT(chi_squared_p(sampled.pairs, exact_chances()), 1e-3) << expression << ", " << nodes << " nodes";
  // It did speculate.
  EXPECT_GT(sampled.accepted, static_cast<std::uint64_t>(requests) / 4) << expression;
  std::printf("%s, %d nodes: %.3f of the visited nodes with guesses accept, %.2f tokens a pass\n",
              expression.c_str(), nodes,
              static_cast<double>(sampled.accepted) / static_cast<double>(sampled.reached),
              static_cast<double>(sampled.tokens) / static_cast<double>(sampled.cycles));
}

TEST(RejectionLaw, TheExactChancesAreADistributionWorthTesting) {
  double sum = 0;
  int cells = 0;
  for (const double p : exact_chances()) sum += p, cells += p > 0;
  EXPECT_NEAR(sum, 1.0, 1e-5);
  EXPECT_EQ(cells, (kAllowed - 1) * (kAllowed - 1));
}

TEST(RejectionLaw, ChainsOfAnotherModelsDrawsEmitTheTargetsDistribution) {
  expect_exact("model(" + other() + ")", 3);
}
TEST(RejectionLaw, TreesOfAnotherModelsDrawsEmitTheTargetsDistribution) {
  expect_exact("model(" + other() + ")", 10);
}
TEST(RejectionLaw, TheModelItselfAsADraftEmitsItsDistribution) {
  expect_exact("model(" + self() + ")", 3);
  expect_exact("model(" + self() + ")", 10);
}
TEST(RejectionLaw, CertainGuessesEmitTheTargetsDistribution) {
  expect_exact("lookup", 3);
  expect_exact("lookup", 10);
}
TEST(RejectionLaw, AMixOfStageAndLookupEmitsTheTargetsDistribution) {
  expect_exact("stage(" + other() + ", lookup) | lookup", 10);
  expect_exact("stage(" + other() + ", model(" + self() + ") | lookup) | lookup", 10, 4000);
}

TEST(RejectionLaw, ADraftHeadEmitsTheTargetsDistribution) {
  const std::string head = "head(\"" + head_for(random_llama()) + "\")";
  expect_exact(head, 3);
  expect_exact(head + " | lookup", 10, 8000);
}

// The controller in a world where drafts and rows cost next to nothing.
class Timeless final : public AutoPolicy {
 public:
  Timeless() : AutoPolicy({kAtOnce, {{{1, 1}, {200, 1.1}}, 0, 0, 1}, true, 1e-3}) {}
  void learn(std::span<const Decoding> requests, const PassTimes& measured) override {
    PassTimes times = measured;
    times.pass = 1.3;
    times.drafting = times.draft.seconds = 1e-3;
    AutoPolicy::learn(requests, times);
  }
};

TEST(RejectionLaw, TreesThatFollowWhatPassesCostEmitTheTargetsDistribution) {
  expect_exact("model(" + other() + ")", 10, 8000, std::make_unique<Timeless>());
  expect_exact("model(" + self() + ") | lookup", 10, 4000, std::make_unique<Timeless>());
}

// Stops and probes, a window that moves, and guesses that are left out for their chance.
TEST(RejectionLaw, TreesThatFollowRulesOfConfidenceEmitTheTargetsDistribution) {
  PolicySetup setup;
  setup.requests = kAtOnce;
  setup.drafts = {{0, 0.1, false}};
  for (const char* policy : {"adaptive(tau=off, reject=0.05, sure=0.3, first=2, stop=off, batch=off)",
                             "adaptive(tau=off, reject=off, sure=0.3, stop=0.5, monitor=1, rest=1, probe=1)"})
    expect_exact("model(" + other() + ")", 10, 8000, *choose_policy(policy)->make(setup));
}

TEST(RejectionLaw, ADraftThatIsTheTargetIsNeverRefused) {
  for (const int nodes : {3, 10}) {
    const Sampled sampled = sample(drafters("model(" + self() + ")"), nodes, 2000);
    EXPECT_EQ(sampled.accepted, sampled.reached);
    if (nodes == 3) {
      EXPECT_EQ(sampled.tokens, 4 * sampled.cycles);  // chains, all of them taken
    }
    EXPECT_GT(sampled.accepted, 2 * sampled.cycles);
  }
}

// A drafter that gives the verifier another distribution than the one its guesses were drawn from.
class WrongNode final : public Drafter {
 public:
  explicit WrongNode(std::unique_ptr<Drafter> right) : right_(std::move(right)) {}
  std::string_view name() const override { return "wrong"; }
  DrafterShape shape() const override { return right_->shape(); }
  Status begin(int sequence, std::span<const Token> tokens, const Sampler& sampler) override {
    forget(sequence);
    return right_->begin(sequence, tokens, sampler);
  }
  void end(int sequence) override { right_->end(sequence); }
  void predict(std::span<Query> queries) override { right_->predict(queries); }
  bool knows(const Query& query) const override { return right_->knows(query); }
  void describe(const Query& query, std::span<const Token> tokens, float* out, int stride) override {
    right_->describe(query, tokens, out, stride);
  }
  void observe(int sequence, std::span<const Token> accepted) override {
    right_->observe(sequence, accepted);
    forget(sequence);
  }
  std::span<const float> distribution(const Query& query) const override {
    Query asked = query;
    const std::vector<Token> path(query.state.path.begin(), query.state.path.end());
    if (!seen_.insert({query.sequence, path}).second) asked.state.path = {};
    return right_->distribution(asked);
  }

 private:
  void forget(int sequence) {
    std::erase_if(seen_, [&](const auto& node) { return node.first == sequence; });
  }

  std::unique_ptr<Drafter> right_;
  mutable std::set<std::pair<int, std::vector<Token>>> seen_;  // whose children were drawn
};

TEST(RejectionLaw, TheTestSeesTheDistributionOfAWrongNode) {
  ModelDrafter::Options options;
  options.sequences = kAtOnce;
  options.context = 64;
  std::vector<std::unique_ptr<Drafter>> one;
  one.push_back(
      std::make_unique<WrongNode>(*ModelDrafter::make(other_llama().model, nullptr, options, pool())));
  const Sampled sampled = sample(std::make_unique<Grower>(std::move(one), Grower::Options{kAtOnce}), 10);
  EXPECT_LT(chi_squared_p(sampled.pairs, exact_chances()), 1e-6);
}

TEST(RejectionLaw, GreedyIsThePlainTextToTheToken) {
  for (const LawModel* model : random_models()) {
    Case c;
    c.prompt = {40, 71, 55, 40, 71, 62, 80};
    c.sampling.max_tokens = 60;
    const Outcome plain = run(*model, c);
    c.sampling.acceptance = Acceptance::rejection;
    const std::string another = model == &random_llama() ? "model(" + other() + ")" : "lookup";
    for (const std::string& mix :
         {std::string("none"), std::string("lookup"), another, another + " | lookup"}) {
      if (mix == "lookup | lookup") continue;
      c.drafters = mix;
      expect_same(plain, run(*model, c), model->name + ", " + mix);
    }
  }
}

}  // namespace
}  // namespace coppice::core::laws
