// A width of a slimmable model as a file of its own, cut out of the tensors' bytes: what the engine computes
// by reading parts of the whole must be what it computes of this one.
#pragma once

#include <string>
#include <vector>

#include "gguf/writer.h"
#include "model/slim.h"
#include "model/testing.h"
#include "quant/formats.h"

namespace coppice::core::testing {

// Three widths and an exit; `hidden` heads are the same at all.
inline RandomModelOptions slimmable() {
  RandomModelOptions shape;
  shape.hidden = 128;
  shape.feed_forward = 256;
  shape.head_dim = 32;
  shape.layers = 4;
  shape.formats = {"Q4_1", "Q8_0", "Q4_0"};
  shape.slim.hidden = {64, 96, 128};
  shape.slim.feed_forward = {128, 192, 256};
  shape.slim.factors = {0.5f, 0.75f, 1.0f};
  shape.slim.exit_layer = 2;
  shape.slim.exit_width = 1;
  return shape;
}

inline std::vector<std::byte> first_part(const gguf::Tensor& tensor, std::int64_t inputs,
                                         std::int64_t outputs) {
  const std::size_t whole = row_bytes(*tensor.format, tensor.shape[0]);
  const std::size_t part = row_bytes(*tensor.format, inputs);
  std::vector<std::byte> bytes;
  for (std::int64_t row = 0; row < outputs; ++row) {
    const std::byte* from = tensor.data + whole * static_cast<std::size_t>(row);
    bytes.insert(bytes.end(), from, from + part);
  }
  return bytes;
}

// The file of width `w` alone.
struct Cut {
  std::size_t w;
  int layers;             // only the first ones
  std::string last_norm;  // the tensor that becomes its output norm
  int silent_from;        // blocks from here on add nothing
};
inline std::vector<std::byte> cut_to_width(std::span<const std::byte> bytes, const Cut& cut) {
  const auto file = *gguf::File::parse(bytes, "slim.gguf");
  const ModelConfig config = *read_config(*file);
  const int hidden = config.slim.hidden[cut.w], ff = config.slim.feed_forward[cut.w];
  const auto size = [&](std::int64_t whole) -> std::int64_t {
    return whole == config.hidden ? hidden : whole == config.feed_forward ? ff : whole;
  };
  gguf::Writer writer;
  for (const gguf::Key& key : file->keys()) {
    if (key.name.starts_with("coppice.slim.")) continue;
    if (key.name == "llama.embedding_length")
      writer.add_u32(std::string(key.name), static_cast<unsigned>(hidden));
    else if (key.name == "llama.feed_forward_length")
      writer.add_u32(std::string(key.name), static_cast<unsigned>(ff));
    else if (key.name == "llama.block_count")
      writer.add_u32(std::string(key.name), static_cast<unsigned>(cut.layers));
    else
      writer.copy(key);
  }
  const std::string own = "." + std::to_string(hidden) + ".weight";  // of this width's norms
  for (const gguf::Tensor& tensor : file->tensors()) {
    std::string name(tensor.name);
    int block = -1;
    if (name.starts_with("blk.")) block = std::stoi(name.substr(4));
    if (block >= cut.layers) continue;
    const bool vector = tensor.rank == 1;
    if (vector) {
      const bool final_norm = block < 0;
      if (final_norm && name != cut.last_norm) continue;
      if (final_norm) name = "output_norm.weight";
      const bool right = hidden == config.hidden ? tensor.shape[0] == hidden : name.ends_with(own);
      if (!final_norm && !right) continue;
      if (!final_norm && name.ends_with(own)) name = name.substr(0, name.size() - own.size()) + ".weight";
      writer.add_tensor(name, *tensor.format, {tensor.shape[0]}, first_part(tensor, tensor.shape[0], 1));
      continue;
    }
    // The embedding and the head have one row a token; of the attention part only the residual side shrinks.
    const bool embedding = block < 0;
    const bool heads_out = name.find("attn_q") != std::string::npos ||
                           name.find("attn_k") != std::string::npos ||
                           name.find("attn_v") != std::string::npos;
    const bool heads_in = name.find("attn_output") != std::string::npos;
    const std::int64_t inputs = heads_in ? tensor.shape[0] : size(tensor.shape[0]);
    const std::int64_t outputs = embedding || heads_out ? tensor.shape[1] : size(tensor.shape[1]);
    std::vector<std::byte> part = first_part(tensor, inputs, outputs);
    if (block >= cut.silent_from && (heads_in || name.find("ffn_down") != std::string::npos))
      std::fill(part.begin(), part.end(), std::byte{0});
    writer.add_tensor(name, *tensor.format, {inputs, outputs}, std::move(part));
  }
  return writer.to_bytes();
}

inline std::vector<std::byte> cut_to_width(std::span<const std::byte> bytes, std::size_t w) {
  const ModelConfig config = *read_config(**gguf::File::parse(bytes, "slim.gguf"));
  const int hidden = config.slim.hidden[w];
  const bool whole = hidden == config.hidden;
  return cut_to_width(
      bytes, {w, config.layers, whole ? "output_norm.weight" : narrow_norm("output_norm", hidden) + ".weight",
              config.layers});
}

}  // namespace coppice::core::testing
