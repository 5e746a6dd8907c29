// Writes GGUF v3. Collect keys and tensors, then write(): tensors are streamed, the file appears whole or
// not. A key added again replaces the earlier value (so a copied file's keys can be changed); a tensor added
// again, or one whose bytes do not fit its shape, is a bug of the caller's. `general.alignment` is kept to.
#pragma once

#include <coppice/error.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gguf/file.h"

namespace coppice::core::gguf {

class Writer {
 public:
  Writer() = default;
  Writer(Writer&&) = default;
  Writer& operator=(Writer&&) = default;

  void add_text(std::string key, std::string value);
  void add_u32(std::string key, std::uint32_t value);
  void add_i32(std::string key, std::int32_t value);
  void add_u64(std::string key, std::uint64_t value);
  void add_f32(std::string key, float value);
  void add_bool(std::string key, bool value);
  void add_texts(std::string key, std::vector<std::string> values);
  void add_i32s(std::string key, std::vector<std::int32_t> values);
  void add_u32s(std::string key, std::vector<std::uint32_t> values);
  void add_f32s(std::string key, std::vector<float> values);
  void add_u8s(std::string key, std::vector<std::uint8_t> values);
  void copy(const Key& key);        // as it is; the source file must outlive write()
  void copy(const Tensor& tensor);  // bytes as they are; the same
  // `bytes` is moved in. shape: ne[0] first, rank values.
  void add_tensor(std::string name, const Format& format, std::vector<std::int64_t> shape,
                  std::vector<std::byte> bytes);
  // Quantises f32 values to `format`.
  void add_values(std::string name, const Format& format, std::vector<std::int64_t> shape,
                  std::span<const float> values);
  // Bytes that `produce` makes each time the file is written, piece by piece: a tensor need not fit in
  // memory.
  void add_produced(std::string name, const Format& format, std::vector<std::int64_t> shape,
                    std::function<Status(const Append&)> produce);

  Status write(const std::string& path) const;
  std::vector<std::byte> to_bytes() const;  // for tests and fuzz seeds
  std::uint64_t bytes() const;              // of the whole file

 private:
  struct Item {
    std::string name;
    const Format* format;
    std::vector<std::int64_t> shape;
    std::uint64_t size;  // bytes
    std::vector<std::byte> owned;
    std::span<const std::byte> bytes;                // what is written, or
    std::function<Status(const Append&)> produce{};  // what writes it
  };
  void put(std::string key, std::vector<std::byte> encoded);
  void put(std::string name, const Format& format, std::vector<std::int64_t> shape,
           std::span<const std::byte> bytes);
  Item& put_shape(std::string name, const Format& format, std::vector<std::int64_t> shape);
  std::uint64_t alignment() const;
  std::vector<std::byte> header() const;  // all that comes before the tensors' bytes
  Status emit(const Append& append) const;

  std::vector<std::pair<std::string, std::vector<std::byte>>> keys_;  // key, its encoded type and value
  std::vector<Item> tensors_;
};

}  // namespace coppice::core::gguf
