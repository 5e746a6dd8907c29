#include "model/random_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "gguf/writer.h"
#include "model/head_model.h"
#include "model/random_numbers.h"
#include "quant/formats.h"

namespace coppice::core {
namespace {

class Maker {
 public:
  Maker(const ModelConfig& target, const RandomHeadOptions& options)
      : target_(target), options_(options), random_(options.seed + 0x48656164) {
    const auto or_targets = [](int& value, int targets) { value = value == 0 ? targets : value; };
    or_targets(options_.hidden, target.hidden);
    or_targets(options_.heads, target.heads);
    or_targets(options_.kv_heads, target.kv_heads);
    or_targets(options_.head_dim, target.head_dim);
    or_targets(options_.feed_forward, target.feed_forward);
    if (options_.feature_layers.empty())
      options_.feature_layers = {target.layers / 3, 2 * target.layers / 3, target.layers};
  }

  Status check() const;
  const gguf::Writer& make();

 private:
  void add_keys();
  void add_map();
  void matrix(const std::string& name, int inputs, int outputs, float spread);
  void vector(const std::string& name, int size, float mean, float spread);

  const ModelConfig& target_;
  RandomHeadOptions options_;
  Random random_;
  gguf::Writer writer_;
  std::size_t matrices_ = 0;
};

Status Maker::check() const {
  const RandomHeadOptions& o = options_;
  for (const int width : {o.hidden, o.feed_forward, o.heads * o.head_dim})
    if (width < kBlockInputs || width % kBlockInputs != 0)
      return fail(fmt::format("a width of {}: it must be a multiple of {}", width, kBlockInputs));
  if (o.kv_heads < 1 || o.heads % o.kv_heads != 0)
    return fail(fmt::format("kv_heads = {}: it must be a divisor of the {} heads", o.kv_heads, o.heads));
  if (o.rows < 0 || o.rows > target_.vocab)
    return fail(
        fmt::format("rows = {}: it must be from 1 to the {} tokens of the target", o.rows, target_.vocab));
  if (o.formats.empty()) return fail("formats = nothing: name at least one");
  for (const std::string& name : o.formats) {
    const int widths[] = {o.hidden, o.feed_forward, o.heads * o.head_dim};
    const auto format = format_to_write(name, widths);
    if (!format) return fail("formats = " + format.error().message);
  }
  return {};
}

void Maker::matrix(const std::string& name, int inputs, int outputs, float spread) {
  const Format& format = *find_format(options_.formats[matrices_++ % options_.formats.size()]);
  const float scale = spread / std::sqrt(static_cast<float>(inputs));
  std::vector<float> values(static_cast<std::size_t>(inputs) * static_cast<std::size_t>(outputs));
  for (float& value : values) value = scale * random_.bell();
  writer_.add_values(name, format, {inputs, outputs}, values);
}

void Maker::vector(const std::string& name, int size, float mean, float spread) {
  std::vector<float> values(static_cast<std::size_t>(size));
  for (float& value : values) value = mean + spread * random_.bell();
  writer_.add_values(name, *find_format("F32"), {size}, values);
}

void Maker::add_keys() {
  const RandomHeadOptions& o = options_;
  const std::string prefix = std::string(kHeadArchitecture) + ".";
  const auto u32 = [&](const char* key, int value) {
    writer_.add_u32(prefix + key, static_cast<std::uint32_t>(value));
  };
  writer_.add_text("general.architecture", std::string(kHeadArchitecture));
  writer_.add_text("general.name", fmt::format("random head seed {}", o.seed));
  u32("context_length", target_.context_length);
  u32("embedding_length", o.hidden);
  u32("block_count", 1);
  u32("feed_forward_length", o.feed_forward);
  u32("attention.head_count", o.heads);
  u32("attention.head_count_kv", o.kv_heads);
  u32("attention.key_length", o.head_dim);
  u32("attention.value_length", o.head_dim);
  writer_.add_f32(prefix + "attention.layer_norm_rms_epsilon", 1e-5f);
  writer_.add_f32(prefix + "rope.freq_base", 10000.0f);
  u32("rope.dimension_count", o.head_dim);
  u32("vocab_size", target_.vocab);
  u32("target_hidden_size", target_.hidden);
  writer_.add_i32s(prefix + (o.old_names ? "extract_layers" : "target_layers"),
                   {o.feature_layers.begin(), o.feature_layers.end()});
  if (o.norm_before_residual) writer_.add_bool(prefix + "norm_before_residual", true);
}

// Ids spread over the vocabulary, ascending: every row's own, with gaps that differ.
void Maker::add_map() {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(options_.rows));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int64_t>(i) * target_.vocab / options_.rows;
    if (options_.old_names) ids[i] -= static_cast<std::int64_t>(i);
  }
  std::vector<std::byte> bytes(ids.size() * sizeof(std::int64_t));
  std::memcpy(bytes.data(), ids.data(), bytes.size());
  writer_.add_tensor("d2t", *find_format("I64"), {options_.rows}, std::move(bytes));
}

const gguf::Writer& Maker::make() {
  const RandomHeadOptions& o = options_;
  const int q = o.heads * o.head_dim, kv = o.kv_heads * o.head_dim;
  const int features = static_cast<int>(o.feature_layers.size()) * target_.hidden;
  add_keys();
  matrix("fc.weight", features, o.hidden, 1.0f);
  if (o.standardised) {
    vector("feature_mean.weight", features, 0.0f, 0.5f);
    vector("feature_scale.weight", features, 1.0f, 0.2f);
  }
  if (o.own_embedding)
    matrix("token_embd.weight", o.hidden, target_.vocab, std::sqrt(static_cast<float>(o.hidden)));
  vector("blk.0.attn_norm.weight", o.hidden, 1.0f, 0.1f);
  vector(o.old_names ? "blk.0.hidden_norm.weight" : "blk.0.attn_norm_2.weight", o.hidden, 1.0f, 0.1f);
  matrix("blk.0.attn_q.weight", 2 * o.hidden, q, 1.5f);
  matrix("blk.0.attn_k.weight", 2 * o.hidden, kv, 1.5f);
  matrix("blk.0.attn_v.weight", 2 * o.hidden, kv, 1.5f);
  matrix("blk.0.attn_output.weight", q, o.hidden, 1.5f);
  vector("blk.0.ffn_norm.weight", o.hidden, 1.0f, 0.1f);
  matrix("blk.0.ffn_gate.weight", o.hidden, o.feed_forward, 1.5f);
  matrix("blk.0.ffn_up.weight", o.hidden, o.feed_forward, 1.5f);
  matrix("blk.0.ffn_down.weight", o.feed_forward, o.hidden, 1.5f);
  vector("output_norm.weight", o.hidden, 1.0f, 0.1f);
  const int rows = o.rows > 0 ? o.rows : target_.vocab;
  if (o.own_output) matrix("output.weight", o.hidden, rows, 2.5f);
  if (o.rows > 0) add_map();
  return writer_;
}

}  // namespace

Result<std::vector<std::byte>> random_head(const ModelConfig& target, const RandomHeadOptions& options) {
  Maker maker(target, options);
  COPPICE_TRY_STATUS(maker.check());
  return maker.make().to_bytes();
}

Status write_random_head(const ModelConfig& target, const RandomHeadOptions& options,
                         const std::string& path) {
  Maker maker(target, options);
  COPPICE_TRY_STATUS(maker.check());
  return maker.make().write(path);
}

}  // namespace coppice::core
