#include <coppice/tools.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/impl.h"
#include "base/check.h"

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

}  // namespace

Result<std::string> inspect(const std::string& path) {
  COPPICE_TRY(auto file, File::open(path));
  ordered_json keys = ordered_json::object();
  for (const Key& key : file->keys()) keys[std::string(key.name)] = show(key.value);
  const std::byte* begin = nullptr;  // of the tensor data: offsets are shown relative to the first tensor
  std::int64_t values = 0;
  for (const Tensor& tensor : file->tensors()) {
    if (begin == nullptr || tensor.data < begin) begin = tensor.data;
    values += tensor.values();
  }
  ordered_json tensors = ordered_json::array();
  for (const Tensor& tensor : file->tensors()) tensors.push_back(show(tensor, begin));
  ordered_json out = {{"path", path},           {"version", file->version()},
                      {"bytes", file->bytes()}, {"parameters", values},
                      {"keys", keys},           {"tensors", tensors}};
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace coppice
