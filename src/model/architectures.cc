#include "model/architectures.h"

#include <fmt/format.h>

#include "base/check.h"
#include "model/shape_keys.h"
#include "model/slim.h"

namespace coppice::core {
namespace {

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

namespace {

// What every architecture states. Widths are multiples of 32, the group of an activation's scale.
Status read_common(const ShapeKeys& keys, const Architecture& row, ModelConfig& config) {
  config.architecture = std::string(row.name);
  config.name = std::string(keys.file.text_or("general.name", ""));
  COPPICE_TRY(config.hidden, keys.size("embedding_length"));
  COPPICE_TRY(config.layers, keys.size("block_count"));
  COPPICE_TRY(config.feed_forward, keys.size("feed_forward_length"));
  COPPICE_TRY(config.context_length, keys.size("context_length"));
  COPPICE_TRY_STATUS(read_heads(keys, config));
  const auto multiple = [&](std::string_view what, int value) -> Status {
    if (value % kBlockInputs == 0) return {};
    return fail(fmt::format("{}: the {} is {}, but must be a multiple of {}", keys.file.path(), what, value,
                            kBlockInputs));
  };
  COPPICE_TRY_STATUS(multiple("embedding length", config.hidden));
  COPPICE_TRY_STATUS(multiple("feed-forward length", config.feed_forward));
  COPPICE_TRY_STATUS(multiple("width of all heads together", config.heads * config.head_dim));
  if (keys.file.integer_or(keys.key("expert_count"), 0) > 0)
    return keys.refuse("expert_count",
                       "is not 0: mixtures of experts are not supported, only dense feed-forward layers");
  if (keys.file.integer_or(keys.key("attention.sliding_window"), 0) > 0)
    return keys.refuse("attention.sliding_window", "is not 0: only full attention is supported");
  COPPICE_TRY(config.vocab, read_vocab(keys.file, row));
  config.tied_head = keys.file.tensor(std::string(row.tensors.head) + ".weight") == nullptr;
  return {};
}

}  // namespace

Status read_rope(const ShapeKeys& keys, ModelConfig& config) {
  config.positions = Positions::rope;
  if (keys.has("rope.freq_base")) {
    COPPICE_TRY(config.rope_base, keys.positive("rope.freq_base"));
  }
  if (config.rope_base < 1)
    return keys.refuse("rope.freq_base", fmt::format("is {}, but must be at least 1", config.rope_base));
  COPPICE_TRY(config.rope_dims, keys.size_or("rope.dimension_count", config.head_dim));
  if (config.rope_dims > config.head_dim || config.rope_dims % 2 != 0)
    return keys.refuse("rope.dimension_count", fmt::format("is {}, but must be even and at most {}",
                                                           config.rope_dims, config.head_dim));
  const std::string_view scaling = keys.file.text_or(keys.key("rope.scaling.type"), "none");
  if (scaling != "none")
    return keys.refuse("rope.scaling.type",
                       fmt::format("is \"{}\": only \"none\" is supported", std::string(scaling)));
  if (keys.file.number_or(keys.key("rope.scale_linear"), 1.0) != 1.0)
    return keys.refuse("rope.scale_linear", "is not 1: scaled positions are not supported");
  if (keys.file.tensor("rope_freqs.weight") != nullptr)
    return fail(
        fmt::format("{}: tensor rope_freqs.weight: frequency factors for longer contexts are not "
                    "supported",
                    keys.file.path()));
  return {};
}

namespace {

Result<ModelConfig> read_llama(const gguf::File& file, const Architecture& row) {
  const ShapeKeys keys{file, std::string(row.name)};
  ModelConfig config;
  COPPICE_TRY_STATUS(read_common(keys, row, config));
  COPPICE_TRY_STATUS(read_rope(keys, config));
  COPPICE_TRY(const double eps, keys.positive("attention.layer_norm_rms_epsilon"));
  config.norm_eps = static_cast<float>(eps);
  config.norm = Norm::rms;
  config.activation = Activation::silu_gated;
  COPPICE_TRY(config.slim, read_slim(file, config));
  return config;
}

Result<ModelConfig> read_gpt2(const gguf::File& file, const Architecture& row) {
  const ShapeKeys keys{file, std::string(row.name)};
  ModelConfig config;
  COPPICE_TRY_STATUS(read_common(keys, row, config));
  COPPICE_TRY(const double eps, keys.positive("attention.layer_norm_epsilon"));
  config.norm_eps = static_cast<float>(eps);
  config.norm = Norm::layer;
  config.activation = Activation::gelu;
  config.positions = Positions::learned;
  config.fused_qkv = true;
  config.biases = true;
  return config;
}

constexpr Architecture kArchitectures[] = {
    {.name = "llama",
     .read = read_llama,
     .tensors = {.token_embedding = "token_embd",
                 .position_embedding = nullptr,
                 .attention_norm = "attn_norm",
                 .query = "attn_q",
                 .key = "attn_k",
                 .value = "attn_v",
                 .query_key_value = nullptr,
                 .attention_output = "attn_output",
                 .feed_forward_norm = "ffn_norm",
                 .gate = "ffn_gate",
                 .up = "ffn_up",
                 .down = "ffn_down",
                 .output_norm = "output_norm",
                 .head = "output"}},
    {.name = "gpt2",
     .read = read_gpt2,
     .tensors = {.token_embedding = "token_embd",
                 .position_embedding = "position_embd",
                 .attention_norm = "attn_norm",
                 .query = nullptr,
                 .key = nullptr,
                 .value = nullptr,
                 .query_key_value = "attn_qkv",
                 .attention_output = "attn_output",
                 .feed_forward_norm = "ffn_norm",
                 .gate = nullptr,
                 .up = "ffn_up",
                 .down = "ffn_down",
                 .output_norm = "output_norm",
                 .head = "output"}},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

Result<const Architecture*> find_architecture(const gguf::File& file) {
  COPPICE_TRY(const std::string_view name, file.text("general.architecture"));
  std::string names;
  for (const Architecture& row : kArchitectures) {
    if (row.name == name) return &row;
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  if (name == "eagle3")  // model/head_model.h
    return fail(
        fmt::format("{}: general.architecture is \"eagle3\": this is a draft head, which guesses for "
                    "the model it was made for as drafter head({})",
                    file.path(), file.path()));
  return fail(fmt::format("{}: general.architecture is \"{}\", which is not supported; there are: {}",
                          file.path(), std::string(name), names));
}

Result<ModelConfig> read_config(const gguf::File& file) {
  COPPICE_TRY(const Architecture* row, find_architecture(file));
  return row->read(file, *row);
}

}  // namespace coppice::core
