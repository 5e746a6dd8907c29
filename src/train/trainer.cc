#include "train/trainer.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/os.h"
#include "train/log.h"
#include "train/ops.h"
#include "train/optimizer.h"

namespace coppice {

Status check(const TrainLoop& loop) {
  const auto bad = [](const char* name, auto value, const char* right) {
    return fail(fmt::format("{} = {}: {}", name, value, right));
  };
  if (!(loop.minutes >= 0 && loop.minutes < 1e6))
    return bad("minutes", loop.minutes, "0 or more is possible");
  if (loop.steps < 0) return bad("steps", loop.steps, "0 or more is possible");
  if ((loop.minutes > 0) == (loop.steps > 0)) return fail("a budget is wanted: either minutes or steps");
  if (!(loop.rate > 0 && loop.rate <= 1)) return bad("rate", loop.rate, "above 0 and at most 1 is possible");
  if (!(loop.warm_up >= 0 && loop.warm_up < 1))
    return bad("warm_up", loop.warm_up, "a share below 1 is possible");
  if (!(loop.decay >= 0 && loop.decay <= 1)) return bad("decay", loop.decay, "0 to 1 is possible");
  if (!(loop.clip >= 0)) return bad("clip", loop.clip, "0 (none) or more is possible");
  if (!(loop.average >= 0 && loop.average < 1))
    return bad("average", loop.average, "0 (none) to below 1 is possible");
  if (loop.threads < 0 || loop.threads > 1024)
    return bad("threads", loop.threads, "0 (all) to 1024 are possible");
  if (!(loop.checkpoint_minutes > 0))
    return bad("checkpoint_minutes", loop.checkpoint_minutes, "above 0 is possible");
  if (loop.judge_steps < 1) return bad("judge_steps", loop.judge_steps, "1 or more is possible");
  if (loop.judge_tokens < 1) return bad("judge_tokens", loop.judge_tokens, "1 or more is possible");
  return {};
}

}  // namespace coppice

namespace coppice::core::train {
namespace {

constexpr double kProgressSeconds = 10;
constexpr int kChain = 8;
constexpr const char* kStep = "coppice.checkpoint.step";
constexpr const char* kTokens = "coppice.checkpoint.tokens";
constexpr const char* kSeconds = "coppice.checkpoint.seconds";

// Rises in the first share of the budget, then falls to nothing as a cosine.
double rate_at(double done, const TrainLoop& loop) {
  if (done < loop.warm_up) return loop.rate * (done / loop.warm_up + 1e-3);
  const double x = std::min(1.0, (done - loop.warm_up) / (1 - loop.warm_up));
  return loop.rate * (0.5 + 0.5 * std::cos(x * std::numbers::pi)) + loop.rate * 1e-3;
}

class Loop {
 public:
  Loop(Trainable& model, const Dataset& data, const Run& run)
      : model_(model), data_(data), run_(run), loop_(run.loop), optimizer_(model.parameters()) {}

  Result<TrainReport> operator()();

 private:
  Status resume();
  Status save_checkpoint() const;
  Status export_file();
  Status judge_and_log(std::int64_t tokens);
  Status learn();
  void say_progress();

  double elapsed() const { return before_ + seconds() - start_; }
  double done() const {
    return loop_.steps > 0 ? static_cast<double>(step_) / static_cast<double>(loop_.steps)
                           : elapsed() / (loop_.minutes * 60);
  }
  double seconds_left() const {
    const double part = done();
    return part > 0 ? elapsed() * (1 - part) / part : 0;
  }
  double speed() const { return static_cast<double>(tokens_ - first_tokens_) / std::max(1e-9, learning_); }
  std::string beside(const char* ending) const { return run_.out + ending; }

  Trainable& model_;
  const Dataset& data_;
  const Run& run_;
  const TrainLoop& loop_;
  Optimizer optimizer_;
  Log log_;
  HostBatch host_;
  std::int64_t step_ = 0, tokens_ = 0, first_tokens_ = 0;
  double before_ = 0, start_ = 0, learning_ = 0;  // seconds: of earlier runs, when this one began, in steps
  double loss_sum_ = 0, loss_ = 0;                // since the last judgement; their mean
  std::int64_t loss_steps_ = 0;
  std::vector<Agreement> judged_;
};

Status Loop::resume() {
  COPPICE_TRY(const auto file, gguf::File::open(beside(".checkpoint")));
  COPPICE_TRY_STATUS(optimizer_.load(*file));
  COPPICE_TRY(step_, file->integer(kStep));
  COPPICE_TRY(tokens_, file->integer(kTokens));
  COPPICE_TRY(before_, file->number(kSeconds));
  first_tokens_ = tokens_;
  return {};
}

Status Loop::save_checkpoint() const {
  gguf::Writer writer;
  writer.add_text("general.architecture", "coppice-checkpoint");
  writer.add_u64(kStep, static_cast<std::uint64_t>(step_));
  writer.add_u64(kTokens, static_cast<std::uint64_t>(tokens_));
  writer.add_f32(kSeconds, static_cast<float>(elapsed()));
  optimizer_.save(writer);
  return writer.write(beside(".checkpoint"));
}

Status Loop::export_file() {
  gguf::Writer writer;
  optimizer_.swap_average();
  const Status status = model_.export_to(writer);
  optimizer_.swap_average();
  COPPICE_TRY_STATUS(status);
  for (const auto& [key, value] : run_.provenance) writer.add_text("coppice.train." + key, value);
  writer.add_text("coppice.train.target_hash", data_.target_hash());
  writer.add_u64("coppice.train.steps", static_cast<std::uint64_t>(step_));
  writer.add_u64("coppice.train.tokens", static_cast<std::uint64_t>(tokens_));
  writer.add_u64("coppice.train.corpus_tokens", static_cast<std::uint64_t>(data_.scored_tokens()));
  writer.add_f32("coppice.train.minutes", static_cast<float>(elapsed() / 60));
  writer.add_f32("coppice.train.loss", static_cast<float>(loss_));
  for (const Agreement& each : judged_) {
    const std::string share =
        fmt::format("{:.4f} of its first choices, {:.4f} in its first 4, {:.4f} in its first 8",
                    each.of(each.top1), each.of(each.top4), each.of(each.top8));
    writer.add_text("coppice.train.agreement." + each.name, share);
  }
  if (!judged_.empty())
    writer.add_f32("coppice.train.accepted", static_cast<float>(model_.accepted(judged_)));
  return writer.write(run_.out);
}

Status Loop::judge_and_log(std::int64_t tokens) {
  optimizer_.swap_average();
  judged_ = judge(model_, data_, run_.features, tokens);
  optimizer_.swap_average();
  if (loss_steps_ > 0) loss_ = loss_sum_ / static_cast<double>(loss_steps_);
  loss_sum_ = 0;
  loss_steps_ = 0;
  const Agreement& first = judged_.front();
  LogLine line{step_, tokens_, elapsed(), rate_at(done(), loop_), loss_};
  line.top1 = first.of(first.top1);
  line.top4 = first.of(first.top4);
  line.top8 = first.of(first.top8);
  line.overlap = first.of(first.overlap);
  line.accepted = model_.accepted(judged_);
  line.tokens_per_second = speed();
  line.seconds_left = seconds_left();
  if (loop_.progress) {
    std::string text = fmt::format("step {}: loss {:.4f}, accepted {:.3f};", step_, loss_, line.accepted);
    for (const Agreement& each : judged_)
      text += fmt::format(" {} {:.3f}/{:.3f}/{:.3f} overlap {:.3f};", each.name, each.of(each.top1),
                          each.of(each.top4), each.of(each.top8), each.of(each.overlap));
    loop_.progress(text);
  }
  return log_.add(line);
}

Status Loop::learn() {
  const double begin = seconds();
  data_.batch(step_, run_.features, host_);
  const Batch batch = to_batch(host_);
  Random random(loop_.seed, static_cast<std::uint64_t>(step_));
  const double loss = model_.learn(batch, random);
  StepSize size{rate_at(done(), loop_), loop_.decay, loop_.clip, loop_.average};
  const double norm = optimizer_.step(size);
  if (!std::isfinite(loss) || !std::isfinite(norm))
    return fail(
        fmt::format("the loss of step {} is not finite; a lower rate than {} may help", step_, loop_.rate));
  ++step_;
  tokens_ += batch.tokens();
  loss_sum_ += loss;
  ++loss_steps_;
  learning_ += seconds() - begin;
  return {};
}

void Loop::say_progress() {
  loop_.progress(fmt::format("step {}, {} tokens, loss {:.4f}, {:.0f} tokens/s, {:.1f} minutes left", step_,
                             tokens_, loss_steps_ > 0 ? loss_sum_ / static_cast<double>(loss_steps_) : loss_,
                             speed(), seconds_left() / 60));
}

Result<TrainReport> Loop::operator()() {
  if (loop_.resume) COPPICE_TRY_STATUS(resume());
  COPPICE_TRY(log_, Log::open(beside(".csv"), loop_.resume, step_));
  start_ = seconds();
  double saved = start_, said = start_;
  bool stopped = false;
  if (!loop_.resume) COPPICE_TRY_STATUS(judge_and_log(loop_.judge_tokens));
  while (done() < 1 && !stopped) {
    COPPICE_TRY_STATUS(learn());
    if (step_ % loop_.judge_steps == 0 && done() < 1) COPPICE_TRY_STATUS(judge_and_log(loop_.judge_tokens));
    if (seconds() - saved > loop_.checkpoint_minutes * 60) {
      COPPICE_TRY_STATUS(save_checkpoint());
      COPPICE_TRY_STATUS(export_file());
      saved = seconds();
    }
    if (loop_.progress && seconds() - said > kProgressSeconds) {
      say_progress();
      said = seconds();
    }
    stopped = loop_.stop && loop_.stop();
  }
  COPPICE_TRY_STATUS(save_checkpoint());
  if (!stopped || judged_.empty()) COPPICE_TRY_STATUS(judge_and_log(data_.held_out_tokens()));
  COPPICE_TRY_STATUS(export_file());
  TrainReport report;
  report.steps = step_;
  report.tokens = tokens_;
  report.loss = loss_;
  report.tokens_per_second = speed();
  report.stopped = stopped;
  for (const Agreement& each : judged_)
    report.agreement.push_back(
        {each.name, each.of(each.top1), each.of(each.top4), each.of(each.top8), each.of(each.overlap)});
  report.accepted = model_.accepted(judged_);
  return report;
}

}  // namespace

void Agreement::add(const Agreement& other) {
  tokens += other.tokens;
  top1 += other.top1;
  top4 += other.top4;
  top8 += other.top8;
  overlap += other.overlap;
}

double Trainable::accepted(const std::vector<Agreement>& sums) const {
  if (sums.empty()) return 1;
  double length = 1, reached = 1;
  for (int depth = 0; depth < kChain; ++depth) length += reached *= sums.front().of(sums.front().top1);
  return length;
}

Batch to_batch(HostBatch& host) {
  const auto copied = [](auto& values, torch::ScalarType type, std::initializer_list<int64_t> shape) {
    return torch::from_blob(values.data(), torch::IntArrayRef(shape.begin(), shape.size()), type).clone();
  };
  const int64_t b = host.rows, t = host.length, k = host.top_k;
  Batch batch;
  batch.ids = copied(host.ids, torch::kInt64, {b, t});
  batch.lengths = copied(host.lengths, torch::kInt64, {b});
  batch.scored = copied(host.scored, torch::kBool, {b, t});
  batch.top = copied(host.top, torch::kInt64, {b, t, k});
  batch.top_logp = copied(host.top_logp, torch::kFloat32, {b, t, k});
  if (host.features > 0)
    batch.features = torch::from_blob(host.feature_halves.data(), {b, t, host.features}, torch::kFloat16)
                         .to(torch::kFloat32);
  return batch;
}

std::vector<Agreement> judge(Trainable& model, const Dataset& data, bool features, std::int64_t tokens) {
  torch::NoGradGuard no_gradients;
  std::vector<Agreement> sums;
  HostBatch host;
  std::int64_t seen = 0;
  for (std::int64_t i = 0; i < data.held_out_batches() && seen < tokens; ++i) {
    data.held_out_batch(i, features, host);
    const Batch batch = to_batch(host);
    seen += batch.tokens();
    model.judge(batch, sums);
  }
  return sums;
}

Result<TrainReport> train(Trainable& model, const Dataset& data, const Run& run) {
  COPPICE_TRY_STATUS(coppice::check(run.loop));
  at::set_num_threads(run.loop.threads > 0 ? run.loop.threads : usable_cores());
  set_precision(run.loop.bf16 ? Precision::bf16 : Precision::f32);
  try {
    return Loop(model, data, run)();
  } catch (const std::exception& error) {  // LibTorch throws; no exception crosses a room
    return torch_failed(error);
  }
}

}  // namespace coppice::core::train
