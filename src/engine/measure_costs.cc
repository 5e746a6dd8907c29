#include "engine/measure_costs.h"

#include <algorithm>

#include "base/check.h"
#include "model/weights.h"

namespace coppice::core {
namespace {

constexpr int kRows[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128};
constexpr int kShort = 15;  // positions where rows are compared: one block
constexpr int kLong = 256;
constexpr int kFewRows = 1, kMoreRows = 8;
constexpr int kMostRounds = 9;

// Which tokens they are changes nothing.
Token some_token(int position, int vocab) { return static_cast<Token>((position * 7919L + 13) % vocab); }

double median(std::vector<double> values) {
  COPPICE_CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Measuring {
 public:
  Measuring(Context& context, const MeasureOptions& options)
      : context_(context),
        options_(options),
        vocab_(context.model().config().vocab),
        near_(std::min(kShort, options.context - 2)),
        far_(std::min(kLong, options.context - 2)),
        end_(options.clock() + options.seconds) {}
  Result<CostTable> run();

 private:
  struct Timed {
    int rows = 1;
    std::vector<double> seconds;
  };
  KvCache& cache() { return context_.cache(); }
  int most_rows() const;
  Status open();
  Status fill(int context);
  Status tree_pass(int rows, int context, double* seconds);
  Status rounds(std::vector<Timed>& all, int context);
  Status rows_by_number(CostTable& table);
  Status what_the_context_costs(CostTable& table);
  double share_without_head() const;

  Context& context_;
  const MeasureOptions& options_;
  int vocab_;
  int near_, far_;  // positions
  double end_;
  std::vector<int> sequences_;
  std::vector<Row> rows_;
  double chunk_seconds_ = 0;  // of the last whole chunk of fill()
};

// A sequence has a root and as many scratch rows as it has slots.
int Measuring::most_rows() const {
  const ContextOptions& o = context_.options();
  return std::min({o.max_rows, o.max_logits, static_cast<int>(sequences_.size()) * (o.kv.slots + 1)});
}

Status Measuring::open() {
  const ContextOptions& o = context_.options();
  const int wanted = std::min(o.kv.sequences, (o.max_logits + o.kv.slots) / (o.kv.slots + 1));
  for (int i = 0; i < wanted; ++i) {
    COPPICE_TRY(const int sequence, cache().open());
    sequences_.push_back(sequence);
  }
  return {};
}

Status Measuring::fill(int context) {
  for (const int sequence : sequences_) {
    COPPICE_TRY_STATUS(cache().reserve(sequence, context + 1));
    for (int at = cache().length(sequence); at < context; at = cache().length(sequence)) {
      rows_.clear();
      const int count = std::min({options_.chunk, context_.options().max_rows, context - at});
      for (int i = 0; i < count; ++i) {
        Row row;
        row.sequence = sequence;
        row.token = some_token(at + i, vocab_);
        row.position = at + i;
        rows_.push_back(row);
      }
      const double start = options_.clock();
      COPPICE_TRY_STATUS(context_.forward(rows_));
      if (count == options_.chunk) chunk_seconds_ = options_.clock() - start;
    }
  }
  return {};
}

// Of all sequences as many as are needed, each with the rows it has slots for.
Status Measuring::tree_pass(int rows, int context, double* seconds) {
  rows_.clear();
  const int each = context_.options().kv.slots + 1;
  for (const int sequence : sequences_) {
    const int count = std::min(each, rows - static_cast<int>(rows_.size()));
    if (count <= 0) break;
    cache().rewind(sequence, context);
    COPPICE_TRY_STATUS(cache().reserve(sequence, context + 1));
    for (int i = 0; i < count; ++i) {  // a root that is committed, and guesses below it
      Row row;
      row.sequence = sequence;
      row.token = some_token(context + i, vocab_);
      row.position = i == 0 ? context : context + 1;
      row.slot = i == 0 ? kCommitted : i - 1;
      row.wants = kLogits;
      rows_.push_back(row);
    }
  }
  const double start = options_.clock();
  COPPICE_TRY_STATUS(context_.forward(rows_));
  *seconds = options_.clock() - start;
  return {};
}

Status Measuring::rounds(std::vector<Timed>& all, int context) {
  for (int round = 0; round < kMostRounds && (round == 0 || options_.clock() < end_); ++round) {
    for (std::size_t k = 0; k < all.size(); ++k) {
      Timed& timed = all[(k + static_cast<std::size_t>(round)) % all.size()];
      double seconds = 0;
      COPPICE_TRY_STATUS(tree_pass(timed.rows, context, &seconds));
      timed.seconds.push_back(seconds);
    }
  }
  for (const int sequence : sequences_) cache().rewind(sequence, context);
  return {};
}

Status Measuring::rows_by_number(CostTable& table) {
  COPPICE_TRY_STATUS(fill(near_));
  double one = 0;
  COPPICE_TRY_STATUS(tree_pass(1, near_, &one));  // memory is touched for the first time
  COPPICE_TRY_STATUS(tree_pass(1, near_, &one));
  const int most = most_rows();
  // Of a large model not every number is measured: a round shall not take much longer than it may.
  const double affordable = 2 * options_.seconds / std::max(one, 1e-9);
  std::vector<Timed> timed;
  // Of many requests: from where each has a row to where each has a guess too.
  const int requests = static_cast<int>(sequences_.size());
  const auto shared = [&](int rows) { return requests > 4 && rows >= requests && rows <= 2 * requests; };
  for (const int rows : kRows) {
    const bool important = rows == 1 || rows == 4 || rows == 8 || rows == 16 || shared(rows);
    if (rows <= most && (important || affordable > 40)) timed.push_back({rows, {}});
  }
  if (most > timed.back().rows) timed.push_back({most, {}});
  COPPICE_TRY_STATUS(rounds(timed, near_));
  for (const Timed& t : timed) table.points.push_back({static_cast<double>(t.rows), median(t.seconds)});
  return {};
}

// One sequence, short and long: what is left over is the context's, a part for all rows and a part for each.
Status Measuring::what_the_context_costs(CostTable& table) {
  sequences_.resize(1);
  const int more = std::min(kMoreRows, most_rows());
  if (far_ < 4 * near_ || options_.clock() > end_ + options_.seconds) return {};
  std::vector<Timed> near = {{kFewRows, {}}, {more, {}}}, far = near;
  end_ = std::max(end_, options_.clock() + options_.seconds / 4);
  COPPICE_TRY_STATUS(rounds(near, near_));
  COPPICE_TRY_STATUS(fill(far_));
  end_ = std::max(end_, options_.clock() + options_.seconds / 4);
  COPPICE_TRY_STATUS(rounds(far, far_));
  const double positions = far_ - near_;
  const double few = std::max(0.0, median(far[0].seconds) - median(near[0].seconds)) / positions;
  const double many = std::max(few, (median(far[1].seconds) - median(near[1].seconds)) / positions);
  if (more > kFewRows) table.per_row_position = (many - few) / (more - kFewRows);
  table.per_position = std::max(0.0, few - table.per_row_position);
  return {};
}

// Of the multiply-adds of a row.
double Measuring::share_without_head() const {
  const auto products = [](const PackedMatrix& matrix) {
    return static_cast<double>(matrix.outputs) * static_cast<double>(matrix.inputs);
  };
  const ModelWeights& weights = context_.model().weights();
  double blocks = 0;
  for (const LayerWeights& layer : weights.layers)
    for (const WeightMatrix* matrix : matrices_of_a_row(layer, context_.model().config().experts_used))
      blocks += products(matrix->packed);
  return blocks / (blocks + products(weights.head().packed));
}

Result<CostTable> Measuring::run() {
  CostTable table;
  table.prompt_row = share_without_head();
  COPPICE_TRY_STATUS(open());
  COPPICE_TRY_STATUS(rows_by_number(table));
  const std::vector<int> opened = sequences_;
  COPPICE_TRY_STATUS(what_the_context_costs(table));
  for (const int sequence : opened) cache().close(sequence);
  const double chunk = options_.chunk * table.prompt_row;
  if (chunk_seconds_ > 0 && chunk > table.points.back().rows) table.points.push_back({chunk, chunk_seconds_});
  context_.reset_stats();
  return table;
}

}  // namespace

Result<CostTable> measure_costs(Context& context, const MeasureOptions& options) {
  return Measuring(context, options).run();
}

}  // namespace coppice::core
