// coppice train draft: what the draft begins with, out of the target or a draft that is there, and the run.
#include <ATen/Parallel.h>
#include <coppice/train.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/os.h"
#include "train/draft_init.h"
#include "train/draft_trainable.h"
#include "train/ops.h"
#include "train/trainer.h"
#include "train/weights.h"

namespace coppice {
namespace core::train {
namespace {

constexpr std::int64_t kMeasuredTokens = 16384;  // of the corpus, for the principal components

Status check_options(const DraftTraining& options) {
  COPPICE_TRY_STATUS(coppice::check(options.loop));
  if (options.out.empty()) return fail("out: name the file to write");
  if (options.vocabulary < 16) return fail(fmt::format("vocabulary = {}: at least 16", options.vocabulary));
  if (options.negatives < 0) return fail(fmt::format("negatives = {}: 0 (all) or more", options.negatives));
  if (!(options.temperature >= 0.1 && options.temperature <= 2))
    return fail(fmt::format("temperature = {}: 0.1 to 2 are possible", options.temperature));
  if (!(options.narrow_part > 0 && options.narrow_part <= 1))
    return fail(fmt::format("narrow_part = {}: above 0 and at most 1 is possible", options.narrow_part));
  if (!(options.rollout_share >= 0 && options.rollout_share <= 1))
    return fail(fmt::format("rollout_share = {}: 0 to 1 are possible", options.rollout_share));
  if (!(options.imitate >= 0)) return fail(fmt::format("imitate = {}: 0 (not) or more", options.imitate));
  for (const std::string& name : {options.format, options.head_format, options.embedding_format}) {
    if (const auto format = format_to_write(name); !format) return fail("format = " + format.error().message);
  }
  return {};
}

Result<std::unique_ptr<Dataset>> open_corpus(std::span<const std::string> folders, const Target& target,
                                             const DraftTraining& options) {
  const TrainLoop& loop = options.loop;
  COPPICE_TRY(auto data, Dataset::open(folders, {loop.window, loop.context, loop.batch_tokens, loop.held_out,
                                                 loop.seed}));
  if (data->vocab() != target.config.vocab || data->vocabulary_hash() != target.vocabulary_hash)
    return fail(fmt::format("{}: was made with another vocabulary than {} has", folders[0], options.target));
  if (data->top_k() == 0)
    return fail(folders[0] + ": holds no probabilities of the target; coppice corpus --top-k 16 writes them");
  return data;
}

// Stretches of the corpus as they are, without padding.
std::vector<torch::Tensor> texts_to_measure(const Dataset& data) {
  std::vector<torch::Tensor> texts;
  HostBatch host;
  std::int64_t tokens = 0;
  for (std::int64_t i = 0; i < data.batches_per_epoch() && tokens < kMeasuredTokens; ++i) {
    data.batch(i, false, host);
    const Batch batch = to_batch(host);
    for (int row = 0; row < host.rows; ++row) {
      const std::int64_t length = host.lengths[static_cast<std::size_t>(row)];
      texts.push_back(batch.ids.slice(0, row, row + 1).slice(1, 0, length));
      tokens += length;
    }
  }
  return texts;
}

Result<std::shared_ptr<SlimDraft>> first_draft(const DraftTraining& options, const Target& target,
                                               const Dataset& data) {
  if (!options.from.empty()) {
    COPPICE_TRY(const auto file, gguf::File::open(options.from));
    COPPICE_TRY(auto draft, read_draft(*file));
    if (draft->shape().vocab != target.config.vocab)
      return fail(fmt::format("{}: has another vocabulary than {}", options.from, options.target));
    return draft;
  }
  DraftShapeOptions wanted;
  wanted.layers = options.layers;
  wanted.heads = options.heads;
  wanted.kv_heads = options.kv_heads;
  wanted.hidden = options.hidden;
  wanted.factors = options.widths;
  wanted.from = options.source_layers;
  wanted.exit_layer = options.exit_layer;
  const DraftVocabulary vocabulary =
      choose_vocabulary(data.count_tokens(), options.vocabulary, target.end_tokens);
  COPPICE_TRY(const DraftShape shape,
              make_draft_shape(wanted, target.config, static_cast<int>(vocabulary.size())));
  COPPICE_TRY(DraftInit init,
              init_draft(*target.file, shape, {vocabulary.tokens.begin(), vocabulary.tokens.end()},
                         texts_to_measure(data), options.share_embedding));
  if (options.loop.progress) {
    std::string text = "kept of the residual stream:";
    for (std::size_t w = 0; w < init.energy.size(); ++w)
      text += fmt::format(" {:.3f} in {}", init.energy[w], shape.hidden[w]);
    options.loop.progress(text);
  }
  return init.draft;
}

// Rows of the head, the most used first.
torch::Tensor rows_by_use(const SlimDraft& draft, const Dataset& data) {
  const std::vector<std::uint64_t> counts = data.count_tokens();
  std::vector<std::int64_t> rows(draft.head_tokens().size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::int64_t>(i);
  std::stable_sort(rows.begin(), rows.end(), [&](std::int64_t a, std::int64_t b) {
    const auto count = [&](std::int64_t row) {
      return counts[static_cast<std::size_t>(draft.head_tokens()[static_cast<std::size_t>(row)])];
    };
    return count(a) > count(b);
  });
  return torch::tensor(rows);
}

Provenance provenance(const Target& target, const DraftTraining& options) {
  Provenance out = {{"kind", "draft"},
                    {"target", target.config.name},
                    {"corpus", fmt::format("{}", fmt::join(options.corpora, " "))},
                    {"command", options.command},
                    {"objective", fmt::format("{} at temperature {}", options.loss, options.temperature)}};
  if (!options.from.empty()) out.emplace_back("from", options.from);
  if (!options.rollouts.empty()) out.emplace_back("rollouts", options.rollouts);
  return out;
}

Result<TrainReport> run(const DraftTraining& options) {
  COPPICE_TRY_STATUS(check_options(options));
  DraftRecipe recipe;
  COPPICE_TRY(recipe.step.loss.loss, parse_draft_loss(options.loss));
  recipe.step.loss.temperature = options.temperature;
  recipe.step.full_head = options.negatives == 0;
  recipe.step.candidates.sampled = options.negatives;
  recipe.step.narrow_part = options.narrow_part;
  recipe.step.imitate = options.imitate;
  recipe.rollout_share = options.rollout_share;
  recipe.file = {options.format, options.head_format, options.embedding_format, {}};
  at::set_num_threads(options.loop.threads > 0 ? options.loop.threads : usable_cores());
  COPPICE_TRY(const Target target, Target::open(options.target));
  COPPICE_TRY(const auto data, open_corpus(options.corpora, target, options));
  std::unique_ptr<Dataset> rollouts;
  if (!options.rollouts.empty()) {
    COPPICE_TRY(rollouts, open_corpus({&options.rollouts, 1}, target, options));
    if (rollouts->batches_per_epoch() == 0) return fail(options.rollouts + ": holds no texts to learn from");
  }
  COPPICE_TRY(const auto draft, first_draft(options, target, *data));
  draft->set_compute_type(options.loop.bf16 ? torch::kBFloat16 : torch::kFloat32);
  if (!options.train_embedding) {
    auto& parameters = draft->parameters();
    std::erase_if(parameters, [&](const Parameter& p) { return p.value.is_same(draft->used_embedding); });
    draft->used_embedding.requires_grad_(false);
  }
  DraftTrainable model(draft, rows_by_use(*draft, *data), recipe, target.file, rollouts.get());
  return train(model, *data, {options.loop, options.out, false, provenance(target, options)});
}

}  // namespace
}  // namespace core::train

Result<TrainReport> train_draft(const DraftTraining& options) {
  try {
    return core::train::run(options);
  } catch (const std::exception& error) {  // LibTorch throws; no exception crosses a room
    return core::train::torch_failed(error);
  }
}

}  // namespace coppice
