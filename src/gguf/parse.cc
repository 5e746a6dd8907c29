// The parser. A GGUF file is: magic, version, the number of tensors and of keys; the keys with their values;
// for each tensor its name, shape, format and offset; padding; the tensors' bytes. All of it may be hostile:
// nothing is read before it is known to lie inside the file, counts are compared with the bytes that are left
// before anything is sized by them, and sums and products are checked before they are formed. Time and memory
// are in proportion to the bytes of the metadata.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "gguf/layout.h"

namespace coppice::core::gguf {
namespace {

constexpr std::uint64_t kMaxNameBytes = 65535;
constexpr std::uint64_t kMinKeyBytes = 8 + 1 + 4 + 1;  // length, one letter, type, one byte of value
constexpr std::uint64_t kMinTensorBytes =
    8 + 1 + 4 + 8 + 4 + 8;  // length, one letter, rank, size, format, offset

// Formats of other runtimes that a message had better call by name.
struct NamedType {
  std::uint32_t type;
  std::string_view name;
};
constexpr NamedType kOtherTypes[] = {{9, "Q8_1"},     {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"},
                                     {18, "IQ3_XXS"}, {19, "IQ1_S"}, {21, "IQ3_S"},   {22, "IQ2_S"},
                                     {24, "I8"},      {25, "I16"},   {26, "I32"},     {28, "F64"},
                                     {29, "IQ1_M"},   {34, "TQ1_0"}};

std::string type_label(std::uint32_t type) {
  for (const NamedType& other : kOtherTypes)
    if (other.type == type) return fmt::format("{} ({})", type, other.name);
  return std::to_string(type);
}

std::string supported_formats() {
  std::string list;
  for (const Format& format : formats()) list += (list.empty() ? "" : ", ") + std::string(format.name);
  return list;
}

class Parser {
 public:
  explicit Parser(Access::State& state) : state_(state), bytes_(state.parts[0].bytes) {}

  Status run() {
    COPPICE_TRY_STATUS(read_header());
    COPPICE_TRY_STATUS(read_keys());
    COPPICE_TRY_STATUS(read_tensors());
    COPPICE_TRY_STATUS(place_tensors());
    return check_overlaps();
  }

 private:
  template <class... Args>
  tl::unexpected<Error> wrong(fmt::format_string<Args...> text, Args&&... args) const {
    return fail(state_.parts[0].path + ": " + fmt::format(text, std::forward<Args>(args)...));
  }

  std::uint64_t left() const { return bytes_.size() - at_; }

  // The next `count` bytes. `where_` says what they belong to.
  Result<const std::byte*> take(std::uint64_t count) {
    if (count > left())
      return wrong(
          "the file ends inside {}: {} bytes should follow offset {}, but only {} do (is it truncated?)",
          where_, count, at_, left());
    const std::byte* here = bytes_.data() + at_;
    at_ += static_cast<std::size_t>(count);
    return here;
  }

  template <class T>
  Result<T> read() {
    COPPICE_TRY(const std::byte* here, take(sizeof(T)));
    T value;
    std::memcpy(&value, here, sizeof(T));
    return value;
  }

  Result<std::string_view> read_string() {
    COPPICE_TRY(const auto length, read<std::uint64_t>());
    COPPICE_TRY(const std::byte* here, take(length));
    return std::string_view(reinterpret_cast<const char*>(here), static_cast<std::size_t>(length));
  }

  Result<std::string_view> read_name() {
    const std::size_t start = at_;
    COPPICE_TRY(const std::string_view name, read_string());
    if (name.empty() || name.size() > kMaxNameBytes)
      return wrong("{} at offset {} has a name of {} bytes; 1 to {} are allowed", where_, start, name.size(),
                   kMaxNameBytes);
    return name;
  }

  Status read_header();
  Status read_keys();
  Status read_value(Value& value);
  Status read_array(Value& value);
  Status read_elements(Value& value);
  Status check_booleans(const Value& value);
  Status set_alignment();
  Status read_tensors();
  Status read_shape(Tensor& tensor);
  Status read_format(Tensor& tensor);
  Status place_tensors();
  Status check_overlaps();

  // Fills `sorted` with the items' indices in order of name; two of one name are refused.
  template <class Item>
  Status sort_names(const std::vector<Item>& items, std::vector<std::uint32_t>& sorted,
                    std::string_view kind) {
    sorted = sorted_by_name(items);
    for (std::size_t i = 1; i < sorted.size(); ++i)
      if (items[sorted[i - 1]].name == items[sorted[i]].name)
        return wrong("{} {} appears twice; names must differ", kind, quoted(items[sorted[i]].name));
    return {};
  }

  Access::State& state_;
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  std::string where_ = "the header";  // what is being read, for messages
  std::uint64_t key_count_ = 0;
  std::uint64_t tensor_count_ = 0;
  std::uint64_t alignment_ = kDefaultAlignment;
  std::vector<std::uint64_t> offsets_;  // [tensors], from the start of the data
};

Status Parser::read_header() {
  COPPICE_TRY(const std::byte* magic, take(4));
  if (std::memcmp(magic, kMagic, 4) != 0)
    return wrong("is not a GGUF file: it begins with {}, not 'GGUF'",
                 quoted(std::string_view(reinterpret_cast<const char*>(magic), 4)));
  COPPICE_TRY(state_.version, read<std::uint32_t>());
  const std::uint32_t version = state_.version;
  if (version != 0 && (version & 0xffff) == 0)
    return wrong(
        "is a big-endian GGUF file (its version, read as little endian, is {:#x}); only little-endian "
        "files are read: convert it",
        version);
  if (version == 1)
    return wrong(
        "is GGUF version 1, whose counts have 32 bits; versions {} and {} are read: convert the model again "
        "with a current converter",
        kOldestVersion, kVersion);
  if (version < kOldestVersion || version > kVersion)
    return wrong("is GGUF version {}; versions {} and {} are read", version, kOldestVersion, kVersion);
  COPPICE_TRY(tensor_count_, read<std::uint64_t>());
  COPPICE_TRY(key_count_, read<std::uint64_t>());
  return {};
}

Status Parser::read_keys() {
  if (key_count_ > left() / kMinKeyBytes)
    return wrong("the header claims {} keys, but the {} bytes after it can hold {} at most", key_count_,
                 left(), left() / kMinKeyBytes);
  for (std::uint64_t i = 0; i < key_count_; ++i) {
    where_ = fmt::format("key {} of {}", i + 1, key_count_);
    COPPICE_TRY(const std::string_view name, read_name());
    where_ = "key " + quoted(name);
    Key& key = state_.keys.emplace_back();
    key.name = name;
    COPPICE_TRY_STATUS(read_value(key.value));
  }
  COPPICE_TRY_STATUS(sort_names(state_.keys, state_.keys_by_name, "key"));
  return set_alignment();
}

Status Parser::read_value(Value& value) {
  const std::size_t start = at_;
  COPPICE_TRY(const auto type, read<std::uint32_t>());
  if (type > static_cast<std::uint32_t>(Type::f64))
    return wrong("{} has the value type {} at offset {}; 0 to 12 are known", where_, type, start);
  value.type = static_cast<Type>(type);
  return value.type == Type::array ? read_array(value) : read_elements(value);
}

Status Parser::read_array(Value& value) {
  const std::size_t start = at_;
  COPPICE_TRY(const auto type, read<std::uint32_t>());
  if (type == static_cast<std::uint32_t>(Type::array))
    return wrong("{} is an array of arrays at offset {}; arrays of numbers or strings are read", where_,
                 start);
  if (type > static_cast<std::uint32_t>(Type::f64))
    return wrong("{} is an array of elements of type {} at offset {}; 0 to 12 are known", where_, type,
                 start);
  value.type = static_cast<Type>(type);
  value.is_array = true;
  COPPICE_TRY(value.count, read<std::uint64_t>());
  const std::uint64_t smallest = value.type == Type::string ? 8 : element_bytes(value.type);
  if (value.count > left() / smallest)
    return wrong("{} claims {} elements at offset {}, but the {} bytes after it can hold {} at most", where_,
                 value.count, start, left(), left() / smallest);
  return read_elements(value);
}

// value.count is known to fit what is left, at the least size of an element.
Status Parser::read_elements(Value& value) {
  if (value.type == Type::string) {
    value.strings.reserve(static_cast<std::size_t>(value.is_array ? value.count : 1));
    for (std::uint64_t i = 0; i < value.count; ++i) {
      COPPICE_TRY(const std::string_view text, read_string());
      value.strings.push_back(text);
    }
    return {};
  }
  COPPICE_TRY(value.data, take(value.count * element_bytes(value.type)));
  return value.type == Type::boolean ? check_booleans(value) : Status();
}

Status Parser::check_booleans(const Value& value) {
  for (std::uint64_t i = 0; i < value.count; ++i)
    if (value.integer(i) > 1)
      return wrong("{} has {} for a boolean (element {}); 0 or 1 would be right", where_, value.integer(i),
                   i);
  return {};
}

Status Parser::set_alignment() {
  const auto found = std::find_if(state_.keys.begin(), state_.keys.end(),
                                  [](const Key& key) { return key.name == kAlignmentKey; });
  if (found == state_.keys.end()) return {};
  const Value& value = found->value;
  if (value.is_array || value.type != Type::u32)
    return wrong("key {} is of type {}{}, not u32", quoted(kAlignmentKey), value.is_array ? "array of " : "",
                 type_name(value.type));
  alignment_ = static_cast<std::uint64_t>(value.integer());
  if (!valid_alignment(alignment_))
    return wrong("key {} is {}; a power of two from 8 to {} would be right", quoted(kAlignmentKey),
                 alignment_, kMaxAlignment);
  return {};
}

Status Parser::read_tensors() {
  if (tensor_count_ > left() / kMinTensorBytes)
    return wrong("the header claims {} tensors, but the {} bytes after the keys can describe {} at most",
                 tensor_count_, left(), left() / kMinTensorBytes);
  for (std::uint64_t i = 0; i < tensor_count_; ++i) {
    where_ = fmt::format("tensor {} of {}", i + 1, tensor_count_);
    COPPICE_TRY(const std::string_view name, read_name());
    where_ = "tensor " + quoted(name);
    Tensor& tensor = state_.tensors.emplace_back();
    tensor.name = name;
    COPPICE_TRY_STATUS(read_shape(tensor));
    COPPICE_TRY_STATUS(read_format(tensor));
    COPPICE_TRY(const auto offset, read<std::uint64_t>());
    if (offset % alignment_ != 0)
      return wrong("{} starts at offset {} of the data, which is not a multiple of the alignment {}", where_,
                   offset, alignment_);
    offsets_.push_back(offset);
  }
  return sort_names(state_.tensors, state_.tensors_by_name, "tensor");
}

Status Parser::read_shape(Tensor& tensor) {
  COPPICE_TRY(const auto rank, read<std::uint32_t>());
  if (rank < 1 || rank > 4) return wrong("{} has {} dimensions; 1 to 4 would be right", where_, rank);
  tensor.rank = static_cast<int>(rank);
  std::int64_t values = 1;
  for (std::uint32_t i = 0; i < rank; ++i) {
    COPPICE_TRY(const auto size, read<std::uint64_t>());
    if (size < 1) return wrong("{} has size 0 in dimension {}; at least 1 would be right", where_, i);
    // INT64_MAX / 8 bounds the values, so that bytes (at most 4 a value) and bits cannot overflow either.
    if (size > static_cast<std::uint64_t>(INT64_MAX / 8 / values))
      return wrong("{} has more values than any file can hold: size {} in dimension {}", where_, size, i);
    tensor.shape[i] = static_cast<std::int64_t>(size);
    values *= tensor.shape[i];
  }
  return {};
}

Status Parser::read_format(Tensor& tensor) {
  COPPICE_TRY(const auto type, read<std::uint32_t>());
  tensor.format = find_format(type);
  if (tensor.format == nullptr)
    return wrong("{} is stored as type {}, which is not supported; supported are {}", where_,
                 type_label(type), supported_formats());
  if (tensor.shape[0] % tensor.format->block_values != 0)
    return wrong("{} has rows of {} values, but {} needs a multiple of {}", where_, tensor.shape[0],
                 tensor.format->name, tensor.format->block_values);
  tensor.bytes = row_bytes(*tensor.format, tensor.values());
  return {};
}

// Offsets become addresses: all tensors must end inside the file. One sentence tells how much is missing in
// all.
Status Parser::place_tensors() {
  if (state_.tensors.empty()) return {};
  const std::uint64_t start = (at_ + alignment_ - 1) / alignment_ * alignment_;
  const std::uint64_t size = bytes_.size();
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    Tensor& tensor = state_.tensors[i];
    if (offsets_[i] > UINT64_MAX / 4 - start)  // bytes are below 2^63: sums stay below 2^64
      return wrong("tensor {} starts at offset {} of the data, beyond any file", quoted(tensor.name),
                   offsets_[i]);
    end = std::max(end, start + offsets_[i] + tensor.bytes);
  }
  if (end > size)
    return wrong("the file is truncated: its tensors end at byte {}, but it has {}, so {} bytes are missing",
                 end, size, end - size);
  for (std::size_t i = 0; i < offsets_.size(); ++i)
    state_.tensors[i].data = bytes_.data() + static_cast<std::size_t>(start + offsets_[i]);
  return {};
}

Status Parser::check_overlaps() {
  std::vector<const Tensor*> order;
  order.reserve(state_.tensors.size());
  for (const Tensor& tensor : state_.tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const Tensor* a, const Tensor* b) { return a->data < b->data; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->data + order[i - 1]->bytes > order[i]->data)
      return wrong("tensors {} and {} overlap at byte {}", quoted(order[i - 1]->name), quoted(order[i]->name),
                   order[i]->data - bytes_.data());
  return {};
}

}  // namespace

Status Access::parse(File::State& state) { return Parser(state).run(); }

}  // namespace coppice::core::gguf
