#include "api/corpus_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/impl.h"
#include "base/check.h"
#include "quant/formats.h"

namespace coppice {
namespace {

constexpr int kRepeated = 16;  // a text ends where so many tokens in a row come ...
constexpr int kTimes = 3;      // ... for this time

// f16 has no more; residual streams of some models do.
constexpr float kLargestHalf = 65504.0f;

// The last kRepeated of the generated tokens are there for the kTimes-th time.
bool repeats(std::span<const Token> generated) {
  if (generated.size() < kRepeated + kTimes - 1) return false;
  const std::span<const Token> last = generated.last(kRepeated);
  int times = 0;
  for (std::size_t end = generated.size(); end >= kRepeated && times < kTimes; --end)
    if (std::ranges::equal(generated.subspan(end - kRepeated, kRepeated), last)) ++times;
  return times >= kTimes;
}

}  // namespace

CorpusRunner::CorpusRunner(const Model& model, const CorpusOptions& options, const core::CorpusShape& shape)
    : model_(model), options_(options), shape_(shape), pool_(*model.impl().pool) {}

Result<core::Sampler> CorpusRunner::sampler(float temperature, int top_k, std::uint64_t seed) const {
  Sampling sampling;
  sampling.temperature = temperature;
  sampling.top_k = temperature > 0 ? top_k : 0;
  sampling.seed = seed;
  sampling.logprobs = shape_.top_k > 0 ? shape_.top_k : -1;
  return core::Sampler::make(sampling, shape_.vocab, {});
}

Result<std::unique_ptr<CorpusRunner>> CorpusRunner::make(const Model& model, const CorpusOptions& options,
                                                         const core::CorpusShape& shape, int longest) {
  std::unique_ptr<CorpusRunner> runner(new CorpusRunner(model, options, shape));
  const auto& tokenizer = *model.impl().tokenizer.impl().tokenizer;
  if (const auto chat = model.impl().chat_template()) {
    auto before = chat->before_message(tokenizer), after = chat->before_answer(tokenizer);
    if (before && after) {
      runner->prefix_ = std::move(*before);
      runner->before_answer_ = std::move(*after);
    } else if (options.self > 0) {
      return tl::unexpected((before ? after : before).error());
    }
  }
  const int most = std::min(
      options.context,
      longest + options.max_tokens +
          (options.self > 0 ? options.instruction_tokens + static_cast<int>(runner->before_answer_.size())
                            : 0));
  core::ContextOptions context;
  context.kv.sequences = options.slots + 1;
  // Most texts are a fraction of the longest: a text waits where there is no room, and one always has room.
  context.kv.positions =
      std::max(most, std::min(most, 768) * options.slots) + static_cast<int>(runner->prefix_.size()) + 32;
  context.kv.slots = 0;
  context.longest = options.context;
  context.max_rows = context.max_logits = std::max(options.rows, options.slots);
  context.feature_layers = options.features;
  COPPICE_TRY(runner->context_, core::Context::make(model.impl().model, context, runner->pool_));
  COPPICE_TRY(runner->teacher_, runner->sampler(0, 0, 0));
  runner->slots_.resize(static_cast<std::size_t>(options.slots));
  for (int thread = 0; thread < runner->pool_.size(); ++thread) runner->scratches_.emplace_back(shape.vocab);
  COPPICE_TRY_STATUS(runner->prepare_prefix());
  return runner;
}

// Conversations begin alike: that part is computed once, where no features of it are wanted.
Status CorpusRunner::prepare_prefix() {
  if (prefix_.size() < 2 || shape_.features > 0) return {};
  core::KvCache& cache = context_->cache();
  COPPICE_TRY(prefix_sequence_, cache.open());
  COPPICE_TRY_STATUS(cache.reserve(prefix_sequence_, static_cast<int>(prefix_.size())));
  const auto most = static_cast<std::size_t>(context_->options().max_rows);
  for (std::size_t first = 0; first < prefix_.size(); first += most) {
    rows_.clear();
    for (std::size_t i = first; i < std::min(prefix_.size(), first + most); ++i)
      rows_.push_back({prefix_sequence_, prefix_[i], static_cast<int>(i), core::kCommitted, core::kCommitted,
                       core::kNothing});
    COPPICE_TRY_STATUS(context_->forward(rows_));
  }
  return {};
}

// `room`: false where the cache has none until another text is done.
Status CorpusRunner::begin(Slot& slot, const CorpusJob& job, bool& room) {
  core::KvCache& cache = context_->cache();
  const auto known = static_cast<int>(job.tokens.size());
  const int answer = job.scored ? 0 : options_.max_tokens;
  const int instruction =
      job.self ? options_.instruction_tokens + static_cast<int>(before_answer_.size()) : 0;
  const int most = std::min(options_.context, known + instruction + answer);
  COPPICE_TRY(slot.sequence, cache.open());
  if (prefix_sequence_ >= 0) {
    const auto [a, b] = std::mismatch(prefix_.begin(), prefix_.end(), job.tokens.begin(), job.tokens.end());
    const int alike = std::min(static_cast<int>(a - prefix_.begin()), known - 1);
    if (alike >= core::kBlockPositions)
      room = cache.share(prefix_sequence_, slot.sequence, alike).has_value();
  }
  room = room && cache.reserve(slot.sequence, most);
  if (!room) {
    cache.close(slot.sequence);
    return {};
  }
  slot.job = &job;
  slot.record = {};
  slot.record.job = job.id;
  slot.record.start = job.start;
  slot.record.temperature = job.temperature;
  slot.record.kind = job.kind;
  slot.record.ids.reserve(static_cast<std::size_t>(most) + 1);
  slot.record.ids = job.tokens;
  slot.done = job.scored;
  slot.instruction = job.self;
  slot.limit = std::min(options_.context, known + (job.self ? options_.instruction_tokens : answer));
  COPPICE_TRY(slot.sampler, job.self ? sampler(1.0f, options_.sampling_top_k, job.seed)
                                     : sampler(job.temperature, options_.sampling_top_k, job.seed));
  return {};
}

// Rows that are still to be computed. What follows the last token of a text is nobody's business.
int CorpusRunner::pending(const Slot& slot) const {
  if (slot.job == nullptr) return 0;
  const auto known = static_cast<int>(slot.record.ids.size());
  const int last = slot.done && shape_.features == 0 ? known - 1 : known;
  return last - context_->cache().length(slot.sequence);
}

bool CorpusRunner::wants_logits(const Slot& slot, int position) const {
  const auto known = static_cast<int>(slot.record.ids.size());
  if (position + 1 == known) return !slot.done;
  return shape_.top_k > 0 && position + 1 >= slot.record.start;
}

void CorpusRunner::add_rows(Slot& slot, int most) {
  const int cached = context_->cache().length(slot.sequence);
  slot.first_row = static_cast<int>(rows_.size());
  slot.row_count = std::min(most, pending(slot));
  for (int i = 0; i < slot.row_count; ++i) {
    const int position = cached + i;
    const bool logits = wants_logits(slot, position);
    const unsigned wants = (logits ? core::kLogits : 0u) | (shape_.features > 0 ? core::kFeatures : 0u);
    if (logits) draws_.push_back({&slot, static_cast<int>(rows_.size()), position + 1});
    rows_.push_back({slot.sequence, slot.record.ids[static_cast<std::size_t>(position)], position,
                     core::kCommitted, core::kCommitted, wants});
  }
}

// Those that generate first, then prompts as far as there is room.
void CorpusRunner::collect() {
  rows_.clear();
  draws_.clear();
  const int most = context_->options().max_rows;
  for (Slot& slot : slots_) {
    slot.row_count = 0;
    if (pending(slot) == 1) add_rows(slot, 1);
  }
  for (Slot& slot : slots_)
    if (slot.row_count == 0 && pending(slot) > 1 && static_cast<int>(rows_.size()) < most)
      add_rows(slot, most - static_cast<int>(rows_.size()));
  const auto k = static_cast<std::size_t>(shape_.top_k);
  for (const Draw& draw : draws_) {
    core::CorpusRecord& record = draw.slot->record;
    const std::size_t said = static_cast<std::size_t>(draw.position - record.start + 1) * k;
    record.top_tokens.resize(said);
    record.top_logprobs.resize(said);
  }
}

void CorpusRunner::draw_all() {
  std::atomic<std::size_t> next{0};
  pool_.run([&](int thread) {
    for (std::size_t i = next++; i < draws_.size(); i = next++)
      draw(draws_[i], scratches_[static_cast<std::size_t>(thread)]);
  });
}

// On any thread.
void CorpusRunner::draw(Draw& what, core::Sampler::Scratch& scratch) {
  Slot& slot = *what.slot;
  const std::span<const Token> ids = slot.record.ids;
  const bool known = what.position < static_cast<int>(ids.size());
  const core::Sampler& sampler = known ? teacher_ : slot.sampler;
  const core::PathState state{ids.first(static_cast<std::size_t>(what.position)), {}};
  const auto drawn = sampler.draw({context_->logits(what.row), context_->maxima(what.row)}, state, scratch);
  if (!drawn) {
    what.failed = true;
    return;
  }
  if (!known) slot.drawn = drawn->token;
  const auto k = static_cast<std::size_t>(shape_.top_k);
  const std::size_t at = static_cast<std::size_t>(what.position - slot.record.start) * k;
  constexpr std::uint16_t kImpossible = 0xfc00;  // -infinity
  for (std::size_t i = 0; i < k; ++i) {
    const bool there = static_cast<int>(i) < drawn->top;
    slot.record.top_tokens[at + i] = there ? scratch.top[i].token : 0;
    slot.record.top_logprobs[at + i] =
        there ? core::f32_to_f16(std::min(scratch.top[i].logprob, -0.0f)) : kImpossible;
  }
}

// What the pass brought for one text.
void CorpusRunner::take(Slot& slot) {
  if (shape_.features > 0) {
    std::vector<std::uint16_t>& features = slot.record.features;
    for (int i = 0; i < slot.row_count; ++i)
      for (const float value : context_->features(slot.first_row + i))
        features.push_back(core::f32_to_f16(std::clamp(value, -kLargestHalf, kLargestHalf)));
  }
  if (!slot.done && slot.row_count > 0 && pending(slot) == 0) append(slot, slot.drawn);
}

void CorpusRunner::append(Slot& slot, Token token) {
  core::CorpusRecord& record = slot.record;
  record.ids.push_back(token);
  const bool ends = model_.tokenizer().ends_text(token);
  if (ends && slot.instruction) return end_instruction(slot, token);
  const std::size_t start = static_cast<std::size_t>(record.start);
  if (ends) {
    record.flags |= core::kEndedByItself;
  } else if (repeats(std::span<const Token>(record.ids).subspan(start))) {
    record.flags |= core::kCutRepetition;
  } else if (static_cast<int>(record.ids.size()) < slot.limit) {
    return;
  }
  slot.done = true;
}

// The instruction ends as a message does: the answer follows. Anything else ends the text.
void CorpusRunner::end_instruction(Slot& slot, Token token) {
  std::vector<Token>& ids = slot.record.ids;
  const int written = static_cast<int>(ids.size()) - slot.record.start - 1;
  const int with_opening = static_cast<int>(ids.size() + before_answer_.size()) - 1;
  if (before_answer_.empty() || token != before_answer_.front() || written == 0 ||
      with_opening >= options_.context) {
    slot.record.flags |= core::kEndedByItself;
    slot.done = true;
    return;
  }
  slot.instruction = false;
  ids.insert(ids.end(), before_answer_.begin() + 1, before_answer_.end());
  slot.limit = std::min(options_.context, static_cast<int>(ids.size()) + options_.max_tokens);
  auto next = sampler(slot.job->temperature, options_.sampling_top_k, slot.job->seed);
  COPPICE_CHECK(next.has_value());  // its options were checked
  slot.sampler = std::move(*next);
}

std::uint64_t CorpusRunner::tokens_in_the_making() const {
  std::uint64_t tokens = 0;
  for (const Slot& slot : slots_)
    if (slot.job != nullptr && !slot.job->scored)
      tokens += slot.record.ids.size() - static_cast<std::size_t>(slot.record.start);
  return tokens;
}

Status CorpusRunner::run(std::span<const CorpusJob> jobs, const Hooks& hooks) {
  std::size_t next = 0;
  while (true) {
    bool busy = false;
    bool room = true;
    for (Slot& slot : slots_) {
      if (slot.job == nullptr && room && next < jobs.size() && hooks.more()) {
        COPPICE_TRY_STATUS(begin(slot, jobs[next], room));
        if (room) ++next;
      }
      busy = busy || slot.job != nullptr;
    }
    COPPICE_CHECK(busy || room);
    if (!busy) return {};
    collect();
    COPPICE_TRY_STATUS(context_->forward(rows_));
    draw_all();
    for (const Draw& draw : draws_)
      if (draw.failed)
        return fail(
            fmt::format("text {}: the model says of no token that it may come next", draw.slot->record.job));
    for (Slot& slot : slots_) {
      if (slot.job == nullptr) continue;
      take(slot);
      if (!slot.done || pending(slot) > 0) continue;
      context_->cache().close(slot.sequence);
      slot.job = nullptr;
      COPPICE_TRY_STATUS(hooks.finished(std::move(slot.record)));
    }
    if (!hooks.go_on()) return {};
  }
}

}  // namespace coppice
