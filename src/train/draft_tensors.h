// Tensors between GGUF files and LibTorch. A file's matrix of ne = {inputs, outputs} is a tensor
// [outputs, inputs]; everything is f32 here.
#pragma once

#include <coppice/error.h>
#include <cstdint>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "train/torch.h"

namespace coppice::core::train {

// f32 values of any format, [outputs, inputs] or [size]. The error names file and tensor.
Result<torch::Tensor> read_tensor(const gguf::File& file, const std::string& name);
// The same, refusing other sizes.
Result<torch::Tensor> read_tensor(const gguf::File& file, const std::string& name,
                                  const std::vector<std::int64_t>& sizes);
// Adds an f32 tensor of one or two dimensions, quantised to `format`.
void add_tensor(gguf::Writer& writer, const std::string& name, const Format& format,
                const torch::Tensor& values);

// The rows of wq and wk: files rotate dimensions 2i and 2i + 1 of a head together, the draft in training
// i and i + head_dim / 2.
torch::Tensor pairs_to_halves(const torch::Tensor& weight, int heads);
torch::Tensor halves_to_pairs(const torch::Tensor& weight, int heads);

}  // namespace coppice::core::train
