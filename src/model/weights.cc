// Loading in three steps: name every tensor and check it against the shape the config promises; ask whether
// the whole fits into memory, before a byte of a tensor is read; then check scales and pack (packing.h).
#include "model/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "model/packed_cache.h"
#include "model/slim.h"
#include "quant/formats.h"

namespace coppice::core {
namespace {

constexpr std::int64_t kVector = 0;  // as a number of outputs: the tensor has one dimension

// Collects what to pack. The WeightMatrix pointers stay valid because load() sizes every vector first.
class Loader {
 public:
  Loader(const gguf::File& file, const Architecture& row, const ModelConfig& config)
      : file_(file), row_(row), config_(config) {}

  Status plan(ModelWeights& weights);
  Status admit() const;
  std::span<const PackJob> jobs() const { return jobs_; }

 private:
  Result<const gguf::Tensor*> find(const std::string& name, std::int64_t inputs, std::int64_t outputs,
                                   std::int64_t matrices = 1);
  Status matrix(const std::string& name, int inputs, int outputs, bool bias, WeightMatrix& out);
  Status values(const std::string& name, std::int64_t inputs, std::int64_t outputs, WeightVector& out);
  Status norm(const std::string& name, NormWeights& out, int size);
  Status plan_embedding(ModelWeights& weights);
  Status plan_slim(ModelWeights& weights);
  Status plan_norms(int number, LayerWeights& layer);
  Status plan_attention(int number, LayerWeights& layer);
  Status plan_feed_forward(int number, LayerWeights& layer);
  Status plan_experts(int number, LayerWeights& layer);
  Status expert_matrices(const std::string& name, int inputs, int outputs, LayerWeights& layer,
                         WeightMatrix ExpertWeights::*role);
  Status plan_layer(int number, LayerWeights& layer);
  Status plan_rope(RopeFactors& factors);
  Status plan_head(ModelWeights& weights);
  Status check_cuts() const;
  Status refuse_unknown_tensors() const;
  tl::unexpected<Error> refuse(std::string_view tensor, std::string_view why) const {
    return fail(fmt::format("{}: tensor {} {}", file_.path(), tensor, why));
  }

  Result<const gguf::Value*> list(const char* key) const;
  tl::unexpected<Error> refuse_key(const char* key, std::string_view why) const {
    return fail(fmt::format("{}: {} {}", file_.path(), key, why));
  }

  const gguf::File& file_;
  const Architecture& row_;
  const ModelConfig& config_;
  std::vector<PackJob> jobs_;
  std::deque<gguf::Tensor> parts_;  // of tensors that hold several matrices
  std::set<std::string, std::less<>> used_;
  std::size_t vector_bytes_ = 0;
};

std::string shape_text(const gguf::Tensor& tensor) {
  std::string text;
  for (int i = 0; i < tensor.rank; ++i) text += fmt::format("{}{}", i == 0 ? "" : " x ", tensor.shape[i]);
  return text;
}

Result<const gguf::Tensor*> Loader::find(const std::string& name, std::int64_t inputs, std::int64_t outputs,
                                         std::int64_t matrices) {
  const gguf::Tensor* tensor = file_.tensor(name);
  if (tensor == nullptr)
    return fail(fmt::format("{}: tensor {} is missing; a {} model of {} layers has it", file_.path(), name,
                            row_.name, config_.layers));
  const bool vector = outputs == kVector;
  const auto& shape = tensor->shape;
  const bool right = vector ? tensor->values() == inputs && shape[0] == inputs
                            : tensor->rank == (matrices > 1 ? 3 : 2) && shape[0] == inputs &&
                                  shape[1] == outputs && shape[2] == matrices;
  if (!right) {
    std::string wanted = fmt::format("{}", inputs);
    if (!vector) wanted += fmt::format(" x {}", outputs);
    if (matrices > 1) wanted += fmt::format(" x {}", matrices);
    return refuse(name, fmt::format("has the shape {}, but must have {}", shape_text(*tensor), wanted));
  }
  if (!tensor->format->weights)
    return refuse(name, fmt::format("has the type {}, which is no type of weights", tensor->format->name));
  used_.insert(name);
  return tensor;
}

Status Loader::matrix(const std::string& name, int inputs, int outputs, bool bias, WeightMatrix& out) {
  out.name = name + ".weight";
  COPPICE_TRY(const gguf::Tensor* tensor, find(out.name, inputs, outputs));
  out.packed.kind = tensor->format->packed;
  out.packed.outputs = outputs;
  out.packed.inputs = inputs;
  jobs_.push_back({tensor, &out.packed});
  if (bias) return values(name + ".bias", outputs, kVector, out.bias);
  return {};
}

// Norms, biases and learned positions are small: read at once. Kept in f32, so only float formats.
Status Loader::values(const std::string& name, std::int64_t inputs, std::int64_t outputs, WeightVector& out) {
  COPPICE_TRY(const gguf::Tensor* tensor, find(name, inputs, outputs));
  const Format& format = *tensor->format;
  if (format.block_values != 1)
    return refuse(name, fmt::format("has the type {}, but must be F32, F16 or BF16", format.name));
  out.size = static_cast<std::size_t>(tensor->values());
  COPPICE_TRY(out.memory, Buffer::make(out.size * sizeof(float)));
  float* values = reinterpret_cast<float*>(out.memory.data());
  format.unpack(tensor->data, values, tensor->values());
  for (std::size_t i = 0; i < out.size; ++i)
    if (!std::isfinite(values[i]))
      return refuse(name, fmt::format("has a value that is not finite at index {}", i));
  vector_bytes_ += out.memory.size();
  return {};
}

Status Loader::norm(const std::string& name, NormWeights& out, int size) {
  COPPICE_TRY_STATUS(values(name + ".weight", size, kVector, out.weight));
  if (config_.norm == Norm::layer) return values(name + ".bias", size, kVector, out.bias);
  return {};
}

// Token ids or rows of a trimmed matrix, which only a file with a head of its own may have; null: there are
// none.
Result<const gguf::Value*> Loader::list(const char* key) const {
  const gguf::Value* value = file_.find(key);
  if (value == nullptr) return value;
  if (!value->is_array || (value->type != gguf::Type::i32 && value->type != gguf::Type::u32))
    return refuse_key(key, "must be an array of i32 or u32");
  if (config_.tied_head) return refuse_key(key, fmt::format("needs a tensor {}.weight", row_.tensors.head));
  return value;
}

// Tokens may share rows: a key lists which row each has.
Status Loader::plan_embedding(ModelWeights& weights) {
  const std::string name = row_.tensors.token_embedding;
  COPPICE_TRY(const gguf::Value* rows, list(kEmbeddingRowsKey));
  if (rows == nullptr) return matrix(name, config_.hidden, config_.vocab, false, weights.embedding);
  const gguf::Tensor* tensor = file_.tensor(name + ".weight");
  const std::int64_t count = tensor == nullptr ? 0 : tensor->shape[1];  // read_config() looked at it
  weights.embedding_rows.resize(rows->count);
  for (std::uint64_t i = 0; i < rows->count; ++i) {
    const std::int64_t at = rows->integer(i);
    if (at < 0 || at >= count)
      return refuse_key(kEmbeddingRowsKey,
                        fmt::format("has row {} for token {}; the embedding has {} rows", at, i, count));
    weights.embedding_rows[i] = static_cast<std::int32_t>(at);
  }
  return matrix(name, config_.hidden, static_cast<int>(count), false, weights.embedding);
}

// What the narrower widths of a slimmable model have of their own.
Status Loader::plan_slim(ModelWeights& weights) {
  const SlimWidths& slim = config_.slim;
  if (slim.hidden.empty()) return {};
  const TensorNames& names = row_.tensors;
  weights.narrow.resize(slim.hidden.size() - 1);
  for (std::size_t w = 0; w < weights.narrow.size(); ++w) {
    NarrowNorms& norms = weights.narrow[w];
    const int hidden = slim.hidden[w];
    norms.attention.resize(config_.layers);
    norms.feed_forward.resize(config_.layers);
    const auto name = [&](int layer, const char* role) {
      return narrow_norm(fmt::format("blk.{}.{}", layer, role), hidden);
    };
    for (int i = 0; i < config_.layers; ++i) {
      COPPICE_TRY_STATUS(norm(name(i, names.attention_norm), norms.attention[i], hidden));
      COPPICE_TRY_STATUS(norm(name(i, names.feed_forward_norm), norms.feed_forward[i], hidden));
    }
    COPPICE_TRY_STATUS(norm(narrow_norm(names.output_norm, hidden), norms.output, hidden));
  }
  if (slim.exit_layer == 0) return {};
  return norm("exit_norm", weights.exit_norm, slim.hidden[slim.exit_width]);
}

// Narrower models use the first inputs of matrices, whole blocks of them.
Status Loader::check_cuts() const {
  for (const PackJob& job : jobs_) {
    const int unit = packed_unit_inputs(job.matrix->kind);
    for (const auto* widths : {&config_.slim.hidden, &config_.slim.feed_forward})
      for (const int width : *widths)
        if (width % unit != 0)
          return refuse(job.tensor->name,
                        fmt::format("has the type {}, whose blocks have {} values, but the model has a width "
                                    "of {}",
                                    job.tensor->format->name, unit, width));
  }
  return {};
}

// The norms before the two parts of a block.
Status Loader::plan_norms(int number, LayerWeights& layer) {
  const TensorNames& names = row_.tensors;
  const auto name = [&](const char* role) { return fmt::format("blk.{}.{}", number, role); };
  const char *attention = names.attention_norm, *feed_forward = names.feed_forward_norm;
  const char* second = names.second_attention_norm;
  if (second != nullptr && file_.tensor(name(second) + ".weight") != nullptr)
    feed_forward = std::exchange(attention, second);
  if (attention == nullptr) return {};
  COPPICE_TRY_STATUS(norm(name(attention), layer.attention_norm, config_.hidden));
  if (feed_forward == nullptr) return norm(name(attention), layer.feed_forward_norm, config_.hidden);
  return norm(name(feed_forward), layer.feed_forward_norm, config_.hidden);
}

Status Loader::plan_attention(int number, LayerWeights& layer) {
  const TensorNames& names = row_.tensors;
  const auto name = [&](const char* role) { return fmt::format("blk.{}.{}", number, role); };
  const int hidden = config_.hidden;
  const int q = config_.heads * config_.head_dim, kv = config_.kv_heads * config_.head_dim;
  const bool bias = config_.qkv_biases;
  auto& qkv = layer.query_key_value;
  qkv.resize(config_.fused_qkv ? 1 : 3);
  if (config_.fused_qkv) {
    COPPICE_TRY_STATUS(matrix(name(names.query_key_value), hidden, q + 2 * kv, bias, qkv[0]));
  } else {
    COPPICE_TRY_STATUS(matrix(name(names.query), hidden, q, bias, qkv[0]));
    COPPICE_TRY_STATUS(matrix(name(names.key), hidden, kv, bias, qkv[1]));
    COPPICE_TRY_STATUS(matrix(name(names.value), hidden, kv, bias, qkv[2]));
  }
  if (names.query_norm != nullptr) {
    const bool whole = config_.whole_query_norm;
    COPPICE_TRY_STATUS(norm(name(names.query_norm), layer.query_norm, whole ? q : config_.head_dim));
    COPPICE_TRY_STATUS(norm(name(names.key_norm), layer.key_norm, whole ? kv : config_.head_dim));
  }
  COPPICE_TRY_STATUS(
      matrix(name(names.attention_output), q, hidden, config_.output_bias, layer.attention_output));
  if (names.attention_post_norm == nullptr) return {};
  return norm(name(names.attention_post_norm), layer.attention_post_norm, hidden);
}

Status Loader::plan_feed_forward(int number, LayerWeights& layer) {
  const TensorNames& names = row_.tensors;
  const auto name = [&](const char* role) { return fmt::format("blk.{}.{}", number, role); };
  const int hidden = config_.hidden, ff = config_.feed_forward;
  const bool bias = config_.feed_forward_biases, fused = config_.fused_gate_up;
  const bool two = gated(config_.activation) && !fused;
  layer.gate_up.resize(two ? 2 : 1);
  if (two) COPPICE_TRY_STATUS(matrix(name(names.gate), hidden, ff, bias, layer.gate_up[0]));
  COPPICE_TRY_STATUS(matrix(name(names.up), hidden, fused ? 2 * ff : ff, bias, layer.gate_up.back()));
  COPPICE_TRY_STATUS(matrix(name(names.down), ff, hidden, bias, layer.down));
  if (names.feed_forward_post_norm == nullptr) return {};
  return norm(name(names.feed_forward_post_norm), layer.feed_forward_post_norm, hidden);
}

// One tensor, the matrices of all experts behind each other.
Status Loader::expert_matrices(const std::string& name, int inputs, int outputs, LayerWeights& layer,
                               WeightMatrix ExpertWeights::*role) {
  COPPICE_TRY(const gguf::Tensor* tensor, find(name + ".weight", inputs, outputs, config_.experts));
  for (int expert = 0; expert < config_.experts; ++expert) {
    gguf::Tensor& part = parts_.emplace_back(*tensor);
    part.rank = 2;
    part.shape[2] = 1;
    part.bytes = tensor->bytes / static_cast<std::size_t>(config_.experts);
    part.data += part.bytes * static_cast<std::size_t>(expert);
    WeightMatrix& out = layer.experts[static_cast<std::size_t>(expert)].*role;
    out.name = fmt::format("{}.weight.{}", name, expert);
    out.packed.kind = tensor->format->packed;
    out.packed.outputs = outputs;
    out.packed.inputs = inputs;
    jobs_.push_back({&part, &out.packed});
  }
  return {};
}

Status Loader::plan_experts(int number, LayerWeights& layer) {
  const TensorNames& names = row_.tensors;
  const auto name = [&](const char* role) { return fmt::format("blk.{}.{}", number, role); };
  const int hidden = config_.hidden, ff = config_.feed_forward;
  layer.experts.resize(static_cast<std::size_t>(config_.experts));
  COPPICE_TRY_STATUS(matrix(name(names.router), hidden, config_.experts, false, layer.router));
  COPPICE_TRY_STATUS(expert_matrices(name(names.expert_gates), hidden, ff, layer, &ExpertWeights::gate));
  COPPICE_TRY_STATUS(expert_matrices(name(names.expert_ups), hidden, ff, layer, &ExpertWeights::up));
  return expert_matrices(name(names.expert_downs), ff, hidden, layer, &ExpertWeights::down);
}

Status Loader::plan_layer(int number, LayerWeights& layer) {
  COPPICE_TRY_STATUS(plan_norms(number, layer));
  COPPICE_TRY_STATUS(plan_attention(number, layer));
  return config_.experts > 0 ? plan_experts(number, layer) : plan_feed_forward(number, layer);
}

Status Loader::plan_rope(RopeFactors& factors) {
  if (config_.positions != Positions::rope) return {};
  const auto read = [&](const char* name, bool there, WeightVector& out) -> Status {
    if (!there) return {};
    COPPICE_TRY_STATUS(values(name, config_.rope_dims / 2, kVector, out));
    for (std::size_t i = 0; i < out.size; ++i)
      if (!(out.data()[i] > 0))
        return refuse(name,
                      fmt::format("has {} at index {}, but must have positive factors", out.data()[i], i));
    return {};
  };
  const bool longrope = config_.rope_scaling.kind == RopeScaling::Kind::longrope;
  COPPICE_TRY_STATUS(read(kRopeFactors, file_.tensor(kRopeFactors) != nullptr, factors.all));
  COPPICE_TRY_STATUS(read(kRopeFactorsLong, longrope, factors.longer));
  return read(kRopeFactorsShort, longrope, factors.shorter);
}

// A trimmed head has fewer rows than the vocabulary, and says in a key which tokens they are.
Status Loader::plan_head(ModelWeights& weights) {
  COPPICE_TRY(const gguf::Value* tokens, list(kHeadTokensKey));
  int rows = config_.vocab;
  if (tokens != nullptr) {
    if (tokens->count < 1 || tokens->count > static_cast<std::uint64_t>(config_.vocab))
      return refuse_key(kHeadTokensKey, fmt::format("has {} tokens, but must have from 1 to {}",
                                                    tokens->count, config_.vocab));
    rows = static_cast<int>(tokens->count);
    weights.head_tokens.resize(tokens->count);
    std::int64_t before = -1;
    for (std::uint64_t i = 0; i < tokens->count; ++i) {
      const std::int64_t token = tokens->integer(i);
      if (token <= before || token >= config_.vocab)
        return refuse_key(kHeadTokensKey,
                          fmt::format("must rise strictly and stay below {}, but has {} at index {}",
                                      config_.vocab, token, i));
      weights.head_tokens[i] = static_cast<Token>(token);
      before = token;
    }
  }
  if (config_.tied_head) return {};
  return matrix(row_.tensors.head, config_.hidden, rows, false, weights.own_head);
}

// A tensor nobody uses (a bias, a router, a second norm) would mean that the model computes something else.
Status Loader::refuse_unknown_tensors() const {
  for (const gguf::Tensor& tensor : file_.tensors())
    if (used_.find(tensor.name) == used_.end())
      return refuse(tensor.name,
                    fmt::format("is not one that architecture {} with {} layers has, so this model "
                                "is not what its header says",
                                row_.name, config_.layers));
  return {};
}

Status Loader::plan(ModelWeights& weights) {
  weights.layers.resize(config_.layers);
  COPPICE_TRY_STATUS(plan_embedding(weights));
  for (int i = 0; i < config_.layers; ++i) COPPICE_TRY_STATUS(plan_layer(i, weights.layers[i]));
  COPPICE_TRY_STATUS(norm(row_.tensors.output_norm, weights.output_norm, config_.hidden));
  COPPICE_TRY_STATUS(plan_rope(weights.rope_factors));
  COPPICE_TRY_STATUS(plan_slim(weights));
  COPPICE_TRY_STATUS(plan_head(weights));
  COPPICE_TRY_STATUS(check_cuts());
  if (config_.positions == Positions::learned) {
    const std::string name = std::string(row_.tensors.position_embedding) + ".weight";
    COPPICE_TRY_STATUS(values(name, config_.hidden, config_.context_length, weights.positions));
  }
  return refuse_unknown_tensors();
}

Status Loader::admit() const {
  std::size_t bytes = vector_bytes_;
  for (const PackJob& job : jobs_) bytes += job.matrix->bytes();
  if (bytes > memory_total())
    return fail(fmt::format("{}: the weights need {} bytes of memory, but this machine has {}", file_.path(),
                            bytes, memory_total()));
  return {};
}

}  // namespace

std::vector<const WeightMatrix*> matrices_of_a_row(const LayerWeights& layer, int experts_used) {
  std::vector<const WeightMatrix*> all;
  for (const WeightMatrix& matrix : layer.query_key_value) all.push_back(&matrix);
  all.push_back(&layer.attention_output);
  for (const WeightMatrix& matrix : layer.gate_up) all.push_back(&matrix);
  if (layer.experts.empty()) {
    all.push_back(&layer.down);
    return all;
  }
  all.push_back(&layer.router);
  for (std::size_t i = 0; i < static_cast<std::size_t>(experts_used); ++i)
    for (const WeightMatrix* matrix : {&layer.experts[i].gate, &layer.experts[i].up, &layer.experts[i].down})
      all.push_back(matrix);
  return all;
}

Result<ModelWeights> ModelWeights::load(const gguf::File& file, const Architecture& row,
                                        const ModelConfig& config, ThreadPool& pool,
                                        const std::function<void(double)>& progress, PackedCache* cache) {
  ModelWeights weights;
  Loader loader(file, row, config);
  COPPICE_TRY_STATUS(loader.plan(weights));
  COPPICE_TRY_STATUS(loader.admit());
  COPPICE_TRY(weights.packed, cache == nullptr ? pack_weights(file, loader.jobs(), pool, progress)
                                               : cached_weights(file, loader.jobs(), pool, progress, *cache));
  return weights;
}

}  // namespace coppice::core
