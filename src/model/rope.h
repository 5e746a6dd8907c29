// Rotary positions (arXiv:2104.09864), pairs (2i, 2i+1). The angles are made in f64 and rounded to f32 once,
// and the sine, cosine and power are our own: libm's differ between machines in the last bit.
#pragma once

namespace coppice::core {

// frequencies[i] = base^(-2i / dims), i < dims / 2.
void rope_frequencies(double base, int dims, double* frequencies);
// cos_sin: [dims / 2, 2], of position * frequencies[i].
void rope_row(int position, const double* frequencies, int dims, float* cos_sin);

// For |x| < 2^20: about 1e-16 absolute. Only additions, multiplications and one rounding to an integer, in
// the order written.
double sin_exact(double x);
double cos_exact(double x);
// 2^x for -1000 < x < 1000.
double exp2_exact64(double x);

}  // namespace coppice::core
