#include "engine/engine.h"

#include <coppice/engine.h>
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "api/draft_files.h"
#include "api/impl.h"
#include "base/check.h"
#include "base/os.h"
#include "draft/custom_drafter.h"
#include "draft/expression.h"
#include "draft/prior.h"
#include "draft/registry.h"
#include "policy/fitted_file.h"
#include "policy/policy.h"

namespace coppice {
namespace {

constexpr std::uint64_t kMuchRefined = 500;  // passes after which costs are known better than when measured
constexpr double kWorthKeeping = 1e-3;       // seconds of a pass: smaller models are measured in no time

// Where what passes cost is kept from one start to the next, by all it depends on.
struct CostFile {
  std::string key, path;

  void name(const Model::Impl& target, const core::EngineSetup& setup) {
    const core::ModelConfig& shape = target.model->config();
    key = fmt::format(
        "{}; {}, {} threads; {} bytes in {} layers of {}, vocabulary {}; cache {}; {} x {} nodes, {}",
        core::cpu_features().name, core::kernels().name, target.pool->size(), target.model->weight_bytes(),
        shape.layers, shape.hidden, shape.vocab, static_cast<int>(setup.cache), setup.max_requests,
        setup.speculation.nodes, setup.chunk);
    path = core::cost_path(core::cache_directory() + "/costs", key);
  }
  // What cannot be read is measured again, what cannot be written is measured the next time.
  std::optional<core::CostTable> find() const {
    auto table = core::load_costs(path, key);
    return table ? std::optional(std::move(*table)) : std::nullopt;
  }
  void keep(const core::Engine& engine, std::uint64_t passes) const {
    const core::CostModel* costs = engine.costs();
    if (costs == nullptr || costs->refined() < passes) return;
    const core::CostTable table = costs->table();
    if (table.points[0].seconds > kWorthKeeping) (void)core::save_costs(path, key, table);
  }
};

}  // namespace

struct Engine::Impl {
  Model model;
  EngineOptions options;
  std::unique_ptr<core::Engine> engine;
  CostFile costs;
  ~Impl() {
    if (engine) costs.keep(*engine, kMuchRefined);
  }
};

std::uint64_t cache_bytes(const core::ModelConfig& config, core::CacheType type, int positions) {
  const core::KvLayout layout{type, config.kv_heads, config.heads, config.head_dim};
  const int blocks = (positions + core::kBlockPositions - 1) / core::kBlockPositions;
  return layout.block_bytes() * static_cast<std::uint64_t>(blocks) *
         static_cast<std::uint64_t>(config.layers);
}

core::CacheType cache_type(KvType type) {
  switch (type) {
    case KvType::f32:
      return core::CacheType::f32;
    case KvType::f16:
      return core::CacheType::f16;
    case KvType::q8_0:
      return core::CacheType::q8_0;
  }
  return core::CacheType::f16;
}

namespace {

constexpr int kDefaultContext = 4096;

// The tokens of all requests, or as many as may be.
int positions_within(const EngineOptions& options, const core::ModelConfig& config) {
  const std::uint64_t block = cache_bytes(config, cache_type(options.cache), core::kBlockPositions);
  const std::uint64_t room = options.cache_bytes / block * core::kBlockPositions;
  const std::int64_t wanted = std::int64_t{options.max_requests} * options.context;
  if (room >= static_cast<std::uint64_t>(wanted)) return 0;
  return std::max(options.context, static_cast<int>(room));
}

core::DraftEnvironment draft_environment(const Model::Impl& target, const EngineOptions& options) {
  core::DraftEnvironment environment;
  environment.vocabulary = &target.tokenizer.impl().tokenizer->vocabulary();
  environment.target = target.model;
  environment.tokenizer = target.tokenizer.impl().tokenizer.get();
  environment.sequences = options.max_requests;
  environment.context = options.context;
  environment.cache_type = cache_type(options.cache);
  environment.custom = options.custom_drafters;
  add_draft_files(environment, *target.pool);
  return environment;
}

Result<std::unique_ptr<core::Grower>> make_grower(const Model::Impl& target, const EngineOptions& options) {
  COPPICE_TRY_STATUS(core::check_custom_drafters(options.custom_drafters));
  COPPICE_TRY(auto mix, core::parse_drafters(options.speculation.drafters));
  if (mix.empty() || options.speculation.nodes == 0) return nullptr;
  COPPICE_TRY(auto grower, core::make_grower(mix, draft_environment(target, options)));
  if (!options.speculation.prior.empty()) {
    COPPICE_TRY(auto prior, core::load_prior(options.speculation.prior));
    COPPICE_TRY_STATUS(core::apply_prior(prior, *grower));
  }
  return grower;
}

}  // namespace

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Result<Engine> Engine::make(const Model& model, const EngineOptions& wanted) {
  EngineOptions options = wanted;
  if (options.context < 0) return fail(fmt::format("a context of {} tokens makes no sense", options.context));
  if (options.context == 0) options.context = std::min(model.info().context_length, kDefaultContext);
  const Model::Impl& target = model.impl();
  core::EngineSetup setup;
  setup.model = target.model;
  setup.tokenizer = target.tokenizer.impl().tokenizer;
  setup.grammar_tokens = target.grammar_tokens;
  setup.pool = target.pool.get();
  setup.context = options.context;
  setup.max_requests = options.max_requests;
  setup.chunk = options.chunk;
  setup.cache = cache_type(options.cache);
  setup.max_waiting = options.max_waiting;
  setup.speculation = options.speculation;
  setup.positions = options.positions;
  COPPICE_TRY_STATUS(core::Engine::check(setup));
  if (options.positions == 0 && options.cache_bytes > 0)
    setup.positions = options.positions = positions_within(options, target.model->config());
  COPPICE_TRY(setup.grower, make_grower(target, options));
  if (!setup.grower) setup.speculation.nodes = options.speculation.nodes = 0;
  CostFile costs;
  costs.name(target, setup);
  setup.costs = costs.find();
  const bool measured = !setup.costs;
  COPPICE_TRY(auto engine, core::Engine::make(std::move(setup)));
  if (measured) costs.keep(*engine, 0);
  return Engine(std::unique_ptr<Impl>(new Impl{model, options, std::move(engine), std::move(costs)}));
}

Result<Generation> Engine::generate(const Request& request) {
  COPPICE_TRY(std::uint64_t id, impl_->engine->submit(request));
  while (true) {
    const bool busy = impl_->engine->step();
    if (auto generation = impl_->engine->take(id)) return std::move(*generation);
    if (!busy) return fail("the engine stopped without an answer; this is a bug of ours");
  }
}

Result<std::uint64_t> Engine::submit(Request request) { return impl_->engine->submit(std::move(request)); }
bool Engine::step() { return impl_->engine->step(); }
void Engine::cancel(std::uint64_t request) { impl_->engine->cancel(request); }
std::optional<Generation> Engine::take(std::uint64_t request) { return impl_->engine->take(request); }
const EngineOptions& Engine::options() const { return impl_->options; }
std::vector<std::string> Engine::sources() const { return impl_->engine->sources(); }
std::size_t Engine::bytes() const { return impl_->engine->bytes(); }

Status check_drafters(const std::string& expression, bool files) {
  COPPICE_TRY(const auto mix, core::parse_drafters(expression));
  return core::check_mix(mix, files);
}

Status check_policy_files(const std::string& policy, const std::string& drafters) {
  COPPICE_TRY(auto chosen, core::choose_policy(policy));
  COPPICE_TRY(const auto mix, core::parse_drafters(drafters));
  core::begin_with_fitted(mix, chosen);
  return chosen.check_files();
}

std::vector<DrafterHelp> drafter_help() {
  std::vector<DrafterHelp> help;
  for (const core::DrafterRow& row : core::drafter_rows()) {
    help.push_back({std::string(row.name), std::string(row.usage), std::string(row.summary)});
  }
  return help;
}

}  // namespace coppice
