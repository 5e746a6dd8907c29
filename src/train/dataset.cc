#include "train/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "base/check.h"
#include "base/hash.h"
#include "corpus/corpus_folder.h"
#include "quant/formats.h"
#include "train/random.h"

namespace coppice::core::train {
namespace {

constexpr int kGroupBatches = 64;  // stretches of so many batches are sorted by length together
// A prompt that more texts share is no prompt but a bare template: such texts are told apart by all their
// tokens.
constexpr int kSharedPrompt = 64;

std::uint64_t hash_ids(std::span<const Token> ids) { return hash_of(std::as_bytes(ids)).low; }

// Tokens [begin, end) of a text; those from `scored` on are this stretch's to learn.
struct Stretch {
  std::uint32_t text = 0;
  std::int32_t begin = 0, scored = 0, end = 0;
  int length() const { return end - begin; }
};

// Stretches [begin, begin + rows) of an order.
struct Range {
  std::size_t begin = 0;
  int rows = 0;
};

struct Plan {
  std::vector<Stretch> order;
  std::vector<Range> batches;
};

template <class T>
void shuffle(std::vector<T>& values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

// Shuffles, then sorts stretch by stretch so that a batch holds nearly equal lengths, then shuffles the
// batches.
Plan make_plan(const std::vector<Stretch>& stretches, int batch_tokens, Random random) {
  Plan plan;
  plan.order = stretches;
  shuffle(plan.order, random);
  const auto group_tokens = static_cast<std::int64_t>(batch_tokens) * kGroupBatches;
  for (std::size_t begin = 0; begin < plan.order.size();) {
    std::size_t end = begin;
    for (std::int64_t tokens = 0; end < plan.order.size() && tokens < group_tokens; ++end)
      tokens += plan.order[end].length();
    std::stable_sort(plan.order.begin() + static_cast<std::ptrdiff_t>(begin),
                     plan.order.begin() + static_cast<std::ptrdiff_t>(end),
                     [](const Stretch& a, const Stretch& b) { return a.length() < b.length(); });
    for (std::size_t at = begin; at < end;) {
      Range range{at, 0};
      int longest = 0;
      while (at < end) {
        longest = std::max(longest, plan.order[at].length());
        if (range.rows > 0 && longest * (range.rows + 1) > batch_tokens) break;
        ++range.rows;
        ++at;
      }
      plan.batches.push_back(range);
    }
    begin = end;
  }
  shuffle(plan.batches, random);
  return plan;
}

}  // namespace

Status check(const DatasetOptions& options) {
  if (options.context < 2 || options.window < 2 * options.context)
    return fail(
        fmt::format("context = {} and window = {}: at least 2, and at least twice the context, are possible",
                    options.context, options.window));
  if (options.batch_tokens < options.window)
    return fail(fmt::format("batch_tokens = {}: a batch must hold a window of {} tokens",
                            options.batch_tokens, options.window));
  if (!(options.held_out > 0 && options.held_out < 1))
    return fail(fmt::format("held_out = {}: a share above 0 and below 1 is possible", options.held_out));
  return {};
}

struct Dataset::State {
  DatasetOptions options;
  CorpusDescription description;
  std::vector<CorpusShard> shards;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> texts;  // shard, index in it
  std::vector<std::uint8_t> held;                              // by text
  std::vector<Stretch> training, held_out;
  std::int64_t scored = 0, held_scored = 0;
  Plan held_plan;
  mutable std::int64_t epoch = -1, epoch_begin = 0;  // of `plan`; epoch_begin: the first batch's index
  mutable Plan plan;

  CorpusRecordView text(std::uint32_t index) const {
    return shards[texts[index].first].text(static_cast<int>(texts[index].second));
  }

  Status add(const std::string& folder);
  void split();
  void cut(std::uint32_t text);
  void enter_epoch(std::int64_t number) const;
  void fill(const Plan& from, Range range, bool features, HostBatch& out) const;
};

void Dataset::State::split() {
  std::vector<std::uint64_t> prompts(texts.size());
  std::unordered_map<std::uint64_t, int> shared;
  for (std::uint32_t t = 0; t < texts.size(); ++t) {
    const CorpusRecordView view = text(t);
    prompts[t] = hash_ids(view.ids.first(static_cast<std::size_t>(view.start)));
    ++shared[prompts[t]];
  }
  held.resize(texts.size());
  const auto threshold = static_cast<std::uint64_t>(options.held_out * 1e6);
  for (std::uint32_t t = 0; t < texts.size(); ++t) {
    const std::uint64_t hash = shared[prompts[t]] > kSharedPrompt ? hash_ids(text(t).ids) : prompts[t];
    held[t] = hash % 1000000 < threshold;
  }
}

void Dataset::State::cut(std::uint32_t index) {
  const CorpusRecordView view = text(index);
  const int n = static_cast<int>(view.ids.size());
  auto& to = held[index] ? held_out : training;
  auto& count = held[index] ? held_scored : scored;
  for (int at = view.start; at < n;) {
    Stretch stretch{index, std::max(0, at - options.context), at, 0};
    stretch.end = std::min(n, stretch.begin + options.window);
    to.push_back(stretch);
    count += stretch.end - at;
    at = stretch.end;
  }
}

void Dataset::State::enter_epoch(std::int64_t number) const {
  if (number == epoch) return;
  if (number < epoch || epoch < 0) {
    epoch = epoch_begin = 0;
    plan = make_plan(training, options.batch_tokens, Random(options.seed, 0));
  }
  while (epoch < number) {
    epoch_begin += static_cast<std::int64_t>(plan.batches.size());
    ++epoch;
    plan = make_plan(training, options.batch_tokens, Random(options.seed, static_cast<std::uint64_t>(epoch)));
  }
}

void Dataset::State::fill(const Plan& from, Range range, bool with_features, HostBatch& out) const {
  const CorpusShape& shape = description.shape;
  out.rows = range.rows;
  out.length = 0;
  for (int r = 0; r < range.rows; ++r)
    out.length = std::max(out.length, from.order[range.begin + static_cast<std::size_t>(r)].length());
  out.top_k = shape.top_k;
  out.features = with_features ? shape.features * shape.hidden : 0;
  const auto width = static_cast<std::size_t>(out.length), rows = static_cast<std::size_t>(out.rows);
  const auto k = static_cast<std::size_t>(out.top_k), f = static_cast<std::size_t>(out.features);
  out.ids.assign(rows * width, 0);
  out.lengths.assign(rows, 0);
  out.scored.assign(rows * width, 0);
  out.top.assign(rows * width * k, 0);
  out.top_logp.assign(rows * width * k, -INFINITY);
  out.feature_halves.assign(rows * width * f, 0);
  for (std::size_t r = 0; r < rows; ++r) {
    const Stretch& stretch = from.order[range.begin + r];
    const CorpusRecordView view = text(stretch.text);
    out.lengths[r] = stretch.length();
    for (int at = stretch.begin; at < stretch.end; ++at) {
      const std::size_t cell = r * width + static_cast<std::size_t>(at - stretch.begin);
      out.ids[cell] = view.ids[static_cast<std::size_t>(at)];
      if (at < stretch.scored) continue;
      out.scored[cell] = 1;
      const auto tokens = view.top_tokens(at);
      const auto halves = view.top_logprobs(at);
      for (std::size_t i = 0; i < k; ++i) {
        out.top[cell * k + i] = tokens[i];
        out.top_logp[cell * k + i] = f16_to_f32(halves[i]);
      }
    }
    if (f > 0)
      std::copy_n(view.features.begin() + static_cast<std::ptrdiff_t>(f) * stretch.begin,
                  f * static_cast<std::size_t>(stretch.length()),
                  out.feature_halves.begin() + static_cast<std::ptrdiff_t>(r * width * f));
  }
}

Dataset::Dataset() : state_(std::make_unique<State>()) {}
Dataset::~Dataset() = default;

Status Dataset::State::add(const std::string& folder) {
  COPPICE_TRY(CorpusDescription next, read_corpus_description(folder));
  if (next.shape.top_k < 1)
    return fail(folder +
                ": holds no log-probabilities to learn from; coppice corpus writes them with --top-k");
  const bool first = shards.empty() && description.target_hash.empty();
  if (!first && !(next.shape == description.shape && next.feature_layers == description.feature_layers &&
                  next.target_hash == description.target_hash))
    return fail(folder + ": has another target, --top-k or --features than the corpora before it");
  if (first) description = std::move(next);
  COPPICE_TRY(const auto paths, corpus_shards(folder));
  for (const std::string& path : paths) {
    COPPICE_TRY(CorpusShard shard, CorpusShard::open(path));
    if (!(shard.shape() == description.shape))
      return fail(path + ": is of another shape than corpus.json says");
    for (int i = 0; i < shard.texts(); ++i)
      texts.emplace_back(static_cast<std::uint32_t>(shards.size()), static_cast<std::uint32_t>(i));
    shards.push_back(std::move(shard));
  }
  return {};
}

Result<std::unique_ptr<Dataset>> Dataset::open(std::span<const std::string> folders,
                                               const DatasetOptions& options) {
  COPPICE_TRY_STATUS(train::check(options));
  if (folders.empty()) return fail("corpus: name a folder that coppice corpus made");
  std::unique_ptr<Dataset> data(new Dataset);
  State& state = *data->state_;
  state.options = options;
  for (const std::string& folder : folders) COPPICE_TRY_STATUS(state.add(folder));
  state.split();
  for (std::uint32_t t = 0; t < state.texts.size(); ++t) state.cut(t);
  if (state.training.empty() || state.held_out.empty())
    return fail(
        fmt::format("{}: of its {} texts {} tokens are to learn from and {} held out; both are needed",
                    fmt::join(folders, ", "), state.texts.size(), state.scored, state.held_scored));
  state.held_plan = make_plan(state.held_out, options.batch_tokens, Random(0, 0));
  state.enter_epoch(0);
  return data;
}

int Dataset::vocab() const { return state_->description.shape.vocab; }
int Dataset::top_k() const { return state_->description.shape.top_k; }
int Dataset::hidden() const {
  return state_->description.shape.features > 0 ? state_->description.shape.hidden : 0;
}
std::span<const int> Dataset::feature_layers() const { return state_->description.feature_layers; }
const std::string& Dataset::target_hash() const { return state_->description.target_hash; }
std::uint64_t Dataset::vocabulary_hash() const { return state_->description.shape.vocabulary_hash; }
std::int64_t Dataset::texts() const { return static_cast<std::int64_t>(state_->texts.size()); }
std::int64_t Dataset::scored_tokens() const { return state_->scored; }
std::int64_t Dataset::held_out_tokens() const { return state_->held_scored; }

std::vector<std::uint64_t> Dataset::count_tokens() const {
  std::vector<std::uint64_t> counts(static_cast<std::size_t>(vocab()));
  for (const Stretch& stretch : state_->training) {
    const CorpusRecordView view = state_->text(stretch.text);
    for (int at = stretch.scored; at < stretch.end; ++at)
      ++counts[static_cast<std::size_t>(view.ids[static_cast<std::size_t>(at)])];
  }
  return counts;
}

void Dataset::feature_moments(std::int64_t tokens, std::vector<float>& mean,
                              std::vector<float>& scale) const {
  const CorpusShape& shape = state_->description.shape;
  const auto width = static_cast<std::size_t>(shape.features * shape.hidden);
  std::vector<double> sum(width), squares(width);
  const std::int64_t every = std::max<std::int64_t>(1, state_->scored / std::max<std::int64_t>(tokens, 1));
  std::int64_t seen = 0, used = 0;
  for (const Stretch& stretch : state_->training) {
    const CorpusRecordView view = state_->text(stretch.text);
    for (int at = stretch.scored; at < stretch.end; ++at) {
      if (seen++ % every != 0) continue;
      ++used;
      for (std::size_t i = 0; i < width; ++i) {
        const double x = f16_to_f32(view.features[static_cast<std::size_t>(at) * width + i]);
        sum[i] += x;
        squares[i] += x * x;
      }
    }
  }
  mean.resize(width);
  scale.resize(width);
  for (std::size_t i = 0; i < width; ++i) {
    const double m = sum[i] / static_cast<double>(used);
    const double variance = std::max(0.0, squares[i] / static_cast<double>(used) - m * m);
    mean[i] = static_cast<float>(m);
    scale[i] = static_cast<float>(1 / std::sqrt(variance + 1e-6));
  }
}

std::int64_t Dataset::batches_per_epoch() const {
  return static_cast<std::int64_t>(state_->plan.batches.size());
}

void Dataset::batch(std::int64_t index, bool features, HostBatch& out) const {
  const State& state = *state_;
  if (index < state.epoch_begin) state.enter_epoch(0);
  while (index >= state.epoch_begin + batches_per_epoch()) state.enter_epoch(state.epoch + 1);
  state.fill(state.plan, state.plan.batches[static_cast<std::size_t>(index - state.epoch_begin)], features,
             out);
}

std::int64_t Dataset::held_out_batches() const {
  return static_cast<std::int64_t>(state_->held_plan.batches.size());
}

void Dataset::held_out_batch(std::int64_t index, bool features, HostBatch& out) const {
  state_->fill(state_->held_plan, state_->held_plan.batches[static_cast<std::size_t>(index)], features, out);
}

}  // namespace coppice::core::train
