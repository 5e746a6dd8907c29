// The quantisers of the K formats; what their bytes mean stands in k_quants.cc, how scales and codes are
// found in quantise.h. What is not finite, or beyond the largest scale, gives a block whose scale is
// infinite, so that whoever looks (find_nonfinite) finds it.
#include "quant/blocks.h"
#include "quant/quantise.h"

namespace coppice::core {
namespace {

using quantise::Layout;
using quantise::Scaled;
using quantise::Steps;
using quantise::SuperBlock;

constexpr int kValues = 256;
constexpr std::uint16_t kInfinite = 0x7c00;

struct Filled {
  SuperBlock fit;
  std::uint8_t codes[kValues] = {};  // from 0
  std::uint16_t d = 0, m = 0;
};

Filled filled(const Scaled& in, const SuperBlock& fit, int zero) {
  Filled out;
  out.fit = fit;
  const bool usable = in.finite && (in.unit == 0 || fit.error < INFINITY);
  out.d = usable ? in.half_bits(fit.d) : kInfinite;
  out.m = in.half_bits(fit.m);
  for (int i = 0; i < kValues; ++i)
    out.codes[i] = static_cast<std::uint8_t>(static_cast<int>(fit.codes[i]) + zero);
  return out;
}

// Sixteen blocks or eight, with a minimum each.
Filled with_minima(const float* values, const float* importance, int block, float most_code, int most_scale) {
  Scaled in;
  in.read(values, importance, kValues, block);
  SuperBlock fit;
  if (in.unit != 0) fit = fit_minima(in, {kValues / block, block, 0, most_scale}, most_code, most_scale < 16);
  return filled(in, fit, 0);
}

Filled without_minima(const float* values, const float* importance, const Steps& codes, int least_scale,
                      int most_scale) {
  Scaled in;
  in.read(values, importance, kValues, 16);
  SuperBlock fit;
  if (in.unit != 0) fit = fit_scales(in, {16, 16, least_scale, most_scale}, codes);
  return filled(in, fit, -static_cast<int>(codes.low));
}

// Bits `shift` and up of the codes into planes of `bits` bits over runs of `run` bytes.
template <int bits, int run>
void write_planes(const std::uint8_t* codes, int shift, std::byte* bytes) {
  for (int first = 0; first < kValues; first += run * (8 / bits), bytes += run)
    for (int i = 0; i < run; ++i) {
      int byte = 0;
      for (int plane = 0; plane < 8 / bits; ++plane)
        byte |= (codes[first + plane * run + i] >> shift & ((1 << bits) - 1)) << bits * plane;
      bytes[i] = static_cast<std::byte>(byte);
    }
}

// The twelve bytes of Q4_K and Q5_K: eight scales and eight minima of 6 bits.
void write_scales_and_mins(const SuperBlock& fit, std::byte* bytes) {
  for (int i = 0; i < 4; ++i) {
    bytes[i] = static_cast<std::byte>(fit.scales[i] | fit.scales[4 + i] >> 4 << 6);
    bytes[4 + i] = static_cast<std::byte>(fit.mins[i] | fit.mins[4 + i] >> 4 << 6);
    bytes[8 + i] = static_cast<std::byte>((fit.scales[4 + i] & 15) | (fit.mins[4 + i] & 15) << 4);
  }
}

// Calls write(values, importance, block) for each super-block.
template <class Write>
void each_block(const float* values, const float* importance, std::byte* blocks, std::int64_t count,
                std::size_t bytes, Write write) {
  for (std::int64_t at = 0; at < count; at += kValues, blocks += bytes)
    write(values + at, importance == nullptr ? nullptr : importance + at, blocks);
}

}  // namespace

namespace q2_k {

void quantize(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  each_block(values, importance, blocks, count, 84, [](const float* x, const float* w, std::byte* block) {
    const Filled out = with_minima(x, w, 16, 3, 15);
    for (int j = 0; j < 16; ++j) block[j] = static_cast<std::byte>(out.fit.scales[j] | out.fit.mins[j] << 4);
    write_planes<2, 32>(out.codes, 0, block + 16);
    store(block + 80, out.d);
    store(block + 82, out.m);
  });
}

}  // namespace q2_k

namespace q3_k {

void quantize(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  each_block(values, importance, blocks, count, 110, [](const float* x, const float* w, std::byte* block) {
    const Filled out = without_minima(x, w, {-4, 3, 4, 0.2f}, -32, 31);
    write_planes<1, 32>(out.codes, 2, block);
    write_planes<2, 32>(out.codes, 0, block + 32);
    // Scales, 32 above: low nibbles of 0 .. 7 with those of 8 .. 15 above them; then the upper two bits.
    std::uint8_t scales[12] = {};
    for (int j = 0; j < 16; ++j) {
      const int scale = out.fit.scales[j] + 32;
      scales[j % 8] = static_cast<std::uint8_t>(scales[j % 8] | (scale & 15) << (j < 8 ? 0 : 4));
      scales[8 + j % 4] = static_cast<std::uint8_t>(scales[8 + j % 4] | scale >> 4 << 2 * (j / 4));
    }
    std::memcpy(block + 96, scales, sizeof(scales));
    store(block + 108, out.d);
  });
}

}  // namespace q3_k

namespace q4_k {

void quantize(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  each_block(values, importance, blocks, count, 144, [](const float* x, const float* w, std::byte* block) {
    const Filled out = with_minima(x, w, 32, 15, 63);
    store(block, out.d);
    store(block + 2, out.m);
    write_scales_and_mins(out.fit, block + 4);
    write_planes<4, 32>(out.codes, 0, block + 16);
  });
}

}  // namespace q4_k

namespace q5_k {

void quantize(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  each_block(values, importance, blocks, count, 176, [](const float* x, const float* w, std::byte* block) {
    const Filled out = with_minima(x, w, 32, 31, 63);
    store(block, out.d);
    store(block + 2, out.m);
    write_scales_and_mins(out.fit, block + 4);
    write_planes<1, 32>(out.codes, 4, block + 16);
    write_planes<4, 32>(out.codes, 0, block + 48);
  });
}

}  // namespace q5_k

namespace q6_k {

void quantize(const float* values, const float* importance, std::byte* blocks, std::int64_t count) {
  each_block(values, importance, blocks, count, 210, [](const float* x, const float* w, std::byte* block) {
    const Filled out = without_minima(x, w, {-32, 31, 2, 0.25f}, -128, 127);
    write_planes<4, 64>(out.codes, 0, block);
    write_planes<2, 32>(out.codes, 4, block + 128);
    for (int j = 0; j < 16; ++j) store(block + 192 + j, static_cast<std::int8_t>(out.fit.scales[j]));
    store(block + 208, out.d);
  });
}

}  // namespace q6_k
}  // namespace coppice::core
