// The table of GGUF block formats: one row per format (format_rows.inc). Adding one is a row there and one
// implementation file; if no packed kind fits it, one more kind in packed.h.
#pragma once

#include <coppice/error.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "quant/packed.h"

namespace coppice::core {

struct Format {
  std::uint32_t type;     // the number in the file (ggml_type)
  std::string_view name;  // "Q4_1"
  int block_values;       // values in a block; 1 for float formats
  int block_bytes;
  PackedKind packed;  // what pack() makes of it
  // values [count] from blocks; count is a multiple of block_values. Equal to the gguf package's dequantize.
  void (*unpack)(const std::byte* blocks, float* values, std::int64_t count);
  // Null: nothing here writes this format (see format_to_write). importance: [count], how much an error of
  // each value matters, which a format may heed, or null. Without it and where the gguf package has a
  // quantize, the same bytes.
  void (*quantize)(const float* values, const float* importance, std::byte* blocks, std::int64_t count);
  // Writes outputs 0 .. outputs - 1 (at most 32) of a group of the packed layout, for `inputs` inputs (whole
  // blocks) from `group` on, out of as many tensor rows `stride` bytes apart.
  void (*pack_rows)(const std::byte* rows, std::size_t stride, int outputs, int inputs, std::byte* group);
  // The first scale that is not finite in [blocks, count values), as a value index; -1 if none.
  std::int64_t (*find_nonfinite)(const std::byte* blocks, std::int64_t count);
  std::uint32_t file_type;  // general.file_type of a file whose matrices are nearly all of this format
  bool weights = true;  // false: integers, which a file may hold beside its weights. They are never packed
};

std::span<const Format> formats();                 // of weights
const Format* find_format(std::uint32_t type);     // null if there is no such row; knows I64 too
const Format* find_format(std::string_view name);  // case-insensitive; the same

// The format called `name`, in any case, that has a quantiser and of which rows of each of `widths` values
// are whole blocks; or what is wrong and which formats there are.
Result<const Format*> format_to_write(std::string_view name, std::span<const int> widths = {});

std::size_t row_bytes(const Format& format, std::int64_t values);

// Packs groups [group_begin, group_end) of a matrix whose `data` is already sized; call from several threads.
void pack_groups(const Format& format, const std::byte* tensor, PackedMatrix& matrix, int group_begin,
                 int group_end);
// Sizes and packs the whole of it.
Result<PackedMatrix> pack(const Format& format, const std::byte* tensor, int outputs, int inputs);

// f16 and bf16 conversions, round to nearest even; the same bits everywhere.
float f16_to_f32(std::uint16_t half);
std::uint16_t f32_to_f16(float value);
float bf16_to_f32(std::uint16_t half);
std::uint16_t f32_to_bf16(float value);

}  // namespace coppice::core
