// Loading a draft head: its shape from the keys, every tensor against that shape, and all of it against the
// target it is to guess for.
#include "model/head_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string_view>

#include "base/check.h"
#include "model/shape_keys.h"
#include "quant/formats.h"

namespace coppice::core {
namespace {

// Both spellings of the layers' key, and of the hidden state's norm: the converter changed its mind.
constexpr const char* kLayerKeys[] = {"target_layers", "extract_layers"};
constexpr const char* kHiddenNorms[] = {"blk.0.attn_norm_2.weight", "blk.0.hidden_norm.weight"};
// Variants that compute something else.
constexpr const char* kUnsupported[] = {"norm_before_fc", "fc_norm", "norm_output"};

class HeadLoader {
 public:
  HeadLoader(const gguf::File& file, const Model& target, HeadConfig& config, HeadWeights& weights)
      : file_(file),
        keys_{file, std::string(kHeadArchitecture)},
        target_(target),
        config_(config),
        weights_(weights) {}

  Status read_shape();
  Status plan();
  Status admit() const;
  std::span<const PackJob> jobs() const { return jobs_; }

 private:
  Status read_layers();
  Status check_target() const;
  Status plan_map();
  Status plan_embedding();
  Status plan_output();
  Status plan_block();
  Result<bool> flag(const char* name) const;
  Result<const gguf::Tensor*> find(const std::string& name, std::int64_t inputs, std::int64_t outputs);
  Status matrix(const std::string& name, int inputs, int outputs, WeightMatrix& out);
  Status vector(const std::string& name, int size, WeightVector& out);
  Status finite(const std::string& name, const WeightVector& values) const;
  tl::unexpected<Error> refuse(std::string_view tensor, std::string_view why) const {
    return fail(fmt::format("{}: tensor {} {}", file_.path(), tensor, why));
  }
  bool has(const char* name) const { return file_.tensor(name) != nullptr; }

  const gguf::File& file_;
  ShapeKeys keys_;
  const Model& target_;
  HeadConfig& config_;
  HeadWeights& weights_;
  std::vector<PackJob> jobs_;
  std::set<std::string, std::less<>> used_;
};

Result<bool> HeadLoader::flag(const char* name) const {
  const gguf::Value* value = file_.find(keys_.key(name));
  if (value == nullptr) return false;
  if (value->is_array || value->type != gguf::Type::boolean)
    return keys_.refuse(name, "must be true or false");
  return value->integer() != 0;
}

Status HeadLoader::read_shape() {
  ModelConfig& block = config_.block;
  block.architecture = std::string(kHeadArchitecture);
  block.name = std::string(file_.text_or("general.name", ""));
  COPPICE_TRY(block.hidden, keys_.size("embedding_length"));
  COPPICE_TRY(block.layers, keys_.size("block_count"));
  if (block.layers != 1)
    return keys_.refuse("block_count", fmt::format("is {}, but a draft head has 1 block", block.layers));
  COPPICE_TRY(block.feed_forward, keys_.size("feed_forward_length"));
  COPPICE_TRY(block.context_length, keys_.size("context_length"));
  COPPICE_TRY_STATUS(read_heads(keys_, block));
  COPPICE_TRY_STATUS(read_rope(keys_, block));
  COPPICE_TRY_STATUS(refuse_rope_scaling(keys_));
  COPPICE_TRY(const double eps, keys_.positive("attention.layer_norm_rms_epsilon"));
  block.norm_eps = static_cast<float>(eps);
  for (const int width : {block.hidden, block.feed_forward, block.heads * block.head_dim})
    if (width % kBlockInputs != 0)
      return fail(fmt::format("{}: a width of this head is {}, but all must be multiples of {}", file_.path(),
                              width, kBlockInputs));
  COPPICE_TRY(config_.target_hidden, keys_.size_or("target_hidden_size", block.hidden));
  COPPICE_TRY(config_.norm_before_residual, flag("norm_before_residual"));
  for (const char* name : kUnsupported) {
    COPPICE_TRY(const bool on, flag(name));
    if (on) return keys_.refuse(name, "is true: heads of this variant are not supported");
  }
  config_.substitute = file_.integer_or("coppice.head.substitute", 0) != 0;
  COPPICE_TRY_STATUS(read_layers());
  return check_target();
}

Status HeadLoader::read_layers() {
  const gguf::Value* layers = nullptr;
  const char* name = kLayerKeys[0];
  for (const char* key : kLayerKeys)
    if (layers == nullptr && (layers = file_.find(keys_.key(key))) != nullptr) name = key;
  if (layers == nullptr) return keys_.refuse(name, "is missing: it says which layers' states the head reads");
  if (!layers->is_array || !layers->is_number() || layers->count < 1 || layers->count > kMaxFeatureLayers)
    return keys_.refuse(name, fmt::format("must be an array of 1 to {} layers", kMaxFeatureLayers));
  for (std::uint64_t i = 0; i < layers->count; ++i) {
    const std::int64_t layer = layers->integer(i);
    if (layer < 0 || layer > target_.config().layers)
      return keys_.refuse(name,
                          fmt::format("names layer {}, but the target has 0 to {} ({} is behind its last "
                                      "block)",
                                      layer, target_.config().layers, target_.config().layers));
    config_.feature_layers.push_back(static_cast<int>(layer));
  }
  return {};
}

Status HeadLoader::check_target() const {
  if (config_.target_hidden != target_.config().hidden)
    return fail(
        fmt::format("{}: the head reads states of {} values, but those of {} have {}; it was made for "
                    "another model",
                    file_.path(), config_.target_hidden, target_.path(), target_.config().hidden));
  return {};
}

Result<const gguf::Tensor*> HeadLoader::find(const std::string& name, std::int64_t inputs,
                                             std::int64_t outputs) {
  const gguf::Tensor* tensor = file_.tensor(name);
  if (tensor == nullptr)
    return fail(fmt::format("{}: tensor {} is missing; a draft head has it", file_.path(), name));
  const bool right = outputs == 0
                         ? tensor->values() == inputs && tensor->shape[0] == inputs
                         : tensor->rank == 2 && tensor->shape[0] == inputs && tensor->shape[1] == outputs;
  if (!right)
    return refuse(
        name,
        fmt::format("has the shape {} x {}, but must have {}", tensor->shape[0], tensor->shape[1],
                    outputs == 0 ? fmt::format("{}", inputs) : fmt::format("{} x {}", inputs, outputs)));
  if (!tensor->format->weights)
    return refuse(name, fmt::format("has the type {}, which is no type of weights", tensor->format->name));
  used_.insert(name);
  return tensor;
}

Status HeadLoader::matrix(const std::string& name, int inputs, int outputs, WeightMatrix& out) {
  COPPICE_TRY(const gguf::Tensor* tensor, find(name, inputs, outputs));
  out.name = name;
  out.packed.kind = tensor->format->packed;
  out.packed.outputs = outputs;
  out.packed.inputs = inputs;
  jobs_.push_back({tensor, &out.packed});
  return {};
}

Status HeadLoader::vector(const std::string& name, int size, WeightVector& out) {
  COPPICE_TRY(const gguf::Tensor* tensor, find(name, size, 0));
  const Format& format = *tensor->format;
  if (format.block_values != 1)
    return refuse(name, fmt::format("has the type {}, but must be F32, F16 or BF16", format.name));
  out.size = static_cast<std::size_t>(size);
  COPPICE_TRY(out.memory, Buffer::make(out.size * sizeof(float)));
  float* values = reinterpret_cast<float*>(out.memory.data());
  format.unpack(tensor->data, values, size);
  for (int i = 0; i < size; ++i)
    if (!std::isfinite(values[i]))
      return refuse(name, fmt::format("has a value that is not finite at index {}", i));
  return {};
}

// The first row whose id is not its own and below `vocab`; -1: all are well.
std::int64_t wrong_row(std::span<const std::int64_t> ids, int vocab) {
  std::vector<bool> taken(static_cast<std::size_t>(vocab));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab || taken[static_cast<std::size_t>(ids[i])])
      return static_cast<std::int64_t>(i);
    taken[static_cast<std::size_t>(ids[i])] = true;
  }
  return -1;
}

// d2t: the full id of each row of the output. The converter writes ids; what it wrote before, in files that
// spell hidden_norm, is to be added to the row's number. Where one reading makes no sense it is the other.
Status HeadLoader::plan_map() {
  const int vocab = config_.block.vocab = target_.config().vocab;
  const gguf::Tensor* map = file_.tensor("d2t");
  config_.rows = vocab;
  if (map == nullptr) return {};
  used_.insert("d2t");
  if (map->format->name != "I64" || map->values() != map->shape[0])
    return refuse("d2t", fmt::format("must be one row of I64, but is of type {}", map->format->name));
  if (map->shape[0] < 1 || map->shape[0] > vocab)
    return refuse("d2t", fmt::format("has {} entries, but the target's vocabulary has {} tokens",
                                     map->shape[0], vocab));
  config_.rows = static_cast<int>(map->shape[0]);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(config_.rows)), added(ids.size());
  std::memcpy(ids.data(), map->data, ids.size() * sizeof(std::int64_t));
  for (std::size_t i = 0; i < ids.size(); ++i)
    added[i] = std::clamp<std::int64_t>(ids[i], -vocab, vocab) + static_cast<std::int64_t>(i);
  if (has(kHiddenNorms[1])) std::swap(ids, added);
  if (const std::int64_t row = wrong_row(ids, vocab); row >= 0) {
    if (wrong_row(added, vocab) >= 0)
      return refuse("d2t",
                    fmt::format("sends row {} to token {}, but every row needs one of its own below {}", row,
                                ids[static_cast<std::size_t>(row)], vocab));
    std::swap(ids, added);
  }
  weights_.tokens.assign(ids.begin(), ids.end());
  return {};
}

Status HeadLoader::plan_embedding() {
  const int hidden = config_.block.hidden;
  if (has("token_embd.weight"))
    return matrix("token_embd.weight", hidden, config_.block.vocab, weights_.own_embedding);
  if (hidden == target_.config().hidden) return {};
  return fail(
      fmt::format("{}: tensor token_embd.weight is missing, and the target's has rows of {} values where "
                  "this head needs {}",
                  file_.path(), target_.config().hidden, hidden));
}

Status HeadLoader::plan_output() {
  const int hidden = config_.block.hidden;
  COPPICE_TRY_STATUS(vector("output_norm.weight", hidden, weights_.output_norm));
  if (has("output.weight")) return matrix("output.weight", hidden, config_.rows, weights_.own_output);
  const PackedMatrix& shared = target_.weights().head().packed;
  if (shared.inputs == hidden && shared.outputs == config_.rows && weights_.tokens.empty()) return {};
  return fail(
      fmt::format("{}: tensor output.weight is missing, and the target's head of {} rows of {} values "
                  "cannot stand for {} of {}",
                  file_.path(), shared.outputs, shared.inputs, config_.rows, hidden));
}

Status HeadLoader::plan_block() {
  const ModelConfig& b = config_.block;
  const int q = b.heads * b.head_dim, kv = b.kv_heads * b.head_dim, hidden = b.hidden;
  HeadWeights& w = weights_;
  COPPICE_TRY_STATUS(matrix("fc.weight", config_.features(), hidden, w.fc));
  if (has("feature_mean.weight") || has("feature_scale.weight")) {
    COPPICE_TRY_STATUS(vector("feature_mean.weight", config_.features(), w.feature_mean));
    COPPICE_TRY_STATUS(vector("feature_scale.weight", config_.features(), w.feature_scale));
  }
  COPPICE_TRY_STATUS(vector("blk.0.attn_norm.weight", hidden, w.token_norm));
  COPPICE_TRY_STATUS(vector(kHiddenNorms[has(kHiddenNorms[1]) ? 1 : 0], hidden, w.hidden_norm));
  COPPICE_TRY_STATUS(matrix("blk.0.attn_q.weight", 2 * hidden, q, w.query));
  COPPICE_TRY_STATUS(matrix("blk.0.attn_k.weight", 2 * hidden, kv, w.key));
  COPPICE_TRY_STATUS(matrix("blk.0.attn_v.weight", 2 * hidden, kv, w.value));
  COPPICE_TRY_STATUS(matrix("blk.0.attn_output.weight", q, hidden, w.attention_output));
  COPPICE_TRY_STATUS(vector("blk.0.ffn_norm.weight", hidden, w.feed_forward_norm));
  COPPICE_TRY_STATUS(matrix("blk.0.ffn_gate.weight", hidden, b.feed_forward, w.gate));
  COPPICE_TRY_STATUS(matrix("blk.0.ffn_up.weight", hidden, b.feed_forward, w.up));
  return matrix("blk.0.ffn_down.weight", b.feed_forward, hidden, w.down);
}

Status HeadLoader::plan() {
  COPPICE_TRY_STATUS(plan_map());
  COPPICE_TRY_STATUS(plan_embedding());
  COPPICE_TRY_STATUS(plan_block());
  COPPICE_TRY_STATUS(plan_output());
  if (config_.substitute) used_.insert("substitute.weight");  // for stages; passes have no use for it
  for (const gguf::Tensor& tensor : file_.tensors())
    if (used_.find(tensor.name) == used_.end())
      return refuse(tensor.name,
                    "is not one that a draft head has, so this head is not what its header says");
  return {};
}

Status HeadLoader::admit() const {
  const std::size_t bytes = packed_bytes(jobs_);
  if (bytes <= memory_available()) return {};
  return fail(fmt::format("{}: the weights need {} bytes of memory, but {} are available", file_.path(),
                          bytes, memory_available()));
}

}  // namespace

bool is_head(const gguf::File& file) { return file.text_or("general.architecture", "") == kHeadArchitecture; }

Result<std::shared_ptr<const HeadModel>> HeadModel::load(const gguf::File& file,
                                                         std::shared_ptr<const Model> target,
                                                         ThreadPool& pool) {
  DefaultFloatScope scope;
  if (!is_head(file))
    return fail(fmt::format("{}: general.architecture is \"{}\", but a draft head's is \"{}\"", file.path(),
                            std::string(file.text_or("general.architecture", "")), kHeadArchitecture));
  std::shared_ptr<HeadModel> model(new HeadModel());
  HeadLoader loader(file, *target, model->config_, model->weights_);
  COPPICE_TRY_STATUS(loader.read_shape());
  COPPICE_TRY_STATUS(loader.plan());
  COPPICE_TRY_STATUS(loader.admit());
  COPPICE_TRY(model->weights_.packed, pack_weights(file, loader.jobs(), pool, {}));
  model->target_ = std::move(target);
  model->path_ = file.path();
  return std::shared_ptr<const HeadModel>(std::move(model));
}

const PackedMatrix& HeadModel::embedding() const {
  const WeightMatrix& own = weights_.own_embedding;
  return own.name.empty() ? target_->weights().embedding.packed : own.packed;
}

const WeightMatrix& HeadModel::output() const {
  return weights_.own_output.name.empty() ? target_->weights().head() : weights_.own_output;
}

}  // namespace coppice::core
