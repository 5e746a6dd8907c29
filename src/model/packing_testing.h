// Files of random weights, for the tests of packing and of its cache.
#pragma once

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gguf/writer.h"
#include "model/packing.h"
#include "quant/formats.h"

namespace coppice::core::testing {

// Rows of random numbers, quantised; the shapes reach over the edges of groups and of huge pages.
struct Shape {
  const char* name;
  std::int64_t inputs, outputs;
};
inline constexpr Shape kShapes[] = {{"tiny", 32, 1},    {"odd", 96, 17},       {"square", 64, 64},
                                    {"long", 2048, 70}, {"large", 256, 20011}, {"one more", 32, 33}};

class Weights {
 public:
  explicit Weights(const std::string& format_name) {
    const Format& format = *find_format(format_name);
    gguf::Writer writer;
    std::mt19937 random(5);
    for (const Shape& shape : kShapes) {
      std::vector<float> row(static_cast<std::size_t>(shape.inputs));
      std::vector<std::byte> blocks;
      for (std::int64_t i = 0; i < shape.outputs; ++i) {
        for (float& value : row) value = static_cast<float>(random() % 2001) / 1000.0f - 1.0f;
        std::vector<std::byte> packed(row_bytes(format, shape.inputs));
        format.quantize(row.data(), nullptr, packed.data(), shape.inputs);
        blocks.insert(blocks.end(), packed.begin(), packed.end());
      }
      writer.add_tensor(shape.name, format, {shape.inputs, shape.outputs}, std::move(blocks));
    }
    bytes = writer.to_bytes();
  }

  // Not finite from the scale of the row's first block on: only for formats whose block begins with it.
  void spoil(const char* name, std::int64_t row) {
    const auto file = *gguf::File::parse(bytes, "weights.gguf");
    const gguf::Tensor& tensor = *file->tensor(name);
    const std::size_t at = row_bytes(*tensor.format, tensor.shape[0]) * static_cast<std::size_t>(row);
    const std::uint16_t infinity = 0x7c00;
    std::memcpy(bytes.data() + (tensor.data - bytes.data()) + at, &infinity, 2);
  }

  std::vector<std::byte> bytes;
};

struct Packed {
  explicit Packed(const gguf::File& file) : matrices(file.tensors().size()) {
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      const gguf::Tensor& tensor = file.tensors()[i];
      matrices[i].kind = tensor.format->packed;
      matrices[i].inputs = static_cast<int>(tensor.shape[0]);
      matrices[i].outputs = static_cast<int>(tensor.shape[1]);
      jobs.push_back({&tensor, &matrices[i]});
    }
  }
  std::vector<PackedMatrix> matrices;
  std::vector<PackJob> jobs;
};

}  // namespace coppice::core::testing
