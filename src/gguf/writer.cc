#include "gguf/writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "gguf/layout.h"

namespace coppice::core::gguf {
namespace {

using Bytes = std::vector<std::byte>;

void append_raw(Bytes& to, const void* from, std::size_t count) {
  const auto* start = static_cast<const std::byte*>(from);
  to.insert(to.end(), start, start + count);
}

template <class T>
void append_number(Bytes& to, T value) {
  append_raw(to, &value, sizeof(value));
}

void append_string(Bytes& to, std::string_view text) {
  append_number(to, static_cast<std::uint64_t>(text.size()));
  append_raw(to, text.data(), text.size());
}

void append_type(Bytes& to, Type type) { append_number(to, static_cast<std::uint32_t>(type)); }

template <class T>
Bytes scalar(Type type, T value) {
  Bytes result;
  append_type(result, type);
  append_number(result, value);
  return result;
}

Bytes array_start(Type type, std::size_t count) {
  Bytes result;
  append_type(result, Type::array);
  append_type(result, type);
  append_number(result, static_cast<std::uint64_t>(count));
  return result;
}

template <class T>
Bytes array(Type type, const std::vector<T>& values) {
  Bytes result = array_start(type, values.size());
  append_raw(result, values.data(), sizeof(T) * values.size());
  return result;
}

std::uint64_t padding(std::uint64_t size, std::uint64_t alignment) {
  return (alignment - size % alignment) % alignment;
}

std::int64_t product(const std::vector<std::int64_t>& shape) {
  std::int64_t values = 1;
  for (const std::int64_t size : shape) values *= size;
  return values;
}

}  // namespace

void Writer::put(std::string key, Bytes encoded) {
  for (auto& [name, value] : keys_) {
    if (name != key) continue;
    value = std::move(encoded);
    return;
  }
  keys_.emplace_back(std::move(key), std::move(encoded));
}

void Writer::add_text(std::string key, std::string value) {
  Bytes encoded;
  append_type(encoded, Type::string);
  append_string(encoded, value);
  put(std::move(key), std::move(encoded));
}

void Writer::add_u32(std::string key, std::uint32_t value) { put(std::move(key), scalar(Type::u32, value)); }
void Writer::add_i32(std::string key, std::int32_t value) { put(std::move(key), scalar(Type::i32, value)); }
void Writer::add_u64(std::string key, std::uint64_t value) { put(std::move(key), scalar(Type::u64, value)); }
void Writer::add_f32(std::string key, float value) { put(std::move(key), scalar(Type::f32, value)); }

void Writer::add_bool(std::string key, bool value) {
  put(std::move(key), scalar(Type::boolean, static_cast<std::uint8_t>(value ? 1 : 0)));
}

void Writer::add_texts(std::string key, std::vector<std::string> values) {
  Bytes encoded = array_start(Type::string, values.size());
  for (const std::string& value : values) append_string(encoded, value);
  put(std::move(key), std::move(encoded));
}

void Writer::add_i32s(std::string key, std::vector<std::int32_t> values) {
  put(std::move(key), array(Type::i32, values));
}
void Writer::add_u32s(std::string key, std::vector<std::uint32_t> values) {
  put(std::move(key), array(Type::u32, values));
}
void Writer::add_f32s(std::string key, std::vector<float> values) {
  put(std::move(key), array(Type::f32, values));
}
void Writer::add_u8s(std::string key, std::vector<std::uint8_t> values) {
  put(std::move(key), array(Type::u8, values));
}

void Writer::copy(const Key& key) {
  const Value& value = key.value;
  Bytes encoded;
  if (value.is_array) {
    encoded = array_start(value.type, static_cast<std::size_t>(value.count));
  } else {
    append_type(encoded, value.type);
  }
  if (value.type == Type::string) {
    for (const std::string_view text : value.strings) append_string(encoded, text);
  } else {
    append_raw(encoded, value.data, static_cast<std::size_t>(value.count) * element_bytes(value.type));
  }
  put(std::string(key.name), std::move(encoded));
}

Writer::Item& Writer::put_shape(std::string name, const Format& format, std::vector<std::int64_t> shape) {
  COPPICE_CHECK(!shape.empty() && shape.size() <= 4 && !name.empty());
  COPPICE_CHECK(std::all_of(shape.begin(), shape.end(), [](std::int64_t size) { return size > 0; }));
  COPPICE_CHECK(shape[0] % format.block_values == 0);
  COPPICE_CHECK(
      std::none_of(tensors_.begin(), tensors_.end(), [&](const Item& item) { return item.name == name; }));
  const std::uint64_t size = row_bytes(format, product(shape));
  tensors_.push_back({std::move(name), &format, std::move(shape), size, {}, {}});
  return tensors_.back();
}

void Writer::put(std::string name, const Format& format, std::vector<std::int64_t> shape,
                 std::span<const std::byte> bytes) {
  Item& item = put_shape(std::move(name), format, std::move(shape));
  COPPICE_CHECK(bytes.size() == item.size);
  item.bytes = bytes;
}

void Writer::copy(const Tensor& tensor) {
  put(std::string(tensor.name), *tensor.format, {tensor.shape, tensor.shape + tensor.rank},
      {tensor.data, tensor.bytes});
}

void Writer::add_tensor(std::string name, const Format& format, std::vector<std::int64_t> shape,
                        std::vector<std::byte> bytes) {
  put(std::move(name), format, std::move(shape), bytes);
  tensors_.back().owned = std::move(bytes);  // its bytes keep their address
}

void Writer::add_values(std::string name, const Format& format, std::vector<std::int64_t> shape,
                        std::span<const float> values) {
  COPPICE_CHECK(static_cast<std::int64_t>(values.size()) == product(shape));
  COPPICE_CHECK(format.quantize != nullptr);
  Bytes bytes(row_bytes(format, product(shape)));
  format.quantize(values.data(), nullptr, bytes.data(), product(shape));
  add_tensor(std::move(name), format, std::move(shape), std::move(bytes));
}

void Writer::add_produced(std::string name, const Format& format, std::vector<std::int64_t> shape,
                          std::function<Status(const Append&)> produce) {
  put_shape(std::move(name), format, std::move(shape)).produce = std::move(produce);
}

std::uint64_t Writer::alignment() const {
  for (const auto& [name, value] : keys_) {
    if (name != kAlignmentKey || value.size() != 8) continue;  // type, u32
    std::uint32_t chosen = 0;
    std::memcpy(&chosen, value.data() + 4, 4);
    if (valid_alignment(chosen)) return chosen;
  }
  return kDefaultAlignment;
}

Bytes Writer::header() const {
  Bytes result;
  append_raw(result, kMagic, 4);
  append_number(result, kVersion);
  append_number(result, static_cast<std::uint64_t>(tensors_.size()));
  append_number(result, static_cast<std::uint64_t>(keys_.size()));
  for (const auto& [name, value] : keys_) {
    append_string(result, name);
    append_raw(result, value.data(), value.size());
  }
  std::uint64_t offset = 0;
  for (const Item& item : tensors_) {
    append_string(result, item.name);
    append_number(result, static_cast<std::uint32_t>(item.shape.size()));
    for (const std::int64_t size : item.shape) append_number(result, static_cast<std::uint64_t>(size));
    append_number(result, item.format->type);
    append_number(result, offset);
    offset += item.size + padding(item.size, alignment());
  }
  result.resize(result.size() + static_cast<std::size_t>(padding(result.size(), alignment())));
  return result;
}

Status Writer::emit(const Append& append) const {
  COPPICE_TRY_STATUS(append(header()));
  const Bytes zeros(static_cast<std::size_t>(alignment()));
  for (const Item& item : tensors_) {
    std::uint64_t written = 0;
    const Append count = [&](std::span<const std::byte> bytes) {
      written += bytes.size();
      return append(bytes);
    };
    COPPICE_TRY_STATUS(item.produce ? item.produce(count) : count(item.bytes));
    COPPICE_CHECK(written == item.size);
    COPPICE_TRY_STATUS(
        append(std::span(zeros).first(static_cast<std::size_t>(padding(item.size, alignment())))));
  }
  return {};
}

Status Writer::write(const std::string& path) const {
  return write_file(path, [this](const Append& append) { return emit(append); });
}

std::uint64_t Writer::bytes() const {
  std::uint64_t bytes = header().size();
  for (const Item& item : tensors_) bytes += item.size + padding(item.size, alignment());
  return bytes;
}

std::vector<std::byte> Writer::to_bytes() const {
  Bytes result;
  const Status status = emit([&](std::span<const std::byte> bytes) {
    result.insert(result.end(), bytes.begin(), bytes.end());
    return Status();
  });
  COPPICE_CHECK(status);
  return result;
}

}  // namespace coppice::core::gguf
