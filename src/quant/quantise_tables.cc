// The quantisers of formats whose codes name values of a table: IQ4_NL, IQ4_XS, MXFP4. What their bytes mean
// stands in tables.cc.
#include "quant/blocks.h"
#include "quant/packed_shape.h"
#include "quant/quantise.h"

namespace coppice::core {
namespace {

using quantise::List;
using quantise::Scaled;
using quantise::SuperBlock;

constexpr std::uint16_t kInfinite = 0x7c00;

// MXFP4's code of a place among its levels, -7 .. 7: 0 .. 7, and from 8 on the same below zero.
constexpr int e2m1_code(int place) { return place >= 0 ? place : 8 - place; }

constexpr List<16> non_linear_levels() {
  constexpr int kZero = shape_of(PackedKind::q4_table).zero;
  List<16> list = {{}, 0, 0, 5, 4.0f};
  for (int i = 0; i < 16; ++i) list.values[i] = static_cast<float>(kNonlinear4[i] - kZero);
  list.low = list.values[0];
  list.high = list.values[15];
  return list;
}
constexpr List<15> e2m1_levels() {
  constexpr int kZero = shape_of(PackedKind::q4_power).zero;
  List<15> list = {{}, 0, 0, 0, 0};
  for (int i = 0; i < 15; ++i) list.values[i] = static_cast<float>(kFloat4[e2m1_code(i - 7)] - kZero);
  list.low = list.values[0];
  list.high = list.values[14];
  return list;
}

// The levels of packed_shape.h, rising.
constexpr List<16> kNonLinear = non_linear_levels();
constexpr List<15> kE2m1 = e2m1_levels();

template <int kCount>
int index_of(const List<kCount>& list, float value) {
  return static_cast<int>(std::lower_bound(list.values, list.values + kCount, value) - list.values);
}

// Byte i: code i below, code 16 + i above.
template <class Index>
void write_nibbles(const float* codes, Index index, std::byte* bytes) {
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<std::byte>(index(codes[i]) | index(codes[16 + i]) << 4);
}

int non_linear(float value) { return index_of(kNonLinear, value); }
int e2m1(float value) { return e2m1_code(index_of(kE2m1, value) - 7); }

}  // namespace

namespace iq4_nl {

// The best scale, rounded; then the codes nearest to that.
void quantize(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += kBlockValues, blocks += 18) {
    Scaled in;
    in.read(values + at, importance == nullptr ? nullptr : importance + at, kBlockValues, kBlockValues);
    float codes[kBlockValues] = {};
    std::uint16_t d = in.finite ? 0 : kInfinite;
    if (in.unit != 0) {
      const float scale = quantise::best_scale(kNonLinear, in.x, in.w, kBlockValues);
      d = in.half_bits(scale);
      take_codes(kNonLinear, in.x, in.w, kBlockValues, in.half(scale), codes);
    }
    store(blocks, d);
    write_nibbles(codes, non_linear, blocks + 2);
  }
}

}  // namespace iq4_nl

namespace iq4_xs {

void quantize(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  constexpr int kValues = 256;
  for (std::int64_t at = 0; at < count; at += kValues, blocks += 136) {
    Scaled in;
    in.read(values + at, importance == nullptr ? nullptr : importance + at, kValues, kBlockValues);
    SuperBlock fit;
    if (in.unit != 0) fit = fit_scales(in, {8, kBlockValues, -32, 31}, kNonLinear);
    const bool usable = in.finite && (in.unit == 0 || fit.error < INFINITY);
    store(blocks, usable ? in.half_bits(fit.d) : kInfinite);
    int high = 0, low[4] = {};
    for (int j = 0; j < 8; ++j) {
      const int scale = fit.scales[j] + 32;
      high |= scale >> 4 << 2 * j;
      low[j / 2] |= (scale & 15) << 4 * (j % 2);
    }
    store(blocks + 2, static_cast<std::uint16_t>(high));
    for (int i = 0; i < 4; ++i) blocks[4 + i] = static_cast<std::byte>(low[i]);
    for (int j = 0; j < 8; ++j) write_nibbles(fit.codes + 32 * j, non_linear, blocks + 8 + 16 * j);
  }
}

}  // namespace iq4_xs

namespace mxfp4 {

// A power of two for 32 values. Tried are that whose largest value is 1.5 times the largest power of two in
// the block, twice and half of it.
void quantize(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += kBlockValues, blocks += 17) {
    Scaled in;
    in.read(values + at, importance == nullptr ? nullptr : importance + at, kBlockValues, kBlockValues);
    float codes[kBlockValues] = {}, tried[kBlockValues];
    int exponent = in.finite ? 0 : 255;
    if (in.unit != 0) {
      const int unit = static_cast<int>(std::bit_cast<std::uint32_t>(in.unit) >> 23);  // 2^(unit - 127)
      float best = INFINITY;
      for (const int shift : {-3, -2, -4}) {
        const int stored = unit + shift + 1;       // the byte e stands for 2^(e - 128)
        if (stored < 0 || stored > 252) continue;  // of 253 the largest value is infinite
        const float error = take_codes(kE2m1, in.x, in.w, kBlockValues, std::ldexp(1.0f, shift), tried);
        if (!(error < best)) continue;
        best = error;
        exponent = stored;
        std::copy(tried, tried + kBlockValues, codes);
      }
    }
    blocks[0] = static_cast<std::byte>(exponent);
    write_nibbles(codes, e2m1, blocks + 1);
  }
}

}  // namespace mxfp4
}  // namespace coppice::core
