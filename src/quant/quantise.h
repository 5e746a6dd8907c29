// What the quantisers share. A quantiser looks for the scales and codes whose values come closest to the
// given ones: the least sum of w * (x - value)^2 over a block, w the importance of an input (the mean square
// of what it is multiplied by), or 1. Codes follow from scales (each takes the nearest), so the search is
// over scales:
//
//   1. each block alone: some scales are tried, each is replaced by the best for the codes it leads to (least
//      squares), the best of all stays;
//   2. where a format keeps the scales of its blocks as small integers times one f16, the f16 is chosen for
//      the largest of them, then for each block the integers around its scale are tried with their codes;
//   3. the f16 is replaced by the best for those integers and codes, and 2 is done again, as long as it
//   helps.
//
// Values that a format can hold exactly, its extreme codes and integers among them, come out as they are.
// Every sum has a fixed order (four lanes, then the lanes), so that the bytes are the same on every machine.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quant/formats.h"

namespace coppice::core::quantise {

using Floats = float __attribute__((vector_size(16)));
using Bits = std::int32_t __attribute__((vector_size(16)));

inline constexpr int kLanes = 4;

inline Floats at(const float* values) {
  Floats out;
  std::memcpy(&out, values, sizeof(out));
  return out;
}
inline void put(float* to, Floats values) { std::memcpy(to, &values, sizeof(values)); }
inline Floats all(float value) { return Floats{value, value, value, value}; }
inline float sum(Floats v) { return (v[0] + v[2]) + (v[1] + v[3]); }
inline Floats select(Bits where, Floats yes, Floats no) {
  return std::bit_cast<Floats>((where & std::bit_cast<Bits>(yes)) | (~where & std::bit_cast<Bits>(no)));
}

// Codes low .. high: the nearest, of halves the even one. Not a number gives low.
struct Steps {
  float low, high;
  int tries;    // scales on either side of the one that lays the extreme value on an extreme code,
  float apart;  // so far from each other, as codes

  Floats nearest(Floats x) const {
    constexpr float kInteger = 12582912.0f;  // 1.5 * 2^23: what is added to it is rounded to an integer
    x = select(x > all(low), x, all(low));
    x = select(x < all(high), x, all(high));
    return (x + all(kInteger)) - all(kInteger);
  }
};

// Codes out of a list that rises: the nearest, of halves the lower one.
template <int kCount>
struct List {
  float values[kCount];
  float low, high;
  int tries;
  float apart;

  Floats nearest(Floats x) const {
    Floats out = all(values[0]);
    for (int i = 1; i < kCount; ++i)
      out = select(x > all((values[i - 1] + values[i]) / 2), all(values[i]), out);
    return out;
  }
};

struct ScaleSums {
  float vx = 0, vv = 0;  // of w * code * x and w * code * code
};

template <class Codes>
ScaleSums scale_sums(const Codes& codes, const float* x, const float* w, int size, float inverse) {
  Floats vx = all(0), vv = all(0);
  for (int i = 0; i < size; i += kLanes) {
    const Floats v = codes.nearest(at(x + i) * all(inverse));
    const Floats wv = at(w + i) * v;
    vx += wv * at(x + i);
    vv += wv * v;
  }
  return {sum(vx), sum(vv)};
}

// The value furthest from zero, with its sign; the first of equals.
inline float extreme(const float* x, int size) {
  float best = 0;
  for (int i = 0; i < size; ++i)
    if (std::fabs(x[i]) > std::fabs(best)) best = x[i];
  return best;
}

// The scale with which codes come closest to x; its sign is that which suits the codes.
template <class Codes>
float best_scale(const Codes& codes, const float* x, const float* w, int size) {
  const float most = extreme(x, size);
  if (most == 0) return 0;
  float best = 0, best_gain = 0;
  for (const float end : {codes.low, codes.high}) {
    for (int i = -codes.tries; i <= codes.tries; ++i) {
      const float inverse = (end + codes.apart * static_cast<float>(i)) / most;
      const ScaleSums sums = scale_sums(codes, x, w, size, inverse);
      if (!(sums.vx * sums.vx > best_gain * sums.vv)) continue;
      best_gain = sums.vx * sums.vx / sums.vv;
      best = sums.vx / sums.vv;
    }
  }
  return best;
}

// Writes the codes for the scale; the sum of w * (x - scale * code)^2.
template <class Codes>
float take_codes(const Codes& codes, const float* x, const float* w, int size, float scale, float* out) {
  const float inverse = scale == 0 ? 0 : 1 / scale;
  Floats error = all(0);
  for (int i = 0; i < size; i += kLanes) {
    const Floats v = codes.nearest(at(x + i) * all(inverse));
    const Floats off = at(x + i) - all(scale) * v;
    put(out + i, v);
    error += at(w + i) * off * off;
  }
  return sum(error);
}

// x = scale * code + offset, codes 0 .. most.
struct ScaleOffset {
  float scale = 0, offset = 0;
};

// The same with an offset; `above`: offsets above zero are possible too.
ScaleOffset best_scale_offset(float most_code, bool above, const float* x, const float* w, int size);

inline float take_codes(float most_code, const float* x, const float* w, int size, ScaleOffset fit,
                        float* out) {
  const Steps codes{0, most_code, 0, 0};
  const float inverse = fit.scale == 0 ? 0 : 1 / fit.scale;
  Floats error = all(0);
  for (int i = 0; i < size; i += kLanes) {
    const Floats v = codes.nearest((at(x + i) - all(fit.offset)) * all(inverse));
    const Floats off = at(x + i) - (all(fit.scale) * v + all(fit.offset));
    put(out + i, v);
    error += at(w + i) * off * off;
  }
  return sum(error);
}

// A super-block of at most 256 values and 16 blocks, brought to a largest value of 1 to 2 by a power of two,
// so that no square leaves f32. Weights of a block that are all zero are ones.
struct Scaled {
  float x[256];
  float w[256];
  float unit = 0;      // a power of two; 0: nothing in it is worth a code
  bool finite = true;  // of the values given

  void read(const float* values, const float* importance, int count, int block);
  // The nearest scale that the format's f16 can hold.
  float half(float scale) const { return f16_to_f32(f32_to_f16(scale * unit)) / unit; }
  std::uint16_t half_bits(float scale) const { return f32_to_f16(scale * unit); }
  // The same, but the next larger one where f16 is too coarse (its denormals): a scale that is too small cuts
  // off the largest values.
  float half_above(float scale) const {
    const std::uint16_t bits = half_bits(scale);
    const bool below = std::fabs(f16_to_f32(bits)) < 0.999f * std::fabs(scale * unit);
    return f16_to_f32(static_cast<std::uint16_t>(bits + (below ? 1 : 0))) / unit;
  }
};

// What step 2 and 3 give for a super-block: value = d * scales[j] * codes[i], less m * mins[j] where there
// are minima.
struct SuperBlock {
  float d = 0, m = 0;
  int scales[16] = {};
  int mins[16] = {};
  float codes[256] = {};
  float error = INFINITY;
};

struct Layout {
  int blocks, size;             // of a super-block; values of a block
  int least_scale, most_scale;  // integers of the blocks' scales
};

// With minima: codes 0 .. most_code, integers of scales and minima 0 .. most_scale. `wide`: more first
// guesses for d, for few integers.
SuperBlock fit_minima(const Scaled& in, const Layout& layout, float most_code, bool wide);

namespace internal {

template <class Codes>
SuperBlock with_scale(const Scaled& in, const Layout& layout, const Codes& codes, const float* wanted,
                      float d) {
  SuperBlock out;
  out.d = d;
  out.error = 0;
  float tried[256];
  for (int j = 0; j < layout.blocks; ++j) {
    const int begin = j * layout.size;
    const int near =
        d == 0 ? 0 : static_cast<int>(std::nearbyint(std::clamp(wanted[j] / d, -256.0f, 256.0f)));
    float best = INFINITY;
    for (const int shift : {0, -1, 1}) {
      const int scale = std::clamp(near + shift, layout.least_scale, layout.most_scale);
      const float error =
          take_codes(codes, in.x + begin, in.w + begin, layout.size, d * static_cast<float>(scale), tried);
      if (!(error < best)) continue;
      best = error;
      out.scales[j] = scale;
      std::copy(tried, tried + layout.size, out.codes + begin);
    }
    out.error += best;
  }
  return out;
}

// The d that is best for the scales and codes of `fit`.
inline float refined(const Scaled& in, const Layout& layout, const SuperBlock& fit) {
  float vx = 0, vv = 0;
  for (int j = 0; j < layout.blocks; ++j) {
    const auto scale = static_cast<float>(fit.scales[j]);
    Floats block_vx = all(0), block_vv = all(0);
    for (int i = j * layout.size; i < (j + 1) * layout.size; i += kLanes) {
      const Floats v = at(fit.codes + i) * all(scale);
      block_vx += at(in.w + i) * v * at(in.x + i);
      block_vv += at(in.w + i) * v * v;
    }
    vx += sum(block_vx);
    vv += sum(block_vv);
  }
  return vv > 0 ? vx / vv : 0;
}

}  // namespace internal

inline constexpr int kRefinements = 3;

// Without minima.
template <class Codes>
SuperBlock fit_scales(const Scaled& in, const Layout& layout, const Codes& codes) {
  float wanted[16];
  for (int j = 0; j < layout.blocks; ++j)
    wanted[j] = best_scale(codes, in.x + j * layout.size, in.w + j * layout.size, layout.size);
  const float most = extreme(wanted, layout.blocks);
  SuperBlock best;
  for (const int end : {layout.least_scale, layout.most_scale}) {
    SuperBlock fit =
        internal::with_scale(in, layout, codes, wanted, in.half_above(most / static_cast<float>(end)));
    for (int i = 0; i < kRefinements && fit.error < INFINITY; ++i) {
      SuperBlock next =
          internal::with_scale(in, layout, codes, wanted, in.half(internal::refined(in, layout, fit)));
      if (!(next.error < fit.error)) break;
      fit = next;
    }
    if (fit.error < best.error) best = fit;
  }
  return best;
}

}  // namespace coppice::core::quantise
