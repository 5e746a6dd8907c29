#include <coppice/tools.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/impl.h"
#include "base/check.h"
#include "model/architectures.h"

namespace coppice {
namespace {

using core::gguf::File;
using core::gguf::Key;
using core::gguf::Tensor;
using core::gguf::Type;
using core::gguf::Value;
using nlohmann::ordered_json;

constexpr std::uint64_t kShownElements = 8;  // of a long array

ordered_json element(const Value& value, std::uint64_t i) {
  switch (value.type) {
    case Type::string:
      return std::string(value.strings[i]);
    case Type::boolean:
      return value.integer(i) != 0;
    case Type::f32:
    case Type::f64:
      return value.number(i);
    default:
      return value.integer(i);
  }
}

ordered_json show(const Value& value) {
  if (!value.is_array) return element(value, 0);
  ordered_json first = ordered_json::array();
  for (std::uint64_t i = 0; i < std::min(value.count, kShownElements); ++i)
    first.push_back(element(value, i));
  if (value.count <= kShownElements) return first;
  return {{"count", value.count}, {"first", first}};
}

ordered_json show(const Tensor& tensor, const std::byte* begin) {
  ordered_json shape = ordered_json::array();
  for (int d = 0; d < tensor.rank; ++d) shape.push_back(tensor.shape[d]);
  return {{"name", tensor.name},
          {"format", tensor.format->name},
          {"shape", shape},
          {"bytes", tensor.bytes},
          {"offset", tensor.data - begin}};
}

// Each tensor, its offset counted from the first one of its part.
ordered_json show_tensors(const File& file) {
  std::vector<const std::byte*> begins(file.parts().size(), nullptr);
  for (const Tensor& tensor : file.tensors()) {
    const std::byte*& begin = begins[static_cast<std::size_t>(tensor.part)];
    if (begin == nullptr || tensor.data < begin) begin = tensor.data;
  }
  ordered_json tensors = ordered_json::array();
  for (const Tensor& tensor : file.tensors()) {
    tensors.push_back(show(tensor, begins[static_cast<std::size_t>(tensor.part)]));
    if (begins.size() > 1) tensors.back()["part"] = file.parts()[static_cast<std::size_t>(tensor.part)].path;
  }
  return tensors;
}

// The widths of a slimmable draft and its exit, with the matrix values a pass of one token multiplies by.
ordered_json widths_of(const File& file) {
  ordered_json out = ordered_json::array();
  const auto config = core::read_config(file);
  if (!config || config->slim.hidden.empty()) return out;
  const core::SlimWidths& slim = config->slim;
  const Tensor* head = file.tensor("output.weight");
  const std::int64_t rows = head == nullptr ? config->vocab : head->shape[1];
  const std::int64_t q = config->heads * config->head_dim, kv = config->kv_heads * config->head_dim;
  const auto add = [&](const std::string& name, std::size_t w, std::int64_t blocks) {
    const std::int64_t hidden = slim.hidden[w], ff = slim.feed_forward[w];
    const std::int64_t whole = hidden * (2 * q + 2 * kv + 3 * ff), stored = hidden * 2 * kv;
    out.push_back({{"width", name},
                   {"hidden", hidden},
                   {"feed_forward", ff},
                   {"blocks", blocks},
                   {"parameters", blocks * whole + (config->layers - blocks) * stored + rows * hidden}});
  };
  for (std::size_t w = 0; w < slim.hidden.size(); ++w)
    add(fmt::format("{}", slim.factors[w]), w, config->layers);
  if (slim.exit_layer > 0) add("exit", static_cast<std::size_t>(slim.exit_width), slim.exit_layer);
  return out;
}

}  // namespace

Result<std::string> inspect(const std::string& path) {
  COPPICE_TRY(auto file, File::open(path));
  ordered_json keys = ordered_json::object();
  for (const Key& key : file->keys()) keys[std::string(key.name)] = show(key.value);
  std::int64_t values = 0;
  for (const Tensor& tensor : file->tensors()) values += tensor.values();
  ordered_json out = {{"path", path},           {"version", file->version()},
                      {"bytes", file->bytes()}, {"parameters", values},
                      {"keys", keys},           {"tensors", show_tensors(*file)}};
  if (ordered_json widths = widths_of(*file); !widths.empty()) out["widths"] = std::move(widths);
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace coppice
