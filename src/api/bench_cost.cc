// What a pass over n rows costs, on a model's own weights.
#include <fmt/core.h>

#include <algorithm>

#include "api/impl.h"
#include "api/measure.h"
#include "base/check.h"
#include "model/weights.h"

namespace coppice {
namespace {

constexpr int kMostRows = 512;

// The matrices that a pass with logits reads.
std::vector<const core::PackedMatrix*> streamed(const core::Model& model) {
  const core::ModelWeights& weights = model.weights();
  std::vector<const core::PackedMatrix*> all;
  for (const core::LayerWeights& layer : weights.layers)
    for (const core::WeightMatrix* matrix : core::matrices_of_a_row(layer, model.config().experts_used))
      all.push_back(&matrix->packed);
  all.push_back(&weights.head().packed);
  return all;
}

double products(const core::PackedMatrix& matrix) {
  return static_cast<double>(matrix.outputs) * static_cast<double>(matrix.inputs);
}

class CostBench {
 public:
  CostBench(const Model& model, const CostOptions& options)
      : model_(model),
        options_(options),
        limits_(*model.impl().pool, core::kernels()),
        rounds_(options.repeats) {}
  Status start();
  Result<CostReport> run();

 private:
  Status check() const;
  Status fill(int context, bool from_nothing);
  Status measure_passes(std::size_t which);
  Status measure_prefill();
  Status clock_stages(Timed& timed, std::vector<StageTime>& stages);
  Token token(int position) const { return some_token(position, model_.info().vocab); }
  Status go_on() const;  // an error where somebody stops what takes long and says nothing of its own
  double seconds_at_peak() const;  // the matmuls of one row with logits
  double progress_at(std::size_t part) const {
    return static_cast<double>(part) / static_cast<double>(options_.contexts.size() + 1);
  }

  const Model& model_;
  CostOptions options_;
  Limits limits_;
  int rounds_;
  std::unique_ptr<core::Context> context_;
  int sequence_ = 0;
  double at_ = 0;  // the fraction done where the part at hand begins
  core::PassClock clock_;
  std::vector<core::Row> rows_;
  std::vector<std::span<const std::byte>> weights_;
  double quantised_ = 0, floats_ = 0;  // multiply-adds of a row
  std::vector<double> read_seconds_;
  CostReport report_;
};

Status CostBench::check() const {
  COPPICE_TRY_STATUS(check_repeats(options_.repeats));
  COPPICE_TRY_STATUS(check_range("rows", options_.rows, 1, kMostRows));
  COPPICE_TRY_STATUS(check_range("contexts", options_.contexts, 1, 1 << 20));
  const int prefill[] = {options_.prefill}, chunk[] = {options_.chunk};
  COPPICE_TRY_STATUS(check_range("prefill", prefill, 0, 1 << 20));
  COPPICE_TRY_STATUS(check_range("chunk", chunk, 1, 4096));
  const core::ModelConfig& config = model_.impl().model->config();
  constexpr int kDeepest = 10;  // levels of a tree of kMostRows
  const int longest = std::max(options_.contexts.back() + kDeepest, options_.prefill);
  if (config.positions == core::Positions::learned && longest > config.context_length)
    return fail(fmt::format(
        "{}: this model has learned positions up to {}; contexts up to {} and a prefill of {} "
        "tokens need {}",
        model_.info().path, config.context_length, options_.contexts.back(), options_.prefill, longest));
  return {};
}

Status CostBench::start() {
  options_.rows.push_back(1);
  for (std::vector<int>* list : {&options_.rows, &options_.contexts}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  COPPICE_TRY_STATUS(check());
  COPPICE_TRY(const core::CacheType cache, cache_type(options_.cache));
  core::ContextOptions context;
  const int most = options_.rows.back();
  context.kv = {cache, 1, std::max(options_.contexts.back() + 1, options_.prefill), most};
  context.max_rows = std::max(most, options_.chunk);
  context.max_logits = most;
  COPPICE_TRY(context_, core::Context::make(model_.impl().model, context, *model_.impl().pool));
  COPPICE_TRY(sequence_, context_->cache().open());
  for (const core::PackedMatrix* matrix : streamed(*model_.impl().model)) {
    weights_.emplace_back(matrix->data.data(), matrix->bytes());
    (matrix->quantised() ? quantised_ : floats_) += products(*matrix);
    report_.weight_bytes += matrix->bytes();
  }
  report_.multiply_adds = quantised_ + floats_;
  report_.cache = options_.cache;
  report_.chunk = options_.chunk;
  return {};
}

double CostBench::seconds_at_peak() const {
  return quantised_ / report_.machine.int8_peak.median + floats_ / report_.machine.f32_peak.median;
}

Status CostBench::go_on() const {
  if (options_.progress && !options_.progress(at_, "passes")) return fail("stopped");
  return {};
}

// Commits tokens until `context` positions are there; the last row wants logits, as a prompt's does.
Status CostBench::fill(int context, bool from_nothing) {
  core::KvCache& cache = context_->cache();
  if (from_nothing) cache.rewind(sequence_, 0);
  COPPICE_TRY_STATUS(cache.reserve(sequence_, context));
  while (cache.length(sequence_) < context) {
    COPPICE_TRY_STATUS(go_on());
    const int begin = cache.length(sequence_), end = std::min(context, begin + options_.chunk);
    rows_.clear();
    for (int position = begin; position < end; ++position) {
      core::Row row;
      row.sequence = sequence_;
      row.token = token(position);
      row.position = position;
      row.wants = position + 1 == context ? core::kLogits : core::kNothing;
      rows_.push_back(row);
    }
    COPPICE_TRY_STATUS(context_->forward(rows_));
  }
  return {};
}

Status CostBench::measure_passes(std::size_t which) {
  const int context = options_.contexts[which];
  core::KvCache& cache = context_->cache();
  at_ = progress_at(which);
  COPPICE_TRY_STATUS(fill(context, false));
  std::vector<Timed> timed;
  timed.push_back({[&] {
    limits_.read(weights_);
    return Status();
  }});
  for (const int rows : options_.rows)
    timed.push_back({[&] { return context_->forward(rows_); },
                     [&, rows] {
                       cache.rewind(sequence_, context);
                       make_tree_rows(rows_, sequence_, rows, context, model_.info().vocab);
                       return cache.reserve(sequence_, context + 1);
                     }});
  COPPICE_TRY_STATUS(alternate(timed, rounds_, options_.progress, fmt::format("context {}", context),
                               {progress_at(which), progress_at(which + 1)}));
  at_ = progress_at(which + 1);
  read_seconds_.insert(read_seconds_.end(), timed[0].seconds.begin(), timed[0].seconds.end());
  for (std::size_t i = 0; i < options_.rows.size(); ++i) {
    const std::vector<double>& seconds = timed[i + 1].seconds;
    PassCost cost;
    cost.rows = options_.rows[i];
    cost.context = context;
    cost.seconds = spread_of(seconds);
    cost.ratio = divided(seconds, timed[1].seconds);
    cost.of_read = divided(timed[0].seconds, seconds);
    cost.of_peak = divided(cost.rows * seconds_at_peak(), seconds);
    // What the counters say of one such pass.
    COPPICE_TRY_STATUS(timed[i + 1].prepare());
    context_->reset_stats();
    COPPICE_TRY_STATUS(timed[i + 1].run());
    cost.kv_bytes = context_->stats().kv_bytes;
    COPPICE_TRY_STATUS(clock_stages(timed[i + 1], cost.stages));
    report_.passes.push_back(cost);
  }
  cache.rewind(sequence_, context);
  return {};
}

Status CostBench::clock_stages(Timed& timed, std::vector<StageTime>& stages) {
  Status status;
  clock_ = {};
  context_->set_clock(&clock_);
  for (int i = 0; i < rounds_ && status; ++i) {
    status = go_on();
    if (status) status = timed.prepare();
    if (status) status = timed.run();
  }
  context_->set_clock(nullptr);
  for (int i = 0; i < core::PassClock::kStages; ++i)
    stages.push_back({core::PassClock::names()[static_cast<std::size_t>(i)], clock_.seconds[i] / rounds_});
  return status;
}

// Of the stages that multiply matrices.
double matmul_seconds(std::span<const StageTime> stages) {
  using core::PassStage;
  double seconds = 0;
  for (const PassStage stage :
       {PassStage::query_key_value, PassStage::output, PassStage::gate_up, PassStage::down, PassStage::head})
    seconds += stages[static_cast<std::size_t>(stage)].seconds;
  return seconds;
}

Status CostBench::measure_prefill() {
  if (options_.prefill == 0) return {};
  const int tokens = options_.prefill;
  Timed timed{[&, tokens] { return fill(tokens, true); }};
  COPPICE_TRY_STATUS(alternate({&timed, 1}, rounds_, options_.progress, "prefill",
                               {progress_at(options_.contexts.size()), 1.0}));
  report_.prefill = tokens;
  report_.prefill_seconds = spread_of(timed.seconds);
  const core::PackedMatrix& head = model_.impl().model->weights().head().packed;
  const double peak = head.quantised() ? report_.machine.int8_peak.median : report_.machine.f32_peak.median;
  const double without_head = seconds_at_peak() - products(head) / peak;
  const double at_peak = tokens * without_head + products(head) / peak;
  report_.prefill_of_peak = divided(at_peak, timed.seconds);
  COPPICE_TRY_STATUS(clock_stages(timed, report_.prefill_stages));
  report_.prefill_matmuls_of_peak = at_peak / matmul_seconds(report_.prefill_stages);
  return {};
}

Result<CostReport> CostBench::run() {
  COPPICE_TRY(report_.machine, limits_.speed(rounds_, options_.progress));
  for (std::size_t i = 0; i < options_.contexts.size(); ++i) COPPICE_TRY_STATUS(measure_passes(i));
  COPPICE_TRY_STATUS(measure_prefill());
  report_.read_seconds = spread_of(read_seconds_);
  return std::move(report_);
}

}  // namespace

Result<CostReport> bench_cost(const Model& model, const CostOptions& options) {
  CostBench bench(model, options);
  COPPICE_TRY_STATUS(bench.start());
  return bench.run();
}

}  // namespace coppice
