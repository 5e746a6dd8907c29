#include "model/architectures.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "model/slim.h"

namespace coppice::core {
namespace {

Status read_llama(const ShapeKeys& keys, ModelConfig& config) {
  COPPICE_TRY(config.slim, read_slim(keys.file, config));
  return {};
}

Result<float> multiplier(const ShapeKeys& keys, const char* name) {
  COPPICE_TRY(const double value, keys.positive_or(name, 1));
  return static_cast<float>(value);
}

// The published model multiplies by all of these but the last, which divides the logits.
Status read_granite(const ShapeKeys& keys, ModelConfig& config) {
  COPPICE_TRY(config.embedding_scale, multiplier(keys, "embedding_scale"));
  COPPICE_TRY(config.residual_scale, multiplier(keys, "residual_scale"));
  if (keys.has("attention.scale")) {
    COPPICE_TRY(config.attention_scale, keys.positive("attention.scale"));
  }
  COPPICE_TRY(const double divisor, keys.positive_or("logit_scale", 1));
  config.logit_scale = static_cast<float>(1 / divisor);
  return {};
}

Result<float> soft_cap_of(const ShapeKeys& keys, const char* name, double otherwise) {
  if (!keys.has(name)) return static_cast<float>(otherwise);
  COPPICE_TRY(const double cap, keys.positive(name));
  return static_cast<float>(cap);
}

// Scores are divided by the square root of a head's size; in the largest model, which has so many layers, by
// that of hidden / heads.
void scale_gemma(int largest, ModelConfig& config) {
  config.embedding_scale = static_cast<float>(std::sqrt(static_cast<double>(config.hidden)));
  if (config.layers != largest) return;
  const int width = config.hidden / config.heads;
  config.attention_scale = 1 / std::sqrt(static_cast<double>(width));
}

Status read_gemma(const ShapeKeys&, ModelConfig& config) {
  scale_gemma(0, config);
  return {};
}

Status read_gemma2(const ShapeKeys& keys, ModelConfig& config) {
  scale_gemma(46, config);
  COPPICE_TRY(config.score_cap, soft_cap_of(keys, "attn_logit_softcapping", 50));
  COPPICE_TRY(config.logit_cap, soft_cap_of(keys, "final_logit_softcapping", 30));
  COPPICE_TRY(config.window, keys.size_or("attention.sliding_window", 4096));
  return {};
}

// RoPE of layers with a window has a base of its own, and only that of the others is scaled.
Status read_gemma3(const ShapeKeys& keys, ModelConfig& config) {
  scale_gemma(62, config);
  COPPICE_TRY(config.score_cap, soft_cap_of(keys, "attn_logit_softcapping", 0));
  COPPICE_TRY(config.logit_cap, soft_cap_of(keys, "final_logit_softcapping", 0));
  COPPICE_TRY(config.window_rope_base, keys.positive_or("rope.freq_base_swa", 10000));
  return {};
}

Status read_gptneox(const ShapeKeys& keys, ModelConfig& config) {
  constexpr const char* kParallel = "use_parallel_residual";
  const gguf::Value* parallel = keys.file.find(keys.key(kParallel));
  if (parallel != nullptr && (parallel->is_array || parallel->type != gguf::Type::boolean))
    return keys.refuse(kParallel, "must be true or false");
  config.parallel = parallel == nullptr || parallel->integer() != 0;
  return {};
}

// Files say of all these models that attention and feed-forward part are parallel, and those that are have no
// ffn_norm, by which they are refused.
Status read_stablelm(const ShapeKeys& keys, ModelConfig&) {
  keys.key("use_parallel_residual");
  return {};
}

// Layers with a window (OLMo 3) have RoPE without scaling.
Status read_olmo2(const ShapeKeys& keys, ModelConfig& config) {
  COPPICE_TRY(config.window_rope_base, keys.positive_or("rope.freq_base_swa", config.rope_base));
  return {};
}

constexpr BlockFlags kGemma = {.activation = Activation::gelu_gated, .pairs = RopePairs::halves};
// Every block's feed-forward part is experts.
constexpr TensorNames experts_alone(TensorNames names) {
  names.gate = names.up = names.down = nullptr;
  names.router = "ffn_gate_inp";
  names.expert_gates = "ffn_gate_exps";
  names.expert_ups = "ffn_up_exps";
  names.expert_downs = "ffn_down_exps";
  return names;
}

constexpr BlockFlags kHalves = {.pairs = RopePairs::halves};
constexpr BlockFlags kLlama = {
    .bias_qkv = Bias::optional, .bias_output = Bias::optional, .bias_feed_forward = Bias::optional};

constexpr Architecture kArchitectures[] = {
    {.name = "llama",  // and Mistral, with a window; Mixtral, with experts
     .flags = kLlama,
     .window_period = 1,
     .read = read_llama,
     .tensors = {.router = "ffn_gate_inp",
                 .expert_gates = "ffn_gate_exps",
                 .expert_ups = "ffn_up_exps",
                 .expert_downs = "ffn_down_exps"}},
    {.name = "gpt2",
     .flags = {.norm = Norm::layer,
               .activation = Activation::gelu,
               .positions = Positions::learned,
               .bias_qkv = Bias::required,
               .bias_output = Bias::required,
               .bias_feed_forward = Bias::required,
               .fused_qkv = true},
     .tensors = {.position_embedding = "position_embd",
                 .query = nullptr,
                 .key = nullptr,
                 .value = nullptr,
                 .query_key_value = "attn_qkv",
                 .gate = nullptr}},
    {.name = "qwen2", .flags = {.pairs = RopePairs::halves, .bias_qkv = Bias::required}},
    {.name = "qwen3", .flags = kHalves, .tensors = {.query_norm = "attn_q_norm", .key_norm = "attn_k_norm"}},
    {.name = "qwen3moe",
     .flags = kHalves,
     .tensors = experts_alone({.query_norm = "attn_q_norm", .key_norm = "attn_k_norm"})},
    {.name = "gemma2",
     .flags = kGemma,
     .window_period = 2,
     .read = read_gemma2,
     .tensors = {.attention_post_norm = "post_attention_norm", .feed_forward_post_norm = "post_ffw_norm"}},
    {.name = "gemma3",
     .flags = kGemma,
     .window_period = 6,
     .read = read_gemma3,
     .tensors = {.query_norm = "attn_q_norm",
                 .key_norm = "attn_k_norm",
                 .attention_post_norm = "post_attention_norm",
                 .feed_forward_post_norm = "post_ffw_norm"}},
    {.name = "phi3",
     .flags = {.pairs = RopePairs::halves, .fused_qkv = true, .fused_gate_up = true},
     .window_period = 1,
     .tensors = {.query = nullptr,
                 .key = nullptr,
                 .value = nullptr,
                 .query_key_value = "attn_qkv",
                 .gate = nullptr}},
    {.name = "gptneox",
     .flags = {.norm = Norm::layer,
               .activation = Activation::gelu_exact,
               .pairs = RopePairs::halves,
               .bias_qkv = Bias::required,
               .bias_output = Bias::required,
               .bias_feed_forward = Bias::required,
               .fused_qkv = true},
     .read = read_gptneox,
     .tensors = {.query = nullptr,
                 .key = nullptr,
                 .value = nullptr,
                 .query_key_value = "attn_qkv",
                 .gate = nullptr}},
    {.name = "starcoder2",
     .flags = {.norm = Norm::layer,
               .activation = Activation::gelu,
               .pairs = RopePairs::halves,
               .bias_qkv = Bias::optional,
               .bias_output = Bias::optional,
               .bias_feed_forward = Bias::optional},
     .window_period = 1,
     .tensors = {.gate = nullptr}},
    {.name = "falcon",
     .flags = {.norm = Norm::layer,
               .activation = Activation::gelu_exact,
               .pairs = RopePairs::halves,
               .fused_qkv = true,
               .parallel = true},
     .tensors = {.second_attention_norm = "attn_norm_2",
                 .query = nullptr,
                 .key = nullptr,
                 .value = nullptr,
                 .query_key_value = "attn_qkv",
                 .feed_forward_norm = nullptr,
                 .gate = nullptr}},
    {.name = "olmo2",
     .flags = {.pairs = RopePairs::halves, .whole_query_norm = true},
     .window_period = 4,
     .read = read_olmo2,
     .tensors = {.attention_norm = nullptr,
                 .query_norm = "attn_q_norm",
                 .key_norm = "attn_k_norm",
                 .attention_post_norm = "post_attention_norm",
                 .feed_forward_norm = nullptr,
                 .feed_forward_post_norm = "post_ffw_norm"}},
    {.name = "granite", .flags = kLlama, .read = read_granite},
    {.name = "gemma", .flags = kGemma, .read = read_gemma},
    {.name = "internlm2"},
    {.name = "stablelm",
     .flags = {.norm = Norm::layer, .pairs = RopePairs::halves, .bias_qkv = Bias::optional},
     .read = read_stablelm},
    {.name = "smollm3", .flags = kLlama, .unturned_period = 4},
    {.name = "granitemoe", .flags = kLlama, .read = read_granite, .tensors = experts_alone({})},
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

}  // namespace coppice::core
