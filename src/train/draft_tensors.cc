#include "train/draft_tensors.h"

#include <fmt/format.h>

#include <span>

#include "base/check.h"

namespace coppice::core::train {
namespace {

std::string sizes_text(const std::vector<std::int64_t>& sizes) {
  std::string text;
  for (std::size_t i = 0; i < sizes.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : " x ", sizes[i]);
  return text;
}

// [heads * a * b, inputs] -> rows in the order [heads, b, a].
torch::Tensor swap_within_heads(const torch::Tensor& weight, int heads, std::int64_t a, std::int64_t b) {
  return weight.view({heads, a, b, weight.size(1)}).transpose(1, 2).reshape({weight.size(0), weight.size(1)});
}

}  // namespace

Result<torch::Tensor> read_tensor(const gguf::File& file, const std::string& name) {
  const gguf::Tensor* tensor = file.tensor(name);
  if (tensor == nullptr) return fail(fmt::format("{}: tensor {} is missing", file.path(), name));
  if (tensor->rank > 2)
    return fail(fmt::format("{}: tensor {} has more than two dimensions", file.path(), name));
  std::vector<std::int64_t> sizes = {tensor->shape[0]};
  if (tensor->rank == 2) sizes.insert(sizes.begin(), tensor->shape[1]);
  torch::Tensor values = torch::empty(sizes, torch::kFloat32);
  tensor->format->unpack(tensor->data, values.data_ptr<float>(), values.numel());
  if (!torch::isfinite(values).all().item<bool>())
    return fail(fmt::format("{}: tensor {} has a value that is not finite", file.path(), name));
  return values;
}

Result<torch::Tensor> read_tensor(const gguf::File& file, const std::string& name,
                                  const std::vector<std::int64_t>& sizes) {
  COPPICE_TRY(torch::Tensor values, read_tensor(file, name));
  if (values.sizes() != at::IntArrayRef(sizes))
    return fail(fmt::format("{}: tensor {} is {}, but must be {}", file.path(), name,
                            sizes_text(values.sizes().vec()), sizes_text(sizes)));
  return values;
}

void add_tensor(gguf::Writer& writer, const std::string& name, const Format& format,
                const torch::Tensor& values) {
  const torch::Tensor flat = values.detach().cpu().to(torch::kFloat32).contiguous();
  std::vector<std::int64_t> shape(flat.sizes().rbegin(), flat.sizes().rend());
  writer.add_values(name, format, std::move(shape),
                    std::span<const float>(flat.data_ptr<float>(), static_cast<std::size_t>(flat.numel())));
}

torch::Tensor pairs_to_halves(const torch::Tensor& weight, int heads) {
  return swap_within_heads(weight, heads, weight.size(0) / heads / 2, 2);
}

torch::Tensor halves_to_pairs(const torch::Tensor& weight, int heads) {
  return swap_within_heads(weight, heads, 2, weight.size(0) / heads / 2);
}

}  // namespace coppice::core::train
