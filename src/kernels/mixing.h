// The arithmetic of a mixer (tree/mixer.h) at one candidate. Sums go over the features in their order,
// multiplied and added one rounding each, so that every instruction set gives the same bits; the units stand
// side by side in vectors.
#pragma once

namespace coppice::core {

inline constexpr int kMixingUnits = 32;

// weights, x: [features]; into: [features, kMixingUnits]. Returns the sum of weights times x, and into units
// ([kMixingUnits]) what each makes of x: its sum, or 0 where that is less.
float mix_one(const float* weights, const float* into, const float* x, int features, float* units);
#if defined(__x86_64__) || defined(_M_X64)
// The same, for processors that have it.
float mix_one_avx2(const float* weights, const float* into, const float* x, int features, float* units);
#endif

}  // namespace coppice::core
