// Files that are wrong in one place each, after the faults that were published of other readers of GGUF:
// counts, lengths, sizes and offsets that overflow or lie, types that do not match, nesting, names that occur
// twice, alignments that are none. file_test.cc says what is answered; fuzz targets begin from them.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/layout.h"

namespace coppice::core::gguf::testing {

struct BadFile {
  std::string name;
  std::vector<std::byte> bytes;
  std::string says;  // a part of the message
};
inline void PrintTo(const BadFile& file, std::ostream* out) { *out << file.name; }

// Bytes of a GGUF file, put down one field at a time: it can say what Writer never would.
class RawFile {
 public:
  template <class T>
  RawFile& number(T value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(value));
    return *this;
  }
  RawFile& raw(std::string_view text) {
    const auto* from = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), from, from + text.size());
    return *this;
  }
  RawFile& text(std::string_view text) { return number(std::uint64_t{text.size()}).raw(text); }
  RawFile& u32(std::uint32_t value) { return number(value); }
  RawFile& u64(std::uint64_t value) { return number(value); }
  RawFile& head(std::uint64_t tensors, std::uint64_t keys) {
    return raw("GGUF").u32(3).u64(tensors).u64(keys);
  }
  RawFile& key(std::string_view name, Type type) { return text(name).u32(static_cast<std::uint32_t>(type)); }
  RawFile& array(std::string_view name, Type of, std::uint64_t count) {
    return key(name, Type::array).u32(static_cast<std::uint32_t>(of)).u64(count);
  }
  RawFile& tensor(std::string_view name, const std::vector<std::uint64_t>& shape, std::uint32_t type,
                  std::uint64_t offset) {
    text(name).u32(static_cast<std::uint32_t>(shape.size()));
    for (const std::uint64_t size : shape) u64(size);
    return u32(type).u64(offset);
  }
  // Padding to the alignment, then `count` bytes.
  RawFile& data(std::size_t count, std::size_t alignment = kDefaultAlignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment + count);
    return *this;
  }
  std::vector<std::byte> done() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

inline std::vector<BadFile> bad_files() {
  constexpr std::uint64_t kAll = ~std::uint64_t{0}, kTop = std::uint64_t{1} << 63;
  constexpr std::uint32_t kF32 = 0, kQ40 = 2;
  std::vector<BadFile> files;
  const auto add = [&](std::string name, const RawFile& file, std::string says) {
    files.push_back({std::move(name), file.done(), std::move(says)});
  };
  const auto raw = [] { return RawFile(); };

  // Counts.
  add("keys_overflow_the_product_of_their_size", raw().head(0, kAll / 14 + 2).data(64),
      "claims 1317624576693539403 keys");
  add("tensors_overflow_the_product_of_their_size", raw().head(kAll / 37 + 2, 0).data(64),
      "claims 498560650640798694 tensors");
  add("minus_one_keys", raw().head(0, kAll), "claims 18446744073709551615 keys");
  add("minus_one_tensors", raw().head(kAll, 0), "claims 18446744073709551615 tensors");
  add("more_keys_than_follow",
      raw().head(0, 2).key("a", Type::u8).number(std::uint8_t{1}).raw("0123456789abcdef"),
      "the file ends inside key 2 of 2");
  add("header_only", raw().raw("GGUF").u32(3), "the file ends inside the header");

  // Strings.
  add("key_name_longer_than_the_file", raw().head(0, 1).u64(kTop).raw("abcdefgh"),
      "the file ends inside key 1 of 1");
  add("key_name_length_that_wraps_around", raw().head(0, 1).u64(kAll - 7).raw("abcdefgh"),
      "the file ends inside key 1 of 1");
  add("key_name_of_a_megabyte", raw().head(0, 1).text(std::string(1 << 20, 'k')).u32(0).u32(0),
      "has a name of 1048576 bytes");
  add("key_name_empty", raw().head(0, 1).text("").u32(0).u32(0), "has a name of 0 bytes");
  add("string_longer_than_the_file", raw().head(0, 1).key("a", Type::string).u64(kAll).raw("abc"),
      "the file ends inside key 'a'");
  add("string_in_an_array_longer_than_the_file",
      raw().head(0, 1).array("a", Type::string, 2).text("good").u64(kTop + 1).raw("bad"),
      "the file ends inside key 'a'");

  // Arrays.
  add("array_of_2_to_the_62_words", raw().head(0, 1).array("a", Type::u32, kTop >> 1).data(64),
      "claims 4611686018427387904 elements");
  add("array_whose_bytes_wrap_to_a_few", raw().head(0, 1).array("a", Type::u64, (kTop >> 2) + 1).data(64),
      "claims 2305843009213693953 elements");
  add("array_of_2_to_the_64_minus_1_strings", raw().head(0, 1).array("a", Type::string, kAll).data(64),
      "claims 18446744073709551615 elements");
  add("array_of_arrays", raw().head(0, 1).array("a", Type::array, 1).u32(4).u64(1).u32(7),
      "is an array of arrays");
  {
    RawFile deep;
    deep.head(0, 1).array("a", Type::array, 1);
    for (int i = 0; i < 10000; ++i) deep.u32(static_cast<std::uint32_t>(Type::array)).u64(1);
    add("arrays_nested_ten_thousand_deep", deep, "is an array of arrays");
  }
  add("array_of_an_unknown_type", raw().head(0, 1).array("a", static_cast<Type>(13), 0).data(64),
      "elements of type 13");
  add("value_of_an_unknown_type", raw().head(0, 1).key("a", static_cast<Type>(0x80000000)).data(64),
      "has the value type 2147483648");
  add("boolean_that_is_neither", raw().head(0, 1).key("a", Type::boolean).number(std::uint8_t{255}),
      "has 255 for a boolean");

  // Names.
  add("key_twice",
      raw().head(0, 2).key("a", Type::u8).number(std::uint8_t{1}).key("a", Type::u8).number(std::uint8_t{2}),
      "key 'a' appears twice");
  add("key_twice_of_other_types",
      raw()
          .head(0, 2)
          .key("general.alignment", Type::u32)
          .u32(32)
          .key("general.alignment", Type::string)
          .text("64"),
      "key 'general.alignment' appears twice");
  add("tensor_twice", raw().head(2, 0).tensor("t", {8}, kF32, 0).tensor("t", {8}, kF32, 32).data(64),
      "tensor 't' appears twice");

  // Alignment.
  add("alignment_zero", raw().head(0, 1).key("general.alignment", Type::u32).u32(0),
      "'general.alignment' is 0");
  add("alignment_no_power_of_two", raw().head(0, 1).key("general.alignment", Type::u32).u32(48),
      "'general.alignment' is 48");
  add("alignment_of_two_gigabytes", raw().head(0, 1).key("general.alignment", Type::u32).u32(1u << 31),
      "'general.alignment' is 2147483648");
  add("alignment_that_is_text", raw().head(0, 1).key("general.alignment", Type::string).text("32"),
      "is of type string, not u32");
  add("alignment_that_is_an_array", raw().head(0, 1).array("general.alignment", Type::u32, 1).u32(32),
      "'general.alignment'");

  // Shapes.
  add("no_dimensions", raw().head(1, 0).tensor("t", {}, kF32, 0).data(64), "has 0 dimensions");
  add("five_dimensions", raw().head(1, 0).tensor("t", {8, 1, 1, 1, 1}, kF32, 0).data(64), "has 5 dimensions");
  add("minus_one_dimensions", raw().head(1, 0).text("t").u32(~0u).data(64), "has 4294967295 dimensions");
  add("size_zero", raw().head(1, 0).tensor("t", {8, 0}, kF32, 0).data(64), "has size 0 in dimension 1");
  add("size_negative", raw().head(1, 0).tensor("t", {kAll - 31}, kF32, 0).data(64),
      "more values than any file can hold");
  add("sizes_whose_product_wraps_to_zero",
      raw().head(1, 0).tensor("t", {std::uint64_t{1} << 32, std::uint64_t{1} << 32}, kF32, 0).data(64),
      "more values than any file can hold");
  add("sizes_whose_product_wraps_to_a_little",
      raw().head(1, 0).tensor("t", {(std::uint64_t{1} << 62) + 32, 4}, kQ40, 0).data(64),
      "more values than any file can hold");
  add("bytes_that_overflow_though_the_values_do_not",
      raw().head(1, 0).tensor("t", {(std::uint64_t{1} << 60) - 32}, kF32, 0).data(64),
      "the file is truncated");
  add("row_that_is_no_whole_block", raw().head(1, 0).tensor("t", {48, 2}, kQ40, 0).data(64),
      "needs a multiple of 32");
  add("format_unknown", raw().head(1, 0).tensor("t", {32}, 0x7fffffff, 0).data(64),
      "is stored as type 2147483647");
  add("format_that_was_removed", raw().head(1, 0).tensor("t", {32}, 4, 0).data(64), "is stored as type 4");

  // Places.
  add("data_past_the_end", raw().head(1, 0).tensor("t", {1000}, kF32, 0).data(64), "3936 bytes are missing");
  add("offset_past_the_end", raw().head(1, 0).tensor("t", {8}, kF32, 1 << 20).data(64),
      "the file is truncated");
  add("offset_that_wraps_around", raw().head(1, 0).tensor("t", {8}, kF32, kAll - 31).data(64),
      "beyond any file");
  add("offset_and_size_that_wrap_together",
      raw().head(1, 0).tensor("t", {(std::uint64_t{1} << 60) - 32}, kF32, kTop >> 2).data(64),
      "the file is truncated");
  add("offset_not_aligned", raw().head(1, 0).tensor("t", {8}, kF32, 4).data(64),
      "not a multiple of the alignment");
  add("tensors_at_one_place", raw().head(2, 0).tensor("a", {8}, kF32, 0).tensor("b", {8}, kF32, 0).data(64),
      "overlap at byte");
  add("tensor_that_reaches_into_the_next",
      raw().head(2, 0).tensor("a", {9}, kF32, 0).tensor("b", {8}, kF32, 32).data(64), "overlap at byte");
  add("no_data_at_all", raw().head(1, 0).tensor("t", {8}, kF32, 0), "the file is truncated");

  // Split files that say what cannot be.
  add("split_of_no_number", raw().head(0, 1).key("split.count", Type::u16).number(std::uint16_t{3}),
      "'split.no' does not say which");
  add("split_beyond_its_count",
      raw()
          .head(0, 2)
          .key("split.count", Type::u16)
          .number(std::uint16_t{3})
          .key("split.no", Type::u16)
          .number(std::uint16_t{3}),
      "key 'split.no' is 3; 0 to 2");
  add("split_into_minus_one", raw().head(0, 1).key("split.count", Type::i32).number(std::int32_t{-1}),
      "key 'split.count' is -1");
  add("split_count_that_is_text", raw().head(0, 1).key("split.count", Type::string).text("3"),
      "is no whole number");
  return files;
}

}  // namespace coppice::core::gguf::testing
