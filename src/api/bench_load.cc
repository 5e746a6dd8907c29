// From nothing to the first token, and how much memory that took.
#include <coppice/coppice.h>
#include <fmt/core.h>

#include "api/impl.h"
#include "api/measure.h"
#include "base/check.h"
#include "base/os.h"

namespace coppice {
namespace {

// One load, from nothing.
struct Round {
  LoadTimes load;
  double engine = 0, first_token = 0, total = 0;
};

Result<Round> one_round(const std::string& path, const LoadOptions& options, LoadReport& report) {
  Round round;
  const double start = core::seconds();
  ModelOptions model_options;
  model_options.threads = options.threads;
  model_options.isa = options.isa;
  model_options.packed_cache = options.packed_cache;
  COPPICE_TRY(const Model model, Model::load(path, model_options));
  round.load = model.info().load;
  report.from_packed_cache += model.info().from_packed_cache ? 1 : 0;
  const double loaded = core::seconds();
  EngineOptions engine_options;
  engine_options.context = options.context;
  COPPICE_TRY(const core::CacheType type, cache_type(options.cache));
  engine_options.cache = type == core::CacheType::f32   ? KvType::f32
                         : type == core::CacheType::f16 ? KvType::f16
                                                        : KvType::q8_0;
  engine_options.speculation.drafters = "none";
  COPPICE_TRY(Engine engine, Engine::make(model, engine_options));
  const double made = core::seconds();
  Request request;
  request.prompt = {0};
  request.sampling.temperature = 0;
  request.sampling.max_tokens = 1;
  COPPICE_TRY(const Generation answer, engine.generate(request));
  if (answer.stop == StopReason::failed) return fail(answer.error);
  const double end = core::seconds();
  round.engine = made - loaded;
  round.first_token = end - made;
  round.total = end - start;
  report.file_bytes = model.info().file_bytes;
  report.weight_bytes = model.info().weight_bytes;
  report.kv_bytes = cache_bytes(model.impl().model->config(), type, engine.options().context);
  if (report.rounds == 0) report.peak_bytes = core::peak_memory();
  return round;
}

}  // namespace

Result<LoadReport> bench_load(const std::string& path, const LoadOptions& options) {
  COPPICE_TRY_STATUS(check_repeats(options.repeats));
  LoadReport report;
  report.path = path;
  COPPICE_TRY_STATUS(core::warm_file(path));
  std::vector<double> open, tokenizer, weights, load, engine, first, total;
  for (; report.rounds < options.repeats; ++report.rounds) {
    if (options.progress && !options.progress(static_cast<double>(report.rounds) / options.repeats, "load"))
      return fail("stopped");
    COPPICE_TRY(const Round round, one_round(path, options, report));
    open.push_back(round.load.open);
    tokenizer.push_back(round.load.tokenizer);
    weights.push_back(round.load.weights);
    load.push_back(round.load.total);
    engine.push_back(round.engine);
    first.push_back(round.first_token);
    total.push_back(round.total);
  }
  report.open = spread_of(open);
  report.tokenizer = spread_of(tokenizer);
  report.weights = spread_of(weights);
  report.load = spread_of(load);
  report.engine = spread_of(engine);
  report.first_token = spread_of(first);
  report.total = spread_of(total);
  return report;
}

}  // namespace coppice
