// What reader and writer must agree on, and the parts of File that its parser fills in.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"

namespace coppice::core::gguf {

static_assert(sizeof(std::size_t) == 8, "files are larger than a 32-bit address space");

inline constexpr char kMagic[] = "GGUF";
inline constexpr std::uint32_t kVersion = 3;        // that is written
inline constexpr std::uint32_t kOldestVersion = 2;  // that is read: its counts have 64 bits as well
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

// Indices of items in order of their names; two of one name are next to each other.
template <class Item>
std::vector<std::uint32_t> sorted_by_name(const std::vector<Item>& items) {
  std::vector<std::uint32_t> sorted(items.size());
  std::iota(sorted.begin(), sorted.end(), 0u);
  std::sort(sorted.begin(), sorted.end(), [&](std::uint32_t a, std::uint32_t b) {
    return items[a].name != items[b].name ? items[a].name < items[b].name : a < b;
  });
  return sorted;
}

struct File::State {
  std::vector<MappedFile> mappings;  // of the parts; none for parse()
  std::vector<Part> parts;
  std::uint32_t version = 0;
  std::vector<Key> keys;
  std::vector<Tensor> tensors;
  std::vector<std::uint32_t> keys_by_name;
  std::vector<std::uint32_t> tensors_by_name;
};

// Makes Files; the door of parser and joiner to what is private.
struct Access {
  using State = File::State;
  static std::shared_ptr<const File> make(std::unique_ptr<State> state);
  static Status parse(State& state);                           // fills everything from its only part
  static Result<State> join(std::vector<State> parts);         // of a split file, or the one of a whole one
  static Result<std::vector<State>> open(const std::string&);  // all parts of the file with this path
};

}  // namespace coppice::core::gguf
