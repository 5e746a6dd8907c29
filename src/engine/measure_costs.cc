#include "engine/measure_costs.h"

#include <algorithm>

#include "base/check.h"
#include "model/weights.h"

namespace coppice::core {
namespace {

constexpr int kRows[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 64, 128};
constexpr int kShort = 15;  // positions where rows are compared: one block
constexpr int kLong = 256;
constexpr int kFewRows = 1, kMoreRows = 8;
constexpr int kMostRounds = 9;

// Which tokens they are changes nothing.
Token some_token(int position, int vocab) { return static_cast<Token>((position * 7919L + 13) % vocab); }

// What such a pass takes when nobody disturbs it. Neighbours only ever add time, to a few passes in a row:
// the lower quartile is free of them as long as a quarter was left alone.
double undisturbed(std::vector<double> values) {
  COPPICE_CHECK(!values.empty());
  const auto at = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 4);
  std::nth_element(values.begin(), at, values.end());
  return *at;
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
    int context = 0;         // positions that they see
    std::size_t sequence{};  // the first that they are of
    std::vector<double> seconds;
    double sum = 0;
  };
  KvCache& cache() { return context_.cache(); }
  int most_rows() const;
  Status open();
  Status fill(std::size_t sequence, int context);
  Status tree_pass(Timed& timed);
  Status rounds(std::vector<Timed>& all, double share);
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

Status Measuring::fill(std::size_t number, int context) {
  const int sequence = sequences_[number];
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
  return {};
}

// Of all sequences as many as are needed, each with the rows it has slots for.
Status Measuring::tree_pass(Timed& timed) {
  rows_.clear();
  const int each = context_.options().kv.slots + 1;
  for (std::size_t s = timed.sequence; s < sequences_.size(); ++s) {
    const int sequence = sequences_[s];
    const int count = std::min(each, timed.rows - static_cast<int>(rows_.size()));
    if (count <= 0) break;
    cache().rewind(sequence, timed.context);
    COPPICE_TRY_STATUS(cache().reserve(sequence, timed.context + 1));
    for (int i = 0; i < count; ++i) {  // a root that is committed, and guesses below it
      Row row;
      row.sequence = sequence;
      row.token = some_token(timed.context + i, vocab_);
      row.position = i == 0 ? timed.context : timed.context + 1;
      row.slot = i == 0 ? kCommitted : i - 1;
      row.wants = kLogits;
      rows_.push_back(row);
    }
  }
  const double start = options_.clock();
  COPPICE_TRY_STATUS(context_.forward(rows_));
  timed.seconds.push_back(options_.clock() - start);
  timed.sum += timed.seconds.back();
  return {};
}

// Each again and again, but none for more than `share` seconds in all: so the short passes, which matter most
// and are disturbed most easily, are tried most often. Who is next in time is far away in rows, so that a
// slow moment falls on all sorts.
Status Measuring::rounds(std::vector<Timed>& all, double share) {
  constexpr std::size_t kApart = 5;
  const std::size_t step = all.size() % kApart == 0 ? kApart + 1 : kApart;
  for (int round = 0; round < kMostRounds && (round == 0 || options_.clock() < end_); ++round) {
    for (std::size_t k = 0; k < all.size(); ++k) {
      Timed& timed =
          all[(k * (all.size() == step ? 1 : step) + static_cast<std::size_t>(round)) % all.size()];
      if (round > 0 && timed.sum + timed.seconds.back() > share) continue;
      COPPICE_TRY_STATUS(tree_pass(timed));
    }
  }
  for (const Timed& timed : all)
    for (std::size_t s = timed.sequence; s < sequences_.size(); ++s)
      if (cache().length(sequences_[s]) > timed.context) cache().rewind(sequences_[s], timed.context);
  return {};
}

Status Measuring::rows_by_number(CostTable& table) {
  for (std::size_t s = 0; s < sequences_.size(); ++s) COPPICE_TRY_STATUS(fill(s, near_));
  Timed one{1, near_, 0, {}};
  COPPICE_TRY_STATUS(tree_pass(one));  // memory is touched for the first time
  COPPICE_TRY_STATUS(tree_pass(one));
  const int most = most_rows();
  // Of a large model not every number is measured: a round shall not take much longer than it may.
  const double affordable = 2 * options_.seconds / std::max(one.seconds.back(), 1e-9);
  std::vector<Timed> timed;
  // Of many requests: from where each has a row to where each has a guess too.
  const int requests = static_cast<int>(sequences_.size());
  const auto shared = [&](int rows) { return requests > 4 && rows >= requests && rows <= 2 * requests; };
  for (const int rows : kRows) {
    const bool important = rows == 1 || rows == 4 || rows == 8 || rows == 16 || shared(rows);
    if (rows <= most && (important || affordable > 40)) timed.push_back({rows, near_, 0, {}});
  }
  if (most > timed.back().rows) timed.push_back({most, near_, 0, {}});
  COPPICE_TRY_STATUS(rounds(timed, 2 * options_.seconds / static_cast<double>(timed.size())));
  for (const Timed& t : timed) table.points.push_back({static_cast<double>(t.rows), undisturbed(t.seconds)});
  return {};
}

// A short sequence and a long one in turn: what is left over is the context's, a part for all rows and a part
// for each. It is little beside the pass, so the shortest of each are compared.
Status Measuring::what_the_context_costs(CostTable& table) {
  const int each = context_.options().kv.slots + 1;
  const int more = std::min({kMoreRows, most_rows(), each});
  for (std::size_t s = 1; s < sequences_.size(); ++s) cache().close(sequences_[s]);
  sequences_.resize(1);
  far_ = std::min(far_, context_.options().kv.positions - near_ - 3 * kBlockPositions);
  if (far_ < 4 * near_ || options_.clock() > end_ + options_.seconds) return {};
  COPPICE_TRY(const int longer, cache().open());
  sequences_.insert(sequences_.begin(), longer);
  COPPICE_TRY_STATUS(fill(0, far_));
  end_ = std::max(end_, options_.clock() + options_.seconds / 2);
  std::vector<Timed> all = {
      {kFewRows, near_, 1, {}}, {kFewRows, far_, 0, {}}, {more, near_, 1, {}}, {more, far_, 0, {}}};
  COPPICE_TRY_STATUS(rounds(all, options_.seconds));
  const auto shortest = [&](std::size_t i) {
    return *std::min_element(all[i].seconds.begin(), all[i].seconds.end());
  };
  const double positions = far_ - near_;
  const double few = std::max(0.0, shortest(1) - shortest(0)) / positions;
  const double many = std::max(few, (shortest(3) - shortest(2)) / positions);
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
  COPPICE_TRY_STATUS(what_the_context_costs(table));
  for (const int sequence : sequences_) cache().close(sequence);
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
