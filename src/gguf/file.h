// GGUF v2 and v3 (one layout), little endian, read by mmap. Everything is checked before anything is used:
// after open() succeeds every key, string, array and tensor lies inside the file, tensors do not overlap, and
// sizes do not overflow. The caller asks for values by key and type and gets either the value or a sentence
// that names the file and the key.
//
// A model may be split into parts, files called NAME-00001-of-00003.gguf (split.h). Any of them opens them
// all; together they are one File: the keys are those of the first part, without those that count the parts,
// and the tensors are those of all parts in order.
#pragma once

#include <coppice/error.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/os.h"
#include "quant/formats.h"

namespace coppice::core::gguf {

enum class Type : std::uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};

// A metadata value: a view into the file. Scalars are arrays of one.
struct Value {
  Type type = Type::u8;  // of the elements
  bool is_array = false;
  std::uint64_t count = 1;                // elements
  const std::byte* data = nullptr;        // numbers: little endian, packed (unaligned)
  std::vector<std::string_view> strings;  // strings: one view each

  bool is_number() const { return type != Type::string; }  // elements are numeric or boolean
  // Element i < count, converted; only where is_number(). integer() keeps within int64 (NaN is 0).
  double number(std::uint64_t i = 0) const;
  std::int64_t integer(std::uint64_t i = 0) const;
};

struct Tensor {
  std::string_view name;
  const Format* format = nullptr;
  int rank = 0;
  std::int64_t shape[4] = {1, 1, 1, 1};  // ne[0] (contiguous) first
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  int part = 0;  // which of File::parts() it lies in

  std::int64_t values() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
};

struct Key {
  std::string_view name;
  Value value;
};

// One file of those that a File was read from.
struct Part {
  std::string path;
  std::span<const std::byte> bytes;
};

class File {
 public:
  // Fails with one sentence: what is wrong, at which offset or name, what would be right.
  static Result<std::shared_ptr<const File>> open(const std::string& path);
  // The same over bytes that outlive the File (fuzzing, tests). `name` is used in messages.
  static Result<std::shared_ptr<const File>> parse(std::span<const std::byte> bytes, std::string name);
  // The same over all parts of a split file, in order; at least one.
  static Result<std::shared_ptr<const File>> parse(std::vector<Part> parts);

  const std::string& path() const;  // of the first part
  std::uint32_t version() const;
  std::size_t bytes() const;            // of all parts
  std::span<const Part> parts() const;  // one where the file is not split
  std::span<const Key> keys() const;
  std::span<const Tensor> tensors() const;

  // The memory of what was read of `bytes` (of one part's) goes back to the system, until they are read
  // again. Nothing happens where the bytes are not the File's own.
  void release(std::span<const std::byte> bytes) const;
  void release() const;  // of the whole file

  const Value* find(std::string_view key) const;
  const Tensor* tensor(std::string_view name) const;

  // Required and optional single values. The error names file, key, and the type that would be right.
  // integer() takes any integer type, number() floats as well. For the _or ones a value of another kind
  // counts as missing.
  Result<std::string_view> text(std::string_view key) const;
  Result<std::int64_t> integer(std::string_view key) const;
  Result<double> number(std::string_view key) const;
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise) const;
  double number_or(std::string_view key, double otherwise) const;
  std::string_view text_or(std::string_view key, std::string_view otherwise) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  friend struct Access;
  File();

 public:
  ~File();
};

}  // namespace coppice::core::gguf
