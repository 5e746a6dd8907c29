#include "model/slim.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>

#include "base/check.h"

namespace coppice::core {
namespace {

constexpr std::uint64_t kMostWidths = 16;
constexpr std::string_view kPrefix = "coppice.slim.";

struct SlimKeys {
  const gguf::File& file;

  static std::string key(std::string_view name) { return std::string(kPrefix) + std::string(name); }
  tl::unexpected<Error> refuse(std::string_view name, std::string_view why) const {
    return fail(fmt::format("{}: {} {}", file.path(), key(name), why));
  }
  Result<const gguf::Value*> array(std::string_view name) const {
    const gguf::Value* value = file.find(key(name));
    if (value == nullptr)
      return refuse(name, "is missing; a slimmable model has hidden, feed_forward and factors");
    if (!value->is_array || value->count < 1 || value->count > kMostWidths)
      return refuse(name, fmt::format("must be an array of 1 to {} numbers", kMostWidths));
    return value;
  }
  Result<std::vector<int>> widths(std::string_view name) const {
    COPPICE_TRY(const gguf::Value* value, array(name));
    if (value->type != gguf::Type::u32 && value->type != gguf::Type::i32)
      return refuse(name, "must be an array of u32 or i32");
    std::vector<int> out;
    for (std::uint64_t i = 0; i < value->count; ++i)
      out.push_back(static_cast<int>(std::min<std::int64_t>(value->integer(i), INT_MAX)));
    return out;
  }
  Result<std::vector<float>> factors() const {
    COPPICE_TRY(const gguf::Value* value, array("factors"));
    if (value->type != gguf::Type::f32) return refuse("factors", "must be an array of f32");
    std::vector<float> out;
    for (std::uint64_t i = 0; i < value->count; ++i) out.push_back(static_cast<float>(value->number(i)));
    return out;
  }
  Result<int> number(std::string_view name) const {
    if (file.find(key(name)) == nullptr) return 0;
    COPPICE_TRY(const std::int64_t value, file.integer(key(name)));
    return static_cast<int>(std::clamp<std::int64_t>(value, INT_MIN, INT_MAX));
  }
};

// Widths of one part of the model, which end with its own.
Status check_widths(std::string_view name, std::span<const int> widths, int whole, bool differ) {
  for (std::size_t i = 0; i < widths.size(); ++i) {
    const int before = i == 0 ? 0 : widths[i - 1];
    if (widths[i] < 1 || widths[i] > whole || widths[i] % kBlockInputs != 0 || widths[i] < before ||
        (differ && widths[i] == before))
      return fail(fmt::format("{} has {} at index {}, but must have multiples of {} that rise to {}", name,
                              widths[i], i, kBlockInputs, whole));
  }
  if (widths.back() != whole)
    return fail(fmt::format("{} ends with {}, but must end with the model's own width {}", name,
                            widths.back(), whole));
  return {};
}

// ---- views

WeightVector view_of(const WeightVector& vector) {
  WeightVector view;
  view.memory = Buffer::part_of({const_cast<std::byte*>(vector.memory.data()), vector.memory.size()});
  view.size = vector.size;
  return view;
}

NormWeights view_of(const NormWeights& norm) { return {view_of(norm.weight), view_of(norm.bias)}; }

// Biases belong to models of one width.
WeightMatrix view_of(const WeightMatrix& matrix, int outputs, int inputs) {
  return {matrix.name, part_of(matrix.packed, outputs, inputs), view_of(matrix.bias)};
}

WeightMatrix view_of_inputs(const WeightMatrix& matrix, int inputs) {
  return view_of(matrix, matrix.packed.outputs, inputs);
}

struct Width {
  int hidden, feed_forward;
  const NarrowNorms* norms;  // null: the widest
};

LayerWeights view_of(const LayerWeights& layer, std::size_t number, const Width& width) {
  LayerWeights view;
  const auto* norms = width.norms;
  view.attention_norm = view_of(norms == nullptr ? layer.attention_norm : norms->attention[number]);
  view.feed_forward_norm = view_of(norms == nullptr ? layer.feed_forward_norm : norms->feed_forward[number]);
  view.query_norm = view_of(layer.query_norm);
  view.key_norm = view_of(layer.key_norm);
  view.attention_post_norm = view_of(layer.attention_post_norm);
  view.feed_forward_post_norm = view_of(layer.feed_forward_post_norm);
  for (const WeightMatrix& matrix : layer.query_key_value)
    view.query_key_value.push_back(view_of_inputs(matrix, width.hidden));
  view.attention_output = view_of(layer.attention_output, width.hidden, layer.attention_output.packed.inputs);
  for (const WeightMatrix& matrix : layer.gate_up)
    view.gate_up.push_back(width.norms == nullptr ? view_of_inputs(matrix, width.hidden)
                                                  : view_of(matrix, width.feed_forward, width.hidden));
  if (layer.experts.empty()) {
    view.down = view_of(layer.down, width.hidden, width.feed_forward);
    return view;
  }
  view.router = view_of_inputs(layer.router, width.hidden);
  for (const ExpertWeights& expert : layer.experts)
    view.experts.push_back({view_of_inputs(expert.gate, width.hidden),
                            view_of_inputs(expert.up, width.hidden),
                            view_of_inputs(expert.down, width.feed_forward)});
  return view;
}

// All but the blocks.
ModelWeights view_of_ends(const ModelWeights& weights, const Width& width) {
  ModelWeights view;
  view.embedding = view_of_inputs(weights.embedding, width.hidden);
  view.positions = view_of(weights.positions);
  view.rope_factors = {view_of(weights.rope_factors.all), view_of(weights.rope_factors.longer),
                       view_of(weights.rope_factors.shorter)};
  view.output_norm = view_of(width.norms == nullptr ? weights.output_norm : width.norms->output);
  if (!weights.own_head.name.empty()) view.own_head = view_of_inputs(weights.own_head, width.hidden);
  view.head_tokens = weights.head_tokens;
  view.embedding_rows = weights.embedding_rows;
  return view;
}

Variant variant_of(const ModelConfig& config, const ModelWeights& weights, const Width& width) {
  Variant variant;
  variant.hidden = width.hidden;
  variant.feed_forward = width.feed_forward;
  variant.blocks = config.layers;
  variant.experts_used = config.experts_used;
  variant.weights = view_of_ends(weights, width);
  for (std::size_t i = 0; i < weights.layers.size(); ++i)
    variant.weights.layers.push_back(view_of(weights.layers[i], i, width));
  return variant;
}

}  // namespace

std::string narrow_norm(const std::string& name, int hidden) { return fmt::format("{}.{}", name, hidden); }

Result<SlimWidths> read_slim(const gguf::File& file, const ModelConfig& config) {
  SlimWidths slim;
  bool any = false;
  for (const gguf::Key& key : file.keys()) any = any || key.name.starts_with(kPrefix);
  if (!any) return slim;
  const SlimKeys keys{file};
  COPPICE_TRY(slim.hidden, keys.widths("hidden"));
  COPPICE_TRY(slim.feed_forward, keys.widths("feed_forward"));
  COPPICE_TRY(slim.factors, keys.factors());
  COPPICE_TRY(slim.exit_layer, keys.number("exit_layer"));
  COPPICE_TRY(slim.exit_width, keys.number("exit_width"));
  if (Status right = check_slim(slim, config.hidden, config.feed_forward, config.layers); !right)
    return fail(fmt::format("{}: {}{}", file.path(), kPrefix, right.error().message));
  return slim;
}

Status check_slim(const SlimWidths& slim, int hidden, int feed_forward, int layers) {
  const std::size_t count = slim.hidden.size();
  if (count < 1 || count > kMostWidths)
    return fail(fmt::format("hidden has {} widths, but must have from 1 to {}", count, kMostWidths));
  if (slim.feed_forward.size() != count)
    return fail(fmt::format("feed_forward has {} widths, but hidden has {}; they must be as many",
                            slim.feed_forward.size(), count));
  if (slim.factors.size() != count)
    return fail(fmt::format("factors has {} numbers, but hidden has {} widths; they must be as many",
                            slim.factors.size(), count));
  COPPICE_TRY_STATUS(check_widths("hidden", slim.hidden, hidden, true));
  COPPICE_TRY_STATUS(check_widths("feed_forward", slim.feed_forward, feed_forward, false));
  for (std::size_t i = 0; i < count; ++i)
    if (!std::isfinite(slim.factors[i]) || slim.factors[i] <= (i == 0 ? 0.0f : slim.factors[i - 1]))
      return fail(fmt::format("factors has {} at index {}, but must have positive numbers that rise",
                              slim.factors[i], i));
  if (slim.exit_layer < 0 || slim.exit_layer >= layers)
    return fail(
        fmt::format("exit_layer is {}, but must be from 0 (no exit) to {}", slim.exit_layer, layers - 1));
  if (slim.exit_width < 0 || slim.exit_width >= static_cast<int>(count))
    return fail(fmt::format("exit_width is {}, but must be from 0 to {}", slim.exit_width, count - 1));
  return {};
}

std::vector<Variant> make_variants(const ModelConfig& config, const ModelWeights& weights) {
  const SlimWidths& slim = config.slim;
  std::vector<Variant> variants;
  if (slim.hidden.empty()) {
    variants.push_back(variant_of(config, weights, {config.hidden, config.feed_forward, nullptr}));
    return variants;
  }
  const auto width = [&](std::size_t w) -> Width {
    return {slim.hidden[w], slim.feed_forward[w], w < weights.narrow.size() ? &weights.narrow[w] : nullptr};
  };
  for (std::size_t w = 0; w < slim.hidden.size(); ++w) {
    variants.push_back(variant_of(config, weights, width(w)));
    variants.back().factor = slim.factors[w];
    variants.back().name = fmt::format("{}", slim.factors[w]);
  }
  if (slim.exit_layer == 0) return variants;
  const auto exit_width = static_cast<std::size_t>(slim.exit_width);
  Variant exit = variant_of(config, weights, width(exit_width));
  exit.name = "exit";
  exit.factor = slim.factors[exit_width];
  exit.blocks = slim.exit_layer;
  exit.weights.output_norm = view_of(weights.exit_norm);
  variants.push_back(std::move(exit));
  return variants;
}

ModelWeights view_of_blocks(const ModelConfig& config, const ModelWeights& weights,
                            std::span<const int> blocks) {
  const Width width{config.hidden, config.feed_forward, nullptr};
  ModelWeights view = view_of_ends(weights, width);
  for (const int block : blocks) {
    COPPICE_CHECK(block >= 0 && block < config.layers);
    const auto number = static_cast<std::size_t>(block);
    view.layers.push_back(view_of(weights.layers[number], number, width));
  }
  return view;
}

std::size_t Variant::streamed_bytes() const {
  std::size_t bytes = weights.head().packed.bytes();
  for (int i = 0; i < static_cast<int>(weights.layers.size()); ++i) {
    const LayerWeights& layer = weights.layers[static_cast<std::size_t>(i)];
    if (i < blocks) {
      for (const WeightMatrix* matrix : matrices_of_a_row(layer, experts_used))
        bytes += matrix->packed.bytes();
      continue;
    }
    for (const WeightMatrix& matrix : layer.query_key_value) bytes += matrix.packed.bytes();
    bytes -= layer.query_key_value[0].packed.bytes();  // nobody asks
  }
  return bytes;
}

}  // namespace coppice::core
