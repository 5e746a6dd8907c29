// The table, of which format_rows.inc has the rows.
#include "quant/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "quant/blocks.h"

namespace coppice::core {
namespace {

constexpr Format kFormats[] = {
#define COPPICE_FORMAT(type, name, family, values, bytes, kind, file_type) \
  {type,                                                                   \
   #name,                                                                  \
   values,                                                                 \
   bytes,                                                                  \
   PackedKind::kind,                                                       \
   family::unpack,                                                         \
   family::quantize,                                                       \
   family::pack_rows,                                                      \
   family::find_nonfinite,                                                 \
   file_type},
#include "quant/format_rows.inc"
#undef COPPICE_FORMAT
};
// Maps of token ids (the d2t of a draft head).
constexpr Format kIntegers = {
    27, "I64", 1, 8, PackedKind::f32, i64::unpack, i64::quantize, i64::pack_rows, i64::find_nonfinite,
    0,  false};

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return upper(x) == upper(y); });
}

}  // namespace

std::span<const Format> formats() { return kFormats; }

const Format* find_format(std::uint32_t type) {
  for (const Format& format : kFormats)
    if (format.type == type) return &format;
  return type == kIntegers.type ? &kIntegers : nullptr;
}

const Format* find_format(std::string_view name) {
  for (const Format& format : kFormats)
    if (same_letters(format.name, name)) return &format;
  return same_letters(kIntegers.name, name) ? &kIntegers : nullptr;
}

Result<const Format*> format_to_write(std::string_view name, std::span<const int> widths) {
  const Format* format = find_format(name);
  if (format == nullptr || !format->weights || format->quantize == nullptr) {
    std::string names;
    for (const Format& row : kFormats)
      if (row.quantize != nullptr) names += (names.empty() ? "" : ", ") + std::string(row.name);
    return fail(fmt::format("{}: {}; there is {}", name,
                            format == nullptr || !format->weights ? "there is no such format"
                                                                  : "this format can be read but not written",
                            names));
  }
  for (const int width : widths)
    if (width % format->block_values != 0)
      return fail(
          fmt::format("{}: its blocks have {} values, and a matrix has {} inputs, which is no multiple",
                      format->name, format->block_values, width));
  return format;
}

std::size_t row_bytes(const Format& format, std::int64_t values) {
  COPPICE_CHECK(values >= 0 && values % format.block_values == 0);
  return static_cast<std::size_t>(values / format.block_values) *
         static_cast<std::size_t>(format.block_bytes);
}

namespace {

// Asks for [begin, end) of the file's bytes ahead of their use, into the second cache.
void fetch(const std::byte* begin, const std::byte* end) {
  for (; begin < end; begin += 64) __builtin_prefetch(begin, 0, 2);
}

}  // namespace

// Thirty-two rows are read side by side, which the CPU's own prefetching does not follow; but the rows of the
// next group lie behind these, all in one piece, and are fetched slice by slice while this group is packed.
void pack_groups(const Format& format, const std::byte* tensor, PackedMatrix& matrix, int group_begin,
                 int group_end) {
  constexpr int kSliceInputs = 8 * kBlockInputs;
  const std::size_t stride = row_bytes(format, matrix.inputs);
  const std::byte* end = tensor + stride * static_cast<std::size_t>(matrix.outputs);
  const int unit_inputs = packed_unit_inputs(matrix.kind);
  const std::size_t unit = packed_unit_bytes(matrix.kind);
  for (int g = group_begin; g < group_end; ++g) {
    std::byte* group = matrix.data.data() + matrix.group_bytes() * static_cast<std::size_t>(g);
    const int first = g * kGroupOutputs;
    const int outputs = std::min(kGroupOutputs, matrix.outputs - first);
    if (outputs < kGroupOutputs) std::memset(group, 0, matrix.group_bytes());
    const std::byte* rows = tensor + stride * static_cast<std::size_t>(first);
    const std::byte* next = rows + stride * kGroupOutputs;
    for (int at = 0; at < matrix.inputs; at += kSliceInputs) {
      const int inputs = std::min(kSliceInputs, matrix.inputs - at);
      const std::size_t slice = row_bytes(format, inputs) * kGroupOutputs;
      if (next < end) fetch(next, std::min(next + slice, end));
      next += slice;
      format.pack_rows(rows + row_bytes(format, at), stride, outputs, inputs,
                       group + unit * static_cast<std::size_t>(at / unit_inputs));
    }
  }
}

Result<PackedMatrix> pack(const Format& format, const std::byte* tensor, int outputs, int inputs) {
  if (outputs < 1 || inputs < 1 || inputs % format.block_values != 0 || !format.weights)
    return fail(fmt::format(
        "a {} matrix of {} rows of {} values cannot be packed: rows of a multiple of {} values can",
        format.name, outputs, inputs, format.block_values));
  PackedMatrix matrix;
  matrix.kind = format.packed;
  matrix.outputs = outputs;
  matrix.inputs = inputs;
  COPPICE_TRY(matrix.data, Buffer::make(matrix.bytes()));
  pack_groups(format, tensor, matrix, 0, matrix.groups());
  return matrix;
}

}  // namespace coppice::core
