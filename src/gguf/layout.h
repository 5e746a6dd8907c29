// What reader and writer must agree on, and the parts of File that its parser fills in.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"

namespace coppice::core::gguf {

static_assert(sizeof(std::size_t) == 8, "files are larger than a 32-bit address space");

inline constexpr char kMagic[] = "GGUF";
inline constexpr std::uint32_t kVersion = 3;
inline constexpr std::string_view kAlignmentKey = "general.alignment";
inline constexpr std::uint64_t kDefaultAlignment = 32;
inline constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 20;

// The format asks for a multiple of 8; a power of two is what every writer uses; the bound keeps sums far
// from overflow.
constexpr bool valid_alignment(std::uint64_t alignment) {
  return alignment >= 8 && alignment <= kMaxAlignment && std::has_single_bit(alignment);
}

// Bytes of one element; 0 for strings and arrays, which have no fixed size, and for numbers that are no type.
std::size_t element_bytes(Type type);
std::string_view type_name(Type type);

// A name out of a file, fit for a message: in quotes, short, control characters escaped.
std::string quoted(std::string_view name);

struct File::State {
  MappedFile mapping;  // empty for parse()
  std::span<const std::byte> bytes;
  std::string path;
  std::uint32_t version = 0;
  std::vector<Key> keys;
  std::vector<Tensor> tensors;
  std::vector<std::uint32_t> keys_by_name;  // indices, sorted by name
  std::vector<std::uint32_t> tensors_by_name;
};

// Makes Files; the parser's door to what is private.
struct Access {
  static std::shared_ptr<const File> make(std::unique_ptr<File::State> state);
  static Status parse(File::State& state);  // fills everything from bytes and path
  using State = File::State;
};

}  // namespace coppice::core::gguf
