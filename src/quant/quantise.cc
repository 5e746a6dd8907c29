#include "quant/quantise.h"

namespace coppice::core::quantise {
namespace {

// Sums of w, w x, w q, w q q and w q x over a block, q its codes.
struct Moments {
  float w = 0, x = 0, q = 0, qq = 0, qx = 0;

  // The scale and offset of the least error, and how much of the sum of w x x they explain.
  ScaleOffset solve(bool above) const {
    const float determinant = w * qq - q * q;
    ScaleOffset out;
    // With all codes equal there is no telling scale and offset apart.
    if (determinant > 1e-6f * w * qq) {
      out.scale = (w * qx - x * q) / determinant;
      out.offset = (qq * x - q * qx) / determinant;
    }
    const bool fits = out.scale > 0 && (above || out.offset <= 0);
    if (!fits) out = {qq > 0 ? std::max(qx / qq, 0.0f) : 0, 0};
    return out;
  }
  float explained(ScaleOffset fit) const {
    return 2 * (fit.scale * qx + fit.offset * x) -
           (fit.scale * fit.scale * qq + 2 * fit.scale * fit.offset * q + fit.offset * fit.offset * w);
  }
};

Moments moments(float most_code, const float* x, const float* w, int size, ScaleOffset fit) {
  const Steps codes{0, most_code, 0, 0};
  const float inverse = fit.scale == 0 ? 0 : 1 / fit.scale;
  Floats sw = all(0), sx = all(0), sq = all(0), sqq = all(0), sqx = all(0);
  for (int i = 0; i < size; i += kLanes) {
    const Floats v = at(x + i), weight = at(w + i);
    const Floats q = codes.nearest((v - all(fit.offset)) * all(inverse));
    const Floats wq = weight * q;
    sw += weight;
    sx += weight * v;
    sq += wq;
    sqq += wq * q;
    sqx += wq * v;
  }
  return {sum(sw), sum(sx), sum(sq), sum(sqq), sum(sqx)};
}

// d and m for which integers and codes of `fit` come closest.
ScaleOffset refined(const Scaled& in, const Layout& layout, const SuperBlock& fit) {
  float aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;  // a = scale * code, b = -min
  for (int j = 0; j < layout.blocks; ++j) {
    const Floats scale = all(static_cast<float>(fit.scales[j])), b = all(-static_cast<float>(fit.mins[j]));
    Floats saa = all(0), sab = all(0), sbb = all(0), sax = all(0), sbx = all(0);
    for (int i = j * layout.size; i < (j + 1) * layout.size; i += kLanes) {
      const Floats a = scale * at(fit.codes + i), w = at(in.w + i), x = at(in.x + i);
      saa += w * a * a;
      sab += w * a * b;
      sbb += w * b * b;
      sax += w * a * x;
      sbx += w * b * x;
    }
    aa += sum(saa);
    ab += sum(sab);
    bb += sum(sbb);
    ax += sum(sax);
    bx += sum(sbx);
  }
  const float determinant = aa * bb - ab * ab;
  if (determinant > 1e-6f * aa * bb)
    return {(ax * bb - bx * ab) / determinant, (bx * aa - ax * ab) / determinant};
  return {aa > 0 ? ax / aa : fit.d, fit.m};
}

SuperBlock with_scales(const Scaled& in, const Layout& layout, float most_code, const ScaleOffset* wanted,
                       ScaleOffset unit) {
  SuperBlock out;
  out.d = unit.scale;
  out.m = unit.offset;
  out.error = 0;
  float tried[256];
  const auto near = [&](float value, float of) {
    return of == 0 ? 0 : static_cast<int>(std::nearbyint(std::clamp(value / of, 0.0f, 256.0f)));
  };
  for (int j = 0; j < layout.blocks; ++j) {
    const int begin = j * layout.size;
    const int scale_near = near(wanted[j].scale, unit.scale), min_near = near(-wanted[j].offset, unit.offset);
    float best = INFINITY;
    for (const int scale_shift : {0, -1, 1}) {
      for (const int min_shift : {0, -1, 1}) {
        const int scale = std::clamp(scale_near + scale_shift, 0, layout.most_scale);
        const int min = std::clamp(min_near + min_shift, 0, layout.most_scale);
        const ScaleOffset fit{unit.scale * static_cast<float>(scale),
                              -(unit.offset * static_cast<float>(min))};
        const float error = take_codes(most_code, in.x + begin, in.w + begin, layout.size, fit, tried);
        if (!(error < best)) continue;
        best = error;
        out.scales[j] = scale;
        out.mins[j] = min;
        std::copy(tried, tried + layout.size, out.codes + begin);
      }
    }
    out.error += best;
  }
  return out;
}

}  // namespace

ScaleOffset best_scale_offset(float most_code, bool above, const float* x, const float* w, int size) {
  constexpr int kTries = 5;
  constexpr float kApart = 0.2f;
  float low = *std::min_element(x, x + size);
  const float high = *std::max_element(x, x + size);
  if (!above) low = std::min(low, 0.0f);
  if (!(high > low)) return {0, low};
  ScaleOffset best;
  float best_gain = -INFINITY;
  for (int i = -kTries; i <= kTries; ++i) {
    // Codes that begin at the least value: i < 0 leaves codes unused, i > 0 cuts the largest values off.
    ScaleOffset fit{(high - low) / (most_code + kApart * static_cast<float>(i)), low};
    for (int again = 0; again < 2; ++again) {
      const Moments sums = moments(most_code, x, w, size, fit);
      fit = sums.solve(above);
      const float gain = sums.explained(fit);
      if (!(gain > best_gain)) continue;
      best_gain = gain;
      best = fit;
    }
  }
  return best;
}

void Scaled::read(const float* values, const float* importance, int count, int block) {
  const float most = std::fabs(extreme(values, count));
  finite = true;
  for (int i = 0; i < count; ++i) finite = finite && std::fabs(values[i]) <= 3.4028235e38f;
  unit = finite ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(most) & 0x7f800000u) : 0;
  if (unit == 0) return;  // zeros, and what is far below any f16
  const float inverse = 1 / unit;
  for (int begin = 0; begin < count; begin += block) {
    float total = 0;
    for (int i = begin; i < begin + block; ++i) {
      x[i] = values[i] * inverse;
      w[i] = importance == nullptr ? 1 : importance[i];
      total += w[i];
    }
    if (!(total > 0 && total <= 3.4028235e38f)) std::fill(w + begin, w + begin + block, 1.0f);
  }
}

SuperBlock fit_minima(const Scaled& in, const Layout& layout, float most_code, bool wide) {
  ScaleOffset wanted[16];
  float most_scale = 0, most_min = 0;
  for (int j = 0; j < layout.blocks; ++j) {
    wanted[j] =
        best_scale_offset(most_code, false, in.x + j * layout.size, in.w + j * layout.size, layout.size);
    most_scale = std::max(most_scale, wanted[j].scale);
    most_min = std::max(most_min, -wanted[j].offset);
  }
  const auto most = static_cast<float>(layout.most_scale);
  const auto attempt = [&](ScaleOffset unit) { return with_scales(in, layout, most_code, wanted, unit); };
  SuperBlock best;
  for (const float part : {1.0f, 0.92f, 0.84f}) {
    SuperBlock fit =
        attempt({in.half_above(part * most_scale / most), in.half_above(part * most_min / most)});
    for (int i = 0; i < kRefinements && fit.error < INFINITY; ++i) {
      const ScaleOffset better = refined(in, layout, fit);
      if (!(better.scale >= 0 && better.offset >= 0)) break;
      SuperBlock next = attempt({in.half(better.scale), in.half(better.offset)});
      if (!(next.error < fit.error)) break;
      fit = next;
    }
    if (fit.error < best.error) best = fit;
    if (!wide) break;
  }
  return best;
}

}  // namespace coppice::core::quantise
