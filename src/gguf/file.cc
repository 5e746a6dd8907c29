#include "gguf/file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.h"
#include "gguf/layout.h"

namespace coppice::core::gguf {
namespace {

template <class T>
T element(const std::byte* data, std::uint64_t i) {
  T value;
  std::memcpy(&value, data + sizeof(T) * i, sizeof(T));
  return value;
}

// Calls use(x) with element i in its own type.
template <class Use>
auto visit(const Value& value, std::uint64_t i, Use use) {
  COPPICE_CHECK(value.is_number() && i < value.count);
  switch (value.type) {
    case Type::i8:
      return use(element<std::int8_t>(value.data, i));
    case Type::u16:
      return use(element<std::uint16_t>(value.data, i));
    case Type::i16:
      return use(element<std::int16_t>(value.data, i));
    case Type::u32:
      return use(element<std::uint32_t>(value.data, i));
    case Type::i32:
      return use(element<std::int32_t>(value.data, i));
    case Type::f32:
      return use(element<float>(value.data, i));
    case Type::u64:
      return use(element<std::uint64_t>(value.data, i));
    case Type::i64:
      return use(element<std::int64_t>(value.data, i));
    case Type::f64:
      return use(element<double>(value.data, i));
    default:
      return use(element<std::uint8_t>(value.data, i));  // u8 and boolean
  }
}

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

std::int64_t to_integer(std::uint64_t value) {
  return value > static_cast<std::uint64_t>(kMost) ? kMost : static_cast<std::int64_t>(value);
}
std::int64_t to_integer(std::int64_t value) { return value; }
std::int64_t to_integer(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return kMost;
  if (value < -0x1p63) return kLeast;
  return static_cast<std::int64_t>(value);
}

bool is_float(Type type) { return type == Type::f32 || type == Type::f64; }
bool single_integer(const Value& value) {
  return !value.is_array && value.is_number() && !is_float(value.type);
}
bool single_number(const Value& value) { return !value.is_array && value.is_number(); }
bool single_text(const Value& value) { return !value.is_array && value.type == Type::string; }

std::string description(const Value& value) {
  if (!value.is_array) return std::string(type_name(value.type));
  return fmt::format("array of {} {}", value.count, type_name(value.type));
}

// The value of `key` where `fits` it, or the sentence that says what would be right.
Result<const Value*> require(const File& file, std::string_view key, bool (*fits)(const Value&),
                             std::string_view expected) {
  const Value* value = file.find(key);
  if (value == nullptr)
    return fail(fmt::format("{}: key {} is missing ({})", file.path(), quoted(key), expected));
  if (!fits(*value))
    return fail(fmt::format("{}: key {} is of type {}, not {}", file.path(), quoted(key), description(*value),
                            expected));
  return value;
}

const Value* optional(const File& file, std::string_view key, bool (*fits)(const Value&)) {
  const Value* value = file.find(key);
  return value != nullptr && fits(*value) ? value : nullptr;
}

// Item called `name`, by its sorted index; null if there is none.
template <class Item>
const Item* find_by_name(const std::vector<Item>& items, const std::vector<std::uint32_t>& sorted,
                         std::string_view name) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), name,
                                   [&](std::uint32_t i, std::string_view n) { return items[i].name < n; });
  return at != sorted.end() && items[*at].name == name ? &items[*at] : nullptr;
}

}  // namespace

std::size_t element_bytes(Type type) {
  switch (type) {
    case Type::u8:
    case Type::i8:
    case Type::boolean:
      return 1;
    case Type::u16:
    case Type::i16:
      return 2;
    case Type::u32:
    case Type::i32:
    case Type::f32:
      return 4;
    case Type::u64:
    case Type::i64:
    case Type::f64:
      return 8;
    case Type::string:
    case Type::array:
      return 0;
  }
  return 0;
}

std::string_view type_name(Type type) {
  constexpr std::string_view kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                         "bool", "string", "array", "u64", "i64", "f64"};
  const auto number = static_cast<std::uint32_t>(type);
  return number < std::size(kNames) ? kNames[number] : "unknown";
}

std::string quoted(std::string_view name) {
  constexpr std::size_t kLongest = 80;
  std::string result = "'";
  for (const char c : name.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '\\') {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + (name.size() > kLongest ? "...'" : "'");
}

double Value::number(std::uint64_t i) const {
  return visit(*this, i, [](auto x) { return static_cast<double>(x); });
}

std::int64_t Value::integer(std::uint64_t i) const {
  return visit(*this, i, [](auto x) {
    if constexpr (std::is_floating_point_v<decltype(x)>) {
      return to_integer(static_cast<double>(x));
    } else if constexpr (std::is_unsigned_v<decltype(x)>) {
      return to_integer(static_cast<std::uint64_t>(x));
    } else {
      return to_integer(static_cast<std::int64_t>(x));
    }
  });
}

File::File() = default;
File::~File() = default;

std::shared_ptr<const File> Access::make(std::unique_ptr<File::State> state) {
  std::shared_ptr<File> file(new File());
  file->state_ = std::move(state);
  return file;
}

Result<std::shared_ptr<const File>> File::open(const std::string& path) {
  COPPICE_TRY(std::vector<State> parts, Access::open(path));
  COPPICE_TRY(State whole, Access::join(std::move(parts)));
  return Access::make(std::make_unique<State>(std::move(whole)));
}

Result<std::shared_ptr<const File>> File::parse(std::span<const std::byte> bytes, std::string name) {
  return parse(std::vector<Part>{{std::move(name), bytes}});
}

Result<std::shared_ptr<const File>> File::parse(std::vector<Part> parts) {
  COPPICE_CHECK(!parts.empty());
  std::vector<State> states(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    states[i].parts.push_back(std::move(parts[i]));
    COPPICE_TRY_STATUS(Access::parse(states[i]));
  }
  COPPICE_TRY(State whole, Access::join(std::move(states)));
  return Access::make(std::make_unique<State>(std::move(whole)));
}

const std::string& File::path() const { return state_->parts[0].path; }
std::uint32_t File::version() const { return state_->version; }
std::size_t File::bytes() const {
  std::size_t bytes = 0;
  for (const Part& part : state_->parts) bytes += part.bytes.size();
  return bytes;
}
std::span<const Part> File::parts() const { return state_->parts; }
std::span<const Key> File::keys() const { return state_->keys; }
std::span<const Tensor> File::tensors() const { return state_->tensors; }

void File::release(std::span<const std::byte> bytes) const {
  for (const MappedFile& mapping : state_->mappings) {
    const std::span<const std::byte> all = mapping.bytes();
    // Addresses of different mappings: as numbers, for pointers have no order there.
    const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
    const auto begin = reinterpret_cast<std::uintptr_t>(all.data());
    if (at >= begin && at < begin + all.size()) return mapping.release(bytes);
  }
}

void File::release() const {
  for (const MappedFile& mapping : state_->mappings) mapping.release(mapping.bytes());
}

const Value* File::find(std::string_view key) const {
  const Key* found = find_by_name(state_->keys, state_->keys_by_name, key);
  return found == nullptr ? nullptr : &found->value;
}

const Tensor* File::tensor(std::string_view name) const {
  return find_by_name(state_->tensors, state_->tensors_by_name, name);
}

Result<std::string_view> File::text(std::string_view key) const {
  COPPICE_TRY(const Value* value, require(*this, key, single_text, "a string"));
  return value->strings[0];
}

Result<std::int64_t> File::integer(std::string_view key) const {
  COPPICE_TRY(const Value* value, require(*this, key, single_integer, "an integer"));
  return value->integer();
}

Result<double> File::number(std::string_view key) const {
  COPPICE_TRY(const Value* value, require(*this, key, single_number, "a number"));
  return value->number();
}

std::int64_t File::integer_or(std::string_view key, std::int64_t otherwise) const {
  const Value* value = optional(*this, key, single_integer);
  return value == nullptr ? otherwise : value->integer();
}

double File::number_or(std::string_view key, double otherwise) const {
  const Value* value = optional(*this, key, single_number);
  return value == nullptr ? otherwise : value->number();
}

std::string_view File::text_or(std::string_view key, std::string_view otherwise) const {
  const Value* value = optional(*this, key, single_text);
  return value == nullptr ? otherwise : value->strings[0];
}

}  // namespace coppice::core::gguf
