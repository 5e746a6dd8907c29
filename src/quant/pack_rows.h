// What packing is: rows of the file become lanes of a group. Written with the compiler's own vectors of 16
// bytes, which every CPU we know has, so that a group is packed at the speed of memory: four rows (of 4-byte
// pieces) or eight (of 2-byte values) are read 16 bytes each, transposed in registers and written whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "quant/blocks.h"
#include "quant/packed.h"

namespace coppice::core {

using Dwords = std::uint32_t __attribute__((vector_size(16)));
using Words = std::uint16_t __attribute__((vector_size(16)));

// out[step * j + 4 * r] = piece j of row r, exclusive-or `flip`; j and r in 0..3, pieces of 4 bytes.
inline void transpose_dwords(const std::byte* rows, std::size_t stride, std::byte* out, std::size_t step,
                             std::uint32_t flip = 0) {
  const auto a = load<Dwords>(rows) ^ flip, b = load<Dwords>(rows + stride) ^ flip;
  const auto c = load<Dwords>(rows + 2 * stride) ^ flip, d = load<Dwords>(rows + 3 * stride) ^ flip;
  const Dwords ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Dwords cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Dwords ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Dwords cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store<Dwords>(out, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
  store<Dwords>(out + step, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
  store<Dwords>(out + 2 * step, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
  store<Dwords>(out + 3 * step, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
}

// out[step * j + 2 * r] = value j of row r; j and r in 0..7, values of 2 bytes.
inline void transpose_words(const std::byte* rows, std::size_t stride, std::byte* out, std::size_t step) {
  Words row[8], pairs[8];
  for (int r = 0; r < 8; ++r) row[r] = load<Words>(rows + stride * static_cast<std::size_t>(r));
  for (int r = 0; r < 4; ++r) {  // rows r and r + 4 interleaved: values 0..3, and 4..7
    pairs[2 * r] = __builtin_shufflevector(row[r], row[r + 4], 0, 8, 1, 9, 2, 10, 3, 11);
    pairs[2 * r + 1] = __builtin_shufflevector(row[r], row[r + 4], 4, 12, 5, 13, 6, 14, 7, 15);
  }
  for (int high = 0; high < 2; ++high) {
    const Words p0 = pairs[high], p1 = pairs[2 + high], p2 = pairs[4 + high], p3 = pairs[6 + high];
    const Words even_low = __builtin_shufflevector(p0, p2, 0, 8, 1, 9, 2, 10, 3, 11);  // rows 0 2 4 6
    const Words even_high = __builtin_shufflevector(p0, p2, 4, 12, 5, 13, 6, 14, 7, 15);
    const Words odd_low = __builtin_shufflevector(p1, p3, 0, 8, 1, 9, 2, 10, 3, 11);  // rows 1 3 5 7
    const Words odd_high = __builtin_shufflevector(p1, p3, 4, 12, 5, 13, 6, 14, 7, 15);
    std::byte* at = out + 4 * step * static_cast<std::size_t>(high);
    store<Words>(at, __builtin_shufflevector(even_low, odd_low, 0, 8, 1, 9, 2, 10, 3, 11));
    store<Words>(at + step, __builtin_shufflevector(even_low, odd_low, 4, 12, 5, 13, 6, 14, 7, 15));
    store<Words>(at + 2 * step, __builtin_shufflevector(even_high, odd_high, 0, 8, 1, 9, 2, 10, 3, 11));
    store<Words>(at + 3 * step, __builtin_shufflevector(even_high, odd_high, 4, 12, 5, 13, 6, 14, 7, 15));
  }
}

// Where the codes of output `lane` of a group begin in a block of the packed layout (packed.h).
inline std::byte* lane_codes(std::byte* block, int lane, std::size_t half_bytes) {
  return block + static_cast<std::size_t>(lane / kHalfOutputs) * half_bytes +
         4 * static_cast<std::size_t>(lane % kHalfOutputs);
}

// The codes of one block: kBytes (16 or 32) of each of `outputs` rows, each piece of 4 exclusive-or `flip`.
template <int kBytes>
void pack_codes(const std::byte* rows, std::size_t stride, int outputs, std::byte* block,
                std::uint32_t flip = 0) {
  constexpr std::size_t kHalfBytes = std::size_t{kBytes} * kHalfOutputs;
  int lane = 0;
  for (; lane + 4 <= outputs; lane += 4, rows += 4 * stride)
    for (int j = 0; j < kBytes; j += 16)
      transpose_dwords(rows + j, stride, lane_codes(block, lane, kHalfBytes) + 16 * j, 64, flip);
  for (; lane < outputs; ++lane, rows += stride)
    for (int j = 0; j < kBytes; j += 4)
      store(lane_codes(block, lane, kHalfBytes) + 16 * j, load<std::uint32_t>(rows + j) ^ flip);
}

// One f16 of each row (a scale, an offset) side by side.
inline void pack_halves(const std::byte* rows, std::size_t stride, int outputs, std::byte* out) {
  for (int lane = 0; lane < outputs; ++lane, rows += stride) std::memcpy(out + 2 * lane, rows, 2);
}

}  // namespace coppice::core
