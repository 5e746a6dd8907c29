// Rotary positions (arXiv:2104.09864), and how they are scaled for long contexts. The angles are made in f64
// and rounded to f32 once, and the sine, cosine and power are our own: libm's differ between machines in the
// last bit.
#pragma once

#include "model/config.h"

namespace coppice::core {

// frequencies[i] = base^(-2i / dims), i < dims / 2.
void rope_frequencies(double base, int dims, double* frequencies);
// Linear: frequencies are divided by the factor. YaRN: those of long waves, as "NTK by parts" of
// arXiv:2309.00071 says, with a ramp between the pairs that turn beta_fast and beta_slow times in the
// original context.
void scale_frequencies(const RopeScaling& scaling, double base, int dims, double* frequencies);
// magnitude * cosine and sine of position * frequencies[i]. cos_sin: [dims / 2, 2], or for halves [2, dims /
// 2].
void rope_row(int position, const double* frequencies, int dims, float* cos_sin,
              RopePairs pairs = RopePairs::interleaved, double magnitude = 1);

// For |x| < 2^20: about 1e-16 absolute. Only additions, multiplications and one rounding to an integer, in
// the order written.
double sin_exact(double x);
double cos_exact(double x);
// 2^x for -1000 < x < 1000.
double exp2_exact64(double x);

}  // namespace coppice::core
