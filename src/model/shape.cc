// What keys every architecture has, and what they must say.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "kernels/kernels.h"
#include "model/architectures.h"
#include "model/slim.h"

namespace coppice::core {
namespace {

// Keys that change nothing in what a model computes, or that say what is always so here.
constexpr std::string_view kKnown[] = {"vocab_size", "tensor_data_layout", "rope.scaling.finetuned",
                                       "attention.causal"};

constexpr int kMostExperts = 1024;
constexpr int kMostUsedExperts = 64;

// The vocabulary is as large as the embedding has rows, or as the list of every token's row where tokens
// share them; the tokenizer must agree.
Result<int> read_vocab(const gguf::File& file, const Architecture& row) {
  const std::string name = std::string(row.tensors.token_embedding) + ".weight";
  const gguf::Tensor* embedding = file.tensor(name);
  if (embedding == nullptr) return fail(fmt::format("{}: tensor {} is missing", file.path(), name));
  if (embedding->rank != 2 || embedding->shape[1] < 1 || embedding->shape[1] > kMaxSize)
    return fail(fmt::format("{}: tensor {} must have two dimensions, the second from 1 to {}", file.path(),
                            name, kMaxSize));
  const gguf::Value* rows = file.find(kEmbeddingRowsKey);
  if (rows != nullptr && (rows->count < 1 || rows->count > static_cast<std::uint64_t>(kMaxSize)))
    return fail(fmt::format("{}: {} must list the row of every token, from 1 to {} of them", file.path(),
                            kEmbeddingRowsKey, kMaxSize));
  const std::int64_t vocab = rows != nullptr ? static_cast<std::int64_t>(rows->count) : embedding->shape[1];
  const gguf::Value* tokens = file.find("tokenizer.ggml.tokens");
  if (tokens != nullptr && tokens->count != static_cast<std::uint64_t>(vocab))
    return fail(fmt::format("{}: tokenizer.ggml.tokens has {} tokens, but {} has {} rows; they must be equal",
                            file.path(), tokens->count, rows != nullptr ? kEmbeddingRowsKey : name, vocab));
  return static_cast<int>(vocab);
}

Status read_norm(const ShapeKeys& keys, ModelConfig& config) {
  const char* name =
      config.norm == Norm::rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon";
  COPPICE_TRY(const double eps, keys.positive(name));
  config.norm_eps = static_cast<float>(eps);
  return {};
}

// Widths are multiples of 32, the group of an activation's scale.
Status check_widths(const ShapeKeys& keys, const ModelConfig& config) {
  const auto multiple = [&](std::string_view what, int value) -> Status {
    if (value % kBlockInputs == 0) return {};
    return fail(fmt::format("{}: the {} is {}, but must be a multiple of {}", keys.file.path(), what, value,
                            kBlockInputs));
  };
  COPPICE_TRY_STATUS(multiple("embedding length", config.hidden));
  COPPICE_TRY_STATUS(multiple("feed-forward length", config.feed_forward));
  return multiple("width of all heads together", config.heads * config.head_dim);
}

Status read_experts(const ShapeKeys& keys, const Architecture& row, ModelConfig& config) {
  const std::int64_t experts = keys.file.integer_or(keys.key("expert_count"), 0);
  if (experts == 0) {
    if (row.tensors.gate == nullptr && row.tensors.router != nullptr)
      return keys.refuse("expert_count", "is missing or 0, but this architecture has experts");
    COPPICE_TRY(config.feed_forward, keys.size("feed_forward_length"));
    return {};
  }
  if (row.tensors.router == nullptr)
    return keys.refuse("expert_count",
                       fmt::format("is not 0, but only dense layers are known of {}", row.name));
  COPPICE_TRY(config.experts, keys.size("expert_count"));
  if (config.experts < 2 || config.experts > kMostExperts)
    return keys.refuse("expert_count", fmt::format("is {}, but must be from 2 to {}", experts, kMostExperts));
  COPPICE_TRY(config.experts_used, keys.size("expert_used_count"));
  if (config.experts_used > std::min(config.experts, kMostUsedExperts))
    return keys.refuse("expert_used_count",
                       fmt::format("is {}, but must be from 1 to {}", config.experts_used,
                                   std::min(config.experts, kMostUsedExperts)));
  // With experts the plain length is theirs, or nobody's.
  COPPICE_TRY(const int length, keys.size_or("feed_forward_length", kBlockInputs));
  COPPICE_TRY(config.feed_forward, keys.size_or("expert_feed_forward_length", length));
  if (keys.file.integer_or(keys.key("expert_gating_func"), 1) != 1)
    return keys.refuse("expert_gating_func", "is not 1: only a softmax chooses experts here");
  if (keys.file.integer_or(keys.key("expert_shared_count"), 0) != 0)
    return keys.refuse("expert_shared_count", "is not 0: shared experts are not supported");
  if (keys.file.number_or(keys.key("expert_weights_scale"), 1) != 1)
    return keys.refuse("expert_weights_scale", "is not 1, which is not supported");
  const gguf::Value* normed = keys.file.find(keys.key("expert_weights_norm"));
  if (normed != nullptr && normed->is_number() && normed->integer() == 0)
    return keys.refuse("expert_weights_norm", "is false: only weights that add up to 1 are supported");
  return {};
}

Status read_windows(const ShapeKeys& keys, const Architecture& row, ModelConfig& config) {
  if (config.window == 0 && keys.file.integer_or(keys.key("attention.sliding_window"), 0) != 0) {
    COPPICE_TRY(config.window, keys.size("attention.sliding_window"));
  }
  if (config.window == 0) return {};
  if (row.window_period == 0)
    return keys.refuse("attention.sliding_window",
                       fmt::format("is not 0, but only full attention is known of {}", row.name));
  return read_windowed(keys, row.window_period, config);
}

// Block 0 tells whether a file has the optional biases.
void find_biases(const gguf::File& file, const Architecture& row, ModelConfig& config) {
  const auto has = [&](Bias bias, const char* name) {
    return bias == Bias::required ||
           (bias == Bias::optional && file.tensor(fmt::format("blk.0.{}.bias", name)) != nullptr);
  };
  const TensorNames& names = row.tensors;
  config.qkv_biases = has(config.bias_qkv, config.fused_qkv ? names.query_key_value : names.query);
  config.output_bias = has(config.bias_output, names.attention_output);
  if (config.experts == 0) config.feed_forward_biases = has(config.bias_feed_forward, names.up);
}

// A key nobody reads could mean that the model computes something else.
Status refuse_unknown_keys(const ShapeKeys& keys) {
  for (const std::string_view known : kKnown) keys.key(known);
  const std::string prefix = keys.prefix + ".";
  for (const gguf::Key& key : keys.file.keys()) {
    if (!key.name.starts_with(prefix) || keys.asked.contains(key.name)) continue;
    std::string names;
    for (const std::string& asked : keys.asked)
      names += (names.empty() ? "" : ", ") + asked.substr(prefix.size());
    return fail(
        fmt::format("{}: {} is not a key that is known of {}, so this model may compute something else; "
                    "there are: {}",
                    keys.file.path(), std::string(key.name), keys.prefix, names));
  }
  return {};
}

}  // namespace

Status read_heads(const ShapeKeys& keys, ModelConfig& config) {
  COPPICE_TRY(config.heads, keys.size("attention.head_count"));
  COPPICE_TRY(config.kv_heads, keys.size_or("attention.head_count_kv", config.heads));
  if (config.heads % config.kv_heads != 0)
    return keys.refuse("attention.head_count_kv",
                       fmt::format("is {}, but must divide the {} heads", config.kv_heads, config.heads));
  if (!keys.has("attention.key_length") && config.hidden % config.heads != 0)
    return keys.refuse("attention.head_count", fmt::format("is {}, but must divide the embedding length {}",
                                                           config.heads, config.hidden));
  COPPICE_TRY(config.head_dim, keys.size_or("attention.key_length", config.hidden / config.heads));
  COPPICE_TRY(const int value_length, keys.size_or("attention.value_length", config.head_dim));
  if (value_length != config.head_dim)
    return keys.refuse("attention.value_length",
                       fmt::format("is {}, but only heads whose keys and values have one size ({}) are "
                                   "supported",
                                   value_length, config.head_dim));
  if (config.head_dim % 2 != 0)
    return fail(fmt::format("{}: heads have {} dimensions, but must have an even number", keys.file.path(),
                            config.head_dim));
  if (static_cast<std::int64_t>(config.heads) * config.head_dim > kMaxSize)
    return fail(fmt::format("{}: {} heads of {} dimensions are more than {} together", keys.file.path(),
                            config.heads, config.head_dim, kMaxSize));
  return {};
}

Status read_rope(const ShapeKeys& keys, ModelConfig& config) {
  config.positions = Positions::rope;
  COPPICE_TRY(config.rope_base, keys.positive_or("rope.freq_base", config.rope_base));
  if (config.rope_base < 1)
    return keys.refuse("rope.freq_base", fmt::format("is {}, but must be at least 1", config.rope_base));
  COPPICE_TRY(config.rope_dims, keys.size_or("rope.dimension_count", config.head_dim));
  if (config.rope_dims > config.head_dim || config.rope_dims % 2 != 0)
    return keys.refuse("rope.dimension_count", fmt::format("is {}, but must be even and at most {}",
                                                           config.rope_dims, config.head_dim));
  return {};
}

namespace {

Result<RopeScaling::Kind> scaling_kind(const ShapeKeys& keys, double factor) {
  using Kind = RopeScaling::Kind;
  const bool any = factor != 1;
  if (!keys.has("rope.scaling.type")) return any ? Kind::linear : Kind::none;
  const std::string type(keys.file.text_or(keys.key("rope.scaling.type"), ""));
  if (type == "none" && any)
    return keys.refuse("rope.scaling.factor", "is not 1, but rope.scaling.type is \"none\"");
  if (type == "none") return Kind::none;
  if (type == "linear") return any ? Kind::linear : Kind::none;
  if (type == "yarn") return Kind::yarn;
  if (type == "longrope") return Kind::longrope;
  return keys.refuse("rope.scaling.type",
                     fmt::format("is \"{}\", but must be none, linear, yarn or longrope", type));
}

}  // namespace

Status read_rope_scaling(const ShapeKeys& keys, ModelConfig& config) {
  using Kind = RopeScaling::Kind;
  RopeScaling& scaling = config.rope_scaling;
  COPPICE_TRY(const double old_factor, keys.positive_or("rope.scale_linear", 1));  // what files had first
  COPPICE_TRY(scaling.factor, keys.positive_or("rope.scaling.factor", old_factor));
  COPPICE_TRY(scaling.kind, scaling_kind(keys, scaling.factor));
  COPPICE_TRY(scaling.original_context,
              keys.size_or("rope.scaling.original_context_length", config.context_length));
  const gguf::File& file = keys.file;
  config.rope_factors = file.tensor(kRopeFactors) != nullptr;
  const bool any_long = file.tensor(kRopeFactorsLong) != nullptr || file.tensor(kRopeFactorsShort) != nullptr;
  if (any_long && scaling.kind == Kind::none) scaling.kind = Kind::longrope;
  if (any_long != (scaling.kind == Kind::longrope))
    return keys.refuse(
        "rope.scaling.type",
        fmt::format("and the tensors contradict each other: a file has {} and {} where, and only "
                    "where, the type is \"longrope\"",
                    kRopeFactorsLong, kRopeFactorsShort));
  if (any_long && file.tensor(kRopeFactors) != nullptr)
    return fail(fmt::format("{}: tensors {} and {} contradict each other", file.path(), kRopeFactors,
                            kRopeFactorsLong));
  COPPICE_TRY(const double given, keys.positive_or("rope.scaling.attn_factor", 1));
  COPPICE_TRY(const double yarn_given, keys.positive_or("rope.scaling.yarn_attn_factor", given));
  COPPICE_TRY(scaling.beta_fast, keys.positive_or("rope.scaling.yarn_beta_fast", scaling.beta_fast));
  COPPICE_TRY(scaling.beta_slow, keys.positive_or("rope.scaling.yarn_beta_slow", scaling.beta_slow));
  if (keys.file.number_or(keys.key("rope.scaling.yarn_ext_factor"), 1) != 1)
    return keys.refuse("rope.scaling.yarn_ext_factor", "is not 1, which is not supported");
  if (scaling.kind == Kind::yarn) {
    if (scaling.factor < 1)
      return keys.refuse("rope.scaling.factor", fmt::format("is {}, but must be at least 1", scaling.factor));
    scaling.magnitude = yarn_given * (1 + 0.1 * log_exact(scaling.factor));
  }
  if (scaling.kind == Kind::longrope) scaling.magnitude = given;
  return {};
}

Status refuse_rope_scaling(const ShapeKeys& keys) {
  const std::string_view scaling = keys.file.text_or(keys.key("rope.scaling.type"), "none");
  if (scaling != "none")
    return keys.refuse("rope.scaling.type",
                       fmt::format("is \"{}\": only \"none\" is supported", std::string(scaling)));
  for (const char* name : {"rope.scale_linear", "rope.scaling.factor"})
    if (keys.file.number_or(keys.key(name), 1.0) != 1.0)
      return keys.refuse(name, "is not 1: scaled positions are not supported");
  for (const char* name : {kRopeFactors, kRopeFactorsLong, kRopeFactorsShort})
    if (keys.file.tensor(name) != nullptr)
      return fail(fmt::format("{}: tensor {}: frequency factors for longer contexts are not supported",
                              keys.file.path(), name));
  return {};
}

Status read_windowed(const ShapeKeys& keys, int period, ModelConfig& config) {
  constexpr const char* kPattern = "attention.sliding_window_pattern";
  const auto layers = static_cast<std::size_t>(config.layers);
  config.windowed.assign(layers, 0);
  const gguf::Value* pattern = keys.file.find(keys.key(kPattern));
  if (pattern != nullptr && pattern->is_array) {
    if (pattern->type != gguf::Type::boolean || pattern->count != layers)
      return keys.refuse(kPattern, fmt::format("must be a number, or {} times true or false", layers));
    for (std::size_t i = 0; i < layers; ++i) config.windowed[i] = pattern->integer(i) != 0;
    return {};
  }
  COPPICE_TRY(period, keys.size_or(kPattern, period));
  for (std::size_t i = 0; i < layers; ++i)
    config.windowed[i] =
        period == 1 || i % static_cast<std::size_t>(period) + 1 < static_cast<std::size_t>(period);
  return {};
}

Result<ModelConfig> read_shape(const gguf::File& file, const Architecture& row) {
  const ShapeKeys keys{file, std::string(row.name)};
  ModelConfig config;
  static_cast<BlockFlags&>(config) = row.flags;
  config.architecture = std::string(row.name);
  config.name = std::string(file.text_or("general.name", ""));
  COPPICE_TRY(config.hidden, keys.size("embedding_length"));
  COPPICE_TRY(config.layers, keys.size("block_count"));
  COPPICE_TRY_STATUS(read_experts(keys, row, config));
  COPPICE_TRY(config.context_length, keys.size("context_length"));
  COPPICE_TRY_STATUS(read_heads(keys, config));
  COPPICE_TRY_STATUS(check_widths(keys, config));
  if (row.flags.positions == Positions::rope) {
    COPPICE_TRY_STATUS(read_rope(keys, config));
    COPPICE_TRY_STATUS(read_rope_scaling(keys, config));
  }
  COPPICE_TRY_STATUS(read_norm(keys, config));
  if (static_cast<std::size_t>(config.layers) > file.tensors().size())  // before any list of so many layers
    return fail(fmt::format("{}: {}.block_count is {}, but the file has only {} tensors", file.path(),
                            row.name, config.layers, file.tensors().size()));
  for (int i = 0; row.unturned_period > 0 && i < config.layers; ++i)
    config.unturned.push_back((i + 1) % row.unturned_period == 0);
  if (row.read != nullptr) COPPICE_TRY_STATUS(row.read(keys, config));
  COPPICE_TRY_STATUS(read_windows(keys, row, config));
  COPPICE_TRY(config.vocab, read_vocab(file, row));
  config.tied_head = file.tensor(std::string(row.tensors.head) + ".weight") == nullptr;
  find_biases(file, row, config);
  COPPICE_TRY_STATUS(refuse_unknown_keys(keys));
  return config;
}

Result<ModelConfig> read_config(const gguf::File& file) {
  COPPICE_TRY(const Architecture* row, find_architecture(file));
  return read_shape(file, *row);
}

bool plain_llama(const ModelConfig& c) {
  const bool blocks = c.norm == Norm::rms && c.activation == Activation::silu_gated &&
                      c.positions == Positions::rope && c.pairs == RopePairs::interleaved && !c.fused_qkv &&
                      !c.qkv_biases && !c.output_bias && !c.feed_forward_biases && c.experts == 0;
  const bool scales = c.embedding_scale == 1 && c.residual_scale == 1 && c.logit_scale == 1 &&
                      c.attention_scale == 0 && c.score_cap == 0 && c.logit_cap == 0;
  return c.architecture == "llama" && blocks && scales && c.windowed.empty() && c.unturned.empty() &&
         c.rope_scaling.kind == RopeScaling::Kind::none && !c.rope_factors;
}

}  // namespace coppice::core
