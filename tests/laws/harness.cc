#include "laws/harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "base/check.h"
#include "draft/expression.h"
#include "draft/model_drafter.h"
#include "draft/registry.h"
#include "model/architectures.h"
#include "model/random_head.h"
#include "model/random_model.h"

namespace coppice::core::laws {
namespace {

constexpr int kContext = 512;

ThreadPool& pool_of(int threads) {
  static std::map<int, std::unique_ptr<ThreadPool>> pools;
  auto& pool = pools[threads];
  if (!pool) pool = std::make_unique<ThreadPool>(threads);
  return *pool;
}

template <class T>
T must(Result<T> result) {
  if (!result) {
    ADD_FAILURE() << result.error().message;
    std::abort();  // nothing of this process can go on
  }
  return std::move(*result);
}

Result<LawModel> load(const std::string& name, const std::string& path) {
  LawModel out;
  out.name = name;
  out.path = path;
  COPPICE_TRY(auto file, gguf::File::open(path));
  COPPICE_TRY(auto vocabulary, Vocabulary::read(*file));
  COPPICE_TRY(out.tokenizer, Tokenizer::make(std::move(vocabulary)));
  COPPICE_TRY(out.model, Model::load(file, pool_of(2)));
  return out;
}

LawModel make_random(const std::string& name, const RandomModelOptions& options) {
  const std::string path = temporary_folder() + "/" + name + ".gguf";
  const auto bytes = must(random_model(options));
  EXPECT_TRUE(write_file(path, [&](const Append& append) { return append(bytes); }));
  return must(load(name, path));
}

// Random numbers that depend on what they are asked about and nothing else.
std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 31;
  x *= 0x9e3779b97f4a7c15ull;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ull;
  return x ^ (x >> 32);
}

class Scripted : public Drafter {
 public:
  Scripted(std::vector<Token> script, int truth, int vocab)
      : script_(std::move(script)), truth_(truth), vocab_(vocab) {}

  std::string_view name() const override { return "scripted"; }
  DrafterShape shape() const override { return {1, 1, false}; }
  Status begin(int, std::span<const Token>, const Sampler&) override { return {}; }
  void end(int) override {}
  void observe(int, std::span<const Token>) override {}
  void describe(const Query&, std::span<const Token> tokens, float* out, int stride) override {
    for (std::size_t i = 0; i < tokens.size(); ++i) out[i * static_cast<std::size_t>(stride)] = 0;
  }

  void predict(std::span<Query> queries) override {
    for (Query& query : queries) {
      query.count = 0;
      std::uint64_t state = 77;
      for (Token token : query.state.path) state = mix(state + static_cast<std::uint64_t>(token) + 1);
      const auto index = static_cast<std::size_t>(query.state.index());
      state = mix(state + index);
      const int wanted = 1 + static_cast<int>(state % 4);
      if (mix(state) % 1000 < static_cast<std::uint64_t>(truth_) && on_script(query))
        add(query, script_[index]);
      for (int i = 0; query.count < wanted && i < 8; ++i) {
        state = mix(state);
        add(query, static_cast<Token>(state % static_cast<std::uint64_t>(vocab_)));
      }
    }
  }

 private:
  bool on_script(const Query& query) const {
    const auto index = static_cast<std::size_t>(query.state.index());
    if (index >= script_.size()) return false;
    for (std::size_t i = 0; i < query.state.path.size(); ++i) {
      if (query.state.back(i) != script_[index - 1 - i]) return false;
    }
    return true;
  }
  static void add(Query& query, Token token) {
    for (int i = 0; i < query.count; ++i) {
      if (query.candidates[i].token == token) return;
    }
    query.candidates[query.count++] = {token, -1.0f};
  }

  std::vector<Token> script_;
  int truth_, vocab_;
};

}  // namespace

Result<std::unique_ptr<Grower>> make_drafters(const LawModel& model, const Case& c, int requests) {
  if (c.drafters == "scripted" || c.drafters == "restless") {
    std::vector<std::unique_ptr<Drafter>> drafters;
    if (c.drafters == "scripted") {
      drafters.push_back(make_scripted(c.script, c.truth, model.model->config().vocab));
    } else {
      COPPICE_TRY(auto restless, make_restless(c, requests));
      drafters.push_back(std::move(restless));
    }
    Grower::Options options;
    options.sequences = requests;
    return std::make_unique<Grower>(std::move(drafters), options);
  }
  COPPICE_TRY(auto mix, parse_drafters(c.drafters));
  if (mix.empty()) return nullptr;
  DraftEnvironment environment;
  environment.custom = c.custom;
  environment.vocabulary = &model.tokenizer->vocabulary();
  environment.target = model.model;
  environment.tokenizer = model.tokenizer.get();
  environment.pool = &pool_of(c.threads);
  environment.sequences = requests;
  environment.context = kContext;
  environment.cache_type = c.cache;
  environment.load_model = [&c](const std::string& path) -> Result<std::shared_ptr<const Model>> {
    COPPICE_TRY(auto file, gguf::File::open(path));
    return Model::load(file, pool_of(c.threads));
  };
  environment.load_vocabulary = [](const std::string& path) -> Result<Vocabulary> {
    COPPICE_TRY(auto file, gguf::File::open(path));
    return Vocabulary::read(*file);
  };
  return make_grower(mix, environment);
}

namespace {

void count_acceptance(const TreeTrace& tree, Outcome& out) {
  if (tree.nodes.size() < 2) return;
  std::size_t last = 0, taken = 0;
  for (std::size_t n = 0; n < tree.nodes.size(); ++n) {
    if (!tree.nodes[n].taken) continue;
    last = n;
    ++taken;
  }
  bool leaf = true;
  for (const auto& node : tree.nodes) leaf = leaf && node.parent != static_cast<int>(last);
  if (taken == 1) {
    ++out.none;
  } else if (leaf) {
    ++out.full;
  } else {
    ++out.partial;
  }
}

}  // namespace

namespace {

// Hands everything on, with another capacity in every call.
class Restless : public Drafter {
 public:
  explicit Restless(std::unique_ptr<Drafter> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return "restless"; }
  DrafterShape shape() const override { return inner_->shape(); }
  Status begin(int sequence, std::span<const Token> tokens, const Sampler& sampler) override {
    return inner_->begin(sequence, tokens, sampler);
  }
  void end(int sequence) override { inner_->end(sequence); }
  bool knows(const Query& query) const override { return inner_->knows(query); }
  void describe(const Query& query, std::span<const Token> tokens, float* out, int stride) override {
    inner_->describe(query, tokens, out, stride);
  }
  std::span<const float> distribution(const Query& query) const override {
    return inner_->distribution(query);
  }
  void observe(int sequence, std::span<const Token> accepted) override {
    inner_->observe(sequence, accepted);
  }
  PassCost take_cost() override { return inner_->take_cost(); }
  void predict(std::span<Query> queries) override {
    const float capacity = 0.5f + 0.25f * static_cast<float>(calls_++ % 3);
    for (Query& query : queries) query.budget.capacity = capacity;
    inner_->predict(queries);
  }

 private:
  std::unique_ptr<Drafter> inner_;
  int calls_ = 0;
};

}  // namespace

Result<std::unique_ptr<Drafter>> make_restless(const Case& c, int requests) {
  ModelDrafter::Options options;
  options.sequences = requests;
  options.context = kContext;
  options.cache_type = c.cache;
  COPPICE_TRY(auto draft, ModelDrafter::make(slim_llama().model, nullptr, options, pool_of(c.threads)));
  return std::make_unique<Restless>(std::move(draft));
}

namespace {

class RestlessPolicy : public Policy {
 public:
  void plan(std::span<Decoding> requests) override {
    for (Decoding& request : requests) {
      request.budget = within_reach(request);
      request.budget.nodes = std::min(request.budget.nodes, static_cast<int>(next() % 20));
      request.budget.costly = next() % 3 != 0;
      request.budget.drafters = static_cast<SourceMask>(next() % 8);
      request.budget.least_chance = static_cast<float>(next() % 3) * 0.1f;
      request.budget.exit = next() % 3 == 0;
      request.budget.price = static_cast<float>(next() % 3) * 0.02f;
      request.budget.pass_price = static_cast<float>(next() % 3) * 0.5f;
      request.probe = next() % 2 == 0;
    }
  }
  int prompt_rows(std::span<const Decoding>, int most) const override { return 1 + calls_ % most; }
  void trim(std::span<Decoding> requests, int) override {
    for (Decoding& request : requests)
      if (request.by_value) request.tree->keep_best(static_cast<int>(next() % 20));
  }

 private:
  std::uint64_t next() { return state_ = mix(state_ + static_cast<std::uint64_t>(++calls_)); }
  std::uint64_t state_ = 11;
  int calls_ = 0;
};

}  // namespace

std::unique_ptr<Policy> make_restless_policy() { return std::make_unique<RestlessPolicy>(); }

std::function<double()> wild_clock() {
  return [time = 0.0, state = std::uint64_t{3}]() mutable {
    state = mix(state + 1);
    return time += state % 5 == 0 ? static_cast<double>(state % 1000) * 1e-2 : 1e-5;
  };
}

std::unique_ptr<Drafter> make_scripted(std::vector<Token> script, int truth, int vocab) {
  return std::make_unique<Scripted>(std::move(script), truth, vocab);
}

std::uint64_t hash_bytes(std::uint64_t hash, const void* bytes, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 1099511628211ull;
  }
  return hash;
}

std::string temporary_folder() {
  struct Folder {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("coppice_laws_" + std::to_string(std::rand()) +
                                                  std::to_string(static_cast<long long>(seconds() * 1e6)));
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static Folder folder;
  return folder.path.string();
}

const LawModel& random_llama() {
  static const LawModel model = [] {
    RandomModelOptions options;
    options.formats = {"Q4_1", "Q4_0", "Q8_0", "F16"};
    options.head_dim = 32;  // so that every cache type is possible
    return make_random("random-llama", options);
  }();
  return model;
}

const LawModel& random_gpt2() {
  static const LawModel model = [] {
    RandomModelOptions options;
    options.architecture = "gpt2";
    options.heads = options.kv_heads = 2;
    options.formats = {"Q8_0", "Q4_0", "BF16", "F32"};
    options.seed = 2;
    return make_random("random-gpt2", options);
  }();
  return model;
}

const LawModel& other_llama() {
  static const LawModel model = [] {
    RandomModelOptions options;
    options.layers = 1;
    options.seed = 3;
    return make_random("other-llama", options);
  }();
  return model;
}

const LawModel& slim_llama() {
  static const LawModel model = [] {
    RandomModelOptions options;
    options.hidden = 128;
    options.feed_forward = 256;
    options.seed = 5;
    options.formats = {"Q4_1"};
    options.slim = {{64, 96, 128}, {128, 192, 256}, {0.5f, 0.75f, 1.0f}, 1, 1};
    return make_random("slim-llama", options);
  }();
  return model;
}

std::string head_for(const LawModel& model) {
  RandomHeadOptions options;
  options.formats = {"Q4_1", "Q8_0"};
  options.rows = model.model->config().vocab - 7;
  const std::string path = temporary_folder() + "/" + model.name + ".head.gguf";
  const Status written = write_random_head(model.model->config(), options, path);
  EXPECT_TRUE(written) << (written ? "" : written.error().message);
  return path;
}

const LawModel& smollm2() {
  static const LawModel model = [] {
    const char* path = std::getenv("COPPICE_MODEL");
    auto loaded =
        load("SmolLM2", path != nullptr ? path : cache_directory() + "/SmolLM2-135M-Instruct.Q4_1.gguf");
    if (!loaded) {
      ADD_FAILURE() << "the real model is needed (scripts/fetch_model.sh brings it): "
                    << loaded.error().message;
      return LawModel{};
    }
    return *loaded;
  }();
  return model;
}

const std::vector<LawModel>& every_architecture() {
  static const std::vector<LawModel> models = [] {
    std::vector<LawModel> made;
    RandomModelOptions shape;
    shape.formats = {"Q8_0", "Q4_0", "F16"};
    shape.head_dim = 32;
    shape.layers = 3;
    shape.seed = 11;
    for (const Architecture& row : architectures()) {
      RandomModelOptions options = shape;
      options.architecture = row.name;
      options.window = row.window_period > 0 ? 21 : 0;
      options.layers = std::max(options.layers, row.unturned_period);
      if (row.name == "gpt2") options.kv_heads = options.heads;
      made.push_back(make_random(options.architecture, options));
    }
    shape.experts = 5;
    made.push_back(make_random("llama-experts", shape));
    return made;
  }();
  return models;
}

std::vector<const LawModel*> random_models() { return {&random_llama(), &random_gpt2()}; }

std::unique_ptr<Engine> make_engine(const LawModel& model, const Case& c, int requests, OnLogits on_logits) {
  EngineSetup setup;
  auto drafters = make_drafters(model, c, requests);
  EXPECT_TRUE(drafters) << (drafters ? "" : drafters.error().message);
  if (!drafters) return nullptr;
  setup.grower = std::move(*drafters);
  setup.model = model.model;
  setup.tokenizer = model.tokenizer;
  setup.pool = &pool_of(c.threads);
  setup.context = kContext;
  setup.max_requests = requests;
  setup.chunk = c.chunk;
  setup.cache = c.cache;
  setup.speculation.nodes = setup.grower ? c.nodes : 0;
  setup.speculation.depth = c.depth;
  setup.speculation.width = c.width;
  setup.speculation.price = c.price;
  setup.speculation.pass_price = c.pass_price;
  setup.costs = c.costs;
  setup.clock = c.clock;
  setup.max_waiting = c.max_waiting;
  setup.positions = c.positions;
  if (c.policy == "restless")
    setup.policy = make_restless_policy();
  else
    setup.speculation.policy = c.policy;
  setup.on_logits = std::move(on_logits);
  auto engine = Engine::make(std::move(setup));
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  return engine ? std::move(*engine) : nullptr;
}

Request request_of(const Case& c) {
  Request request;
  request.prompt = c.prompt;
  request.sampling = c.sampling;
  return request;
}

std::vector<Token> ids_of(const Generation& generation) {
  std::vector<Token> ids;
  for (const EmittedToken& token : generation.tokens) ids.push_back(token.token);
  return ids;
}

Outcome run(const LawModel& model, const Case& c) {
  Outcome out;
  auto engine = make_engine(model, c, 1, [&](std::uint64_t, std::int64_t, std::span<const float> logits) {
    out.logits.push_back(hash_bytes(kHashStart, logits.data(), logits.size_bytes()));
  });
  if (!engine) return out;
  Request request = request_of(c);
  request.trace = true;
  request.on_event = [&](const Event& event) {
    if (event.tree != nullptr) count_acceptance(*event.tree, out);
    const bool prefill = event.tokens.empty() && event.text.empty() && event.decisions.empty();
    if (prefill && event.prefill <= 1) ++out.prefill_passes;
    return true;
  };
  auto id = engine->submit(request);
  EXPECT_TRUE(id) << (id ? "" : id.error().message);
  if (!id) return out;
  while (engine->step()) {
  }
  auto generation = engine->take(*id);
  EXPECT_TRUE(generation.has_value());
  if (!generation) return out;
  EXPECT_NE(generation->stop, StopReason::failed) << generation->error;
  out.target_passes = engine->context().stats().passes;
  out.generation = std::move(*generation);
  out.ids = ids_of(out.generation);
  out.hash = hash_bytes(kHashStart, out.ids.data(), out.ids.size() * sizeof(Token));
  out.hash = hash_bytes(out.hash, out.logits.data(), out.logits.size() * sizeof(std::uint64_t));
  out.hash = hash_bytes(out.hash, out.generation.text.data(), out.generation.text.size());
  return out;
}

void expect_same(const Outcome& plain, const Outcome& other, const std::string& what) {
  EXPECT_EQ(plain.ids, other.ids) << what;
  EXPECT_EQ(plain.logits, other.logits) << what << ": logits, bit for bit";
  EXPECT_EQ(plain.generation.text, other.generation.text) << what;
  EXPECT_EQ(plain.generation.stop, other.generation.stop) << what;
  ASSERT_EQ(plain.generation.tokens.size(), other.generation.tokens.size()) << what;
  for (std::size_t i = 0; i < plain.generation.tokens.size(); ++i) {
    EXPECT_EQ(plain.generation.tokens[i].logprob, other.generation.tokens[i].logprob)
        << what << " token " << i;
    EXPECT_EQ(plain.generation.tokens[i].top, other.generation.tokens[i].top) << what << " token " << i;
  }
  EXPECT_EQ(other.target_passes, other.generation.stats.cycles + other.prefill_passes)
      << what << ": one pass of the target a cycle";
}

}  // namespace coppice::core::laws
