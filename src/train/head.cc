// coppice train head: what the head begins with, out of the target and the corpus, and the run.
#include <ATen/Parallel.h>
#include <coppice/train.h>
#include <fmt/format.h>

#include "base/check.h"
#include "base/os.h"
#include "train/head_model.h"
#include "train/trainer.h"

namespace coppice {
namespace core::train {
namespace {

using torch::Tensor;

constexpr std::int64_t kMomentTokens = 100000;

Tensor to_tensor(std::vector<float> values, std::initializer_list<int64_t> shape) {
  return torch::from_blob(values.data(), torch::IntArrayRef(shape.begin(), shape.size())).clone();
}

Status check_options(const HeadTraining& options) {
  COPPICE_TRY_STATUS(coppice::check(options.loop));
  if (options.depth < 1 || options.depth > 8)
    return fail(fmt::format("depth = {}: 1 to 8 are possible", options.depth));
  if (options.vocabulary < 16) return fail(fmt::format("vocabulary = {}: at least 16", options.vocabulary));
  if (options.negatives < 0) return fail(fmt::format("negatives = {}: 0 (all) or more", options.negatives));
  if (!(options.temperature > 0.1 && options.temperature <= 2))
    return fail(fmt::format("temperature = {}: 0.1 to 2 are possible", options.temperature));
  if (const auto format = format_to_write(options.format); !format)
    return fail("format = " + format.error().message);
  if (options.out.empty()) return fail("out: name the file to write");
  return {};
}

HeadShape shape_of(const Target& target, const Dataset& data) {
  const ModelConfig& config = target.config;
  HeadShape shape;
  shape.hidden = config.hidden;
  shape.heads = config.heads;
  shape.kv_heads = config.kv_heads;
  shape.head_dim = config.head_dim;
  shape.feed_forward = config.feed_forward;
  shape.layers.assign(data.feature_layers().begin(), data.feature_layers().end());
  shape.features = static_cast<int>(shape.layers.size()) * data.hidden();
  shape.norm_eps = config.norm_eps;
  shape.rope_base = config.rope_base;
  shape.context_length = config.context_length;
  return shape;
}

Status check_corpus(const Target& target, const Dataset& data, const HeadTraining& options) {
  if (data.vocab() != target.config.vocab || data.vocabulary_hash() != target.vocabulary_hash)
    return fail(
        fmt::format("{}: was made with another vocabulary than {} has", options.corpora[0], options.target));
  if (data.feature_layers().empty())
    return fail(options.corpora[0] +
                ": holds no states of the target; coppice corpus --features writes them");
  if (data.hidden() != target.config.hidden)
    return fail(fmt::format("{}: its states are {} wide, those of {} {}", options.corpora[0], data.hidden(),
                            options.target, target.config.hidden));
  return {};
}

// [out, 2 h]: the hidden half as the target's layer has it; the embedding's as its first layer has it, which
// is the one that reads embeddings.
Result<Tensor> joined(const Target& target, const HeadShape& shape, int layer, const char* role, int heads) {
  const int64_t out = heads * shape.head_dim, h = shape.hidden;
  COPPICE_TRY(auto late, target.block(layer, role, {h, out}));
  COPPICE_TRY(auto first, target.block(0, role, {h, out}));
  return torch::cat({to_tensor(std::move(first), {out, h}), to_tensor(std::move(late), {out, h})}, 1);
}

// fc gives at first the last feature layer's state, without its mean.
Tensor first_fc(const HeadShape& shape, const Tensor& scale) {
  Tensor fc = torch::zeros({shape.hidden, shape.features});
  const auto begin = shape.features - shape.hidden;
  for (int64_t i = 0; i < shape.hidden; ++i) fc[i][begin + i] = 1 / scale[begin + i].item<float>();
  return fc;
}

Result<HeadWeights> from_target(const Target& target, const HeadShape& s, int layer, const Dataset& data,
                                const DraftVocabulary& vocabulary) {
  HeadWeights w;
  std::vector<float> mean, scale;
  data.feature_moments(kMomentTokens, mean, scale);
  w.mean = to_tensor(std::move(mean), {s.features});
  w.scale = to_tensor(std::move(scale), {s.features});
  w.fc = first_fc(s, w.scale);
  const int64_t h = s.hidden, ff = s.feed_forward, wide = s.heads * s.head_dim;
  COPPICE_TRY(auto embedding_norm, target.block(0, "attn_norm", {h}));
  w.embedding_norm = to_tensor(std::move(embedding_norm), {h});
  COPPICE_TRY(auto hidden_norm, target.block(layer, "attn_norm", {h}));
  w.hidden_norm = to_tensor(std::move(hidden_norm), {h});
  COPPICE_TRY(w.query, joined(target, s, layer, "attn_q", s.heads));
  COPPICE_TRY(w.key, joined(target, s, layer, "attn_k", s.kv_heads));
  COPPICE_TRY(w.value, joined(target, s, layer, "attn_v", s.kv_heads));
  COPPICE_TRY(auto attention_output, target.block(layer, "attn_output", {wide, h}));
  w.attention_output = to_tensor(std::move(attention_output), {h, wide});
  COPPICE_TRY(auto feed_forward_norm, target.block(layer, "ffn_norm", {h}));
  w.feed_forward_norm = to_tensor(std::move(feed_forward_norm), {h});
  COPPICE_TRY(auto gate, target.block(layer, "ffn_gate", {h, ff}));
  w.gate = to_tensor(std::move(gate), {ff, h});
  COPPICE_TRY(auto up, target.block(layer, "ffn_up", {h, ff}));
  w.up = to_tensor(std::move(up), {ff, h});
  COPPICE_TRY(auto down, target.block(layer, "ffn_down", {ff, h}));
  w.down = to_tensor(std::move(down), {h, ff});
  COPPICE_TRY(auto output_norm, target.output_norm());
  w.output_norm = to_tensor(std::move(output_norm), {h});
  COPPICE_TRY(auto output, target.output());
  const std::vector<int64_t> rows(vocabulary.tokens.begin(), vocabulary.tokens.end());
  w.output = to_tensor(std::move(output), {target.config.vocab, h}).index_select(0, torch::tensor(rows));
  return w;
}

// A head file to go on from. Its tensors must have the shape that this target and corpus ask for.
Result<HeadWeights> from_file(const gguf::File& file, const HeadShape& s, std::int64_t rows) {
  HeadWeights w;
  const int64_t h = s.hidden, ff = s.feed_forward, q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  struct Part {
    Tensor* to;
    const char* name;
    int64_t out, in;  // out = 0: a vector
  };
  const Part parts[] = {{&w.mean, "feature_mean", 0, s.features},
                        {&w.scale, "feature_scale", 0, s.features},
                        {&w.fc, "fc", h, s.features},
                        {&w.embedding_norm, "blk.0.attn_norm", 0, h},
                        {&w.hidden_norm, "blk.0.attn_norm_2", 0, h},
                        {&w.query, "blk.0.attn_q", q, 2 * h},
                        {&w.key, "blk.0.attn_k", kv, 2 * h},
                        {&w.value, "blk.0.attn_v", kv, 2 * h},
                        {&w.attention_output, "blk.0.attn_output", h, q},
                        {&w.feed_forward_norm, "blk.0.ffn_norm", 0, h},
                        {&w.gate, "blk.0.ffn_gate", ff, h},
                        {&w.up, "blk.0.ffn_up", ff, h},
                        {&w.down, "blk.0.ffn_down", h, ff},
                        {&w.output_norm, "output_norm", 0, h},
                        {&w.output, "output", rows, h}};
  for (const Part& part : parts) {
    std::vector<std::int64_t> shape{part.in};
    if (part.out > 0) shape.push_back(part.out);
    COPPICE_TRY(auto values, read_values(file, std::string(part.name) + ".weight", shape));
    *part.to = part.out > 0 ? to_tensor(std::move(values), {part.out, part.in})
                            : to_tensor(std::move(values), {part.in});
  }
  return w;
}

Result<DraftVocabulary> vocabulary_of(const gguf::File& file, int vocab) {
  const gguf::Tensor* map = file.tensor("d2t");
  if (map == nullptr || map->format->name != "I64")
    return fail(file.path() + ": has no map of tokens \"d2t\" of type I64");
  std::vector<std::int64_t> ids(static_cast<std::size_t>(map->values()));
  std::memcpy(ids.data(), map->data, ids.size() * sizeof(std::int64_t));
  std::vector<Token> tokens;
  for (const std::int64_t id : ids) {
    if (id < 0 || id >= vocab || (!tokens.empty() && id <= tokens.back()))
      return fail(file.path() +
                  ": \"d2t\" must hold ascending token ids of the target; other heads cannot be trained on");
    tokens.push_back(static_cast<Token>(id));
  }
  return make_vocabulary(std::move(tokens), vocab);
}

Provenance provenance(const Target& target, const HeadTraining& options) {
  return {{"kind", "head"},
          {"target", target.config.name},
          {"corpus", fmt::format("{}", fmt::join(options.corpora, " "))},
          {"command", options.command},
          {"from", options.from},
          {"objective", fmt::format("{} at temperature {}", options.objective, options.temperature)}};
}

Result<TrainReport> run(const HeadTraining& options) {
  COPPICE_TRY_STATUS(check_options(options));
  HeadRecipe recipe;
  COPPICE_TRY(recipe.objective, find_objective(options.objective));
  recipe.depth = options.depth;
  recipe.narrowing = options.narrowing;
  recipe.negatives = options.negatives;
  recipe.temperature = options.temperature;
  recipe.train_output = options.train_output;
  recipe.format = options.format;
  at::set_num_threads(options.loop.threads > 0 ? options.loop.threads : usable_cores());
  COPPICE_TRY(const Target target, Target::open(options.target));
  const int layers = target.config.layers, layer = options.layer < 0 ? layers - 1 : options.layer;
  if (layer >= layers) return fail(fmt::format("layer = {}: the target has 0 to {}", layer, layers - 1));
  const TrainLoop& loop = options.loop;
  COPPICE_TRY(const auto data, Dataset::open(options.corpora, {loop.window, loop.context, loop.batch_tokens,
                                                               loop.held_out, loop.seed}));
  COPPICE_TRY_STATUS(check_corpus(target, *data, options));
  const HeadShape shape = shape_of(target, *data);
  DraftVocabulary vocabulary;
  HeadWeights weights;
  if (options.from.empty()) {
    vocabulary = choose_vocabulary(data->count_tokens(), options.vocabulary, target.end_tokens);
    COPPICE_TRY(weights, from_target(target, shape, layer, *data, vocabulary));
  } else {
    COPPICE_TRY(const auto file, gguf::File::open(options.from));
    COPPICE_TRY(vocabulary, vocabulary_of(*file, target.config.vocab));
    COPPICE_TRY(weights, from_file(*file, shape, vocabulary.size()));
  }
  COPPICE_TRY(auto embedding, target.embedding());
  HeadModel model(shape, recipe, std::move(weights), std::move(vocabulary),
                  to_tensor(std::move(embedding), {target.config.vocab, shape.hidden}));
  return train(model, *data, {loop, options.out, true, provenance(target, options)});
}

}  // namespace
}  // namespace core::train

Result<TrainReport> train_head(const HeadTraining& options) {
  try {
    return core::train::run(options);
  } catch (const std::exception& error) {  // LibTorch throws; no exception crosses a room
    return core::train::torch_failed(error);
  }
}

}  // namespace coppice
