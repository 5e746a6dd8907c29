// Constants of our own transcendental functions (numerics 15), shared by the plain functions and every table.
// The order of operations is part of the contract: each function below states it once, and every
// implementation repeats it operation by operation.
//
// exp2(x), f32:
//   t = 128 < x ? 128 : x                       (2^128 is +inf in what follows)
//   n = (t + kRound) - kRound                   round to nearest even, by addition
//   f = t - n                                   in [-0.5, 0.5], exact
//   p = fma(...fma(fma(c6, f, c5), f, c4)..., f, 1)
//   result = bits(p) + (bits(t + kRound) << 23) as integers; +0 where x < -64
//
// log(x), f64, x normal and positive:
//   k = (bits(x) - bits(sqrt(1/2))) >> 52 (arithmetic), m = bits(x) - (k << 52): in [sqrt(1/2), sqrt(2))
//   f = m - 1; s = f / (2 + f); z = s * s; R = z * P(z), P by Horner with fma, coefficients 2 / (2 i + 3)
//   h = (0.5 * f) * f
//   log(1 + f) = f - h + s * (h + R), since 2 atanh(s) = f - s f + s R and s f = h - s h
//   result = fma(k, ln2_high, f - (h - fma(s, h + R, k * ln2_low)))
//
// The bound of -log(-log u), f64: v = 1 - u (exact); -log u >= v, so the noise is at most -log v. With v =
// 2^k (1 + f), 0 <= f < 1, log2(1 + f) >= f, so the bound is fma(k + f, -ln2, kBoundSlack); the slack is
// above what all roundings, the last one to f32 included, could take away.
//
// silu(x) = x / (1 + exp2(-log2(e) * x))
// gelu(x), tanh form: x / (1 + exp2(x * fma(kGelu3, x * x, kGelu1))), since (1 + tanh u) / 2 = 1 / (1 +
// e^-2u)
#pragma once

#include <cstdint>

namespace coppice::core {

// Minimax on [-0.5, 0.5] for the relative error (2e-9), constant term exactly 1; index = power of f.
constexpr float kExp2[7] = {1.0f,           0x1.62e430p-1f,  0x1.ebfbdcp-3f, 0x1.c6aee8p-5f,
                            0x1.3b2d4cp-7f, 0x1.5f3e54p-10f, 0x1.41fbb8p-13f};
constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
constexpr float kExp2Lowest = -64.0f;

constexpr float kMinusLog2e = -0x1.715476p+0f;
// -2 log2(e) sqrt(2 / pi), and that times 0.044715.
constexpr float kGelu1 = -2.302208198f;
constexpr float kGelu3 = -0.1029432397f;

constexpr std::uint64_t kSqrtHalfBits = 0x3FE6A09E667F3BCDu;
constexpr double kLn2High = 0x1.62e42fefap-1;  // 16 trailing zero bits: k * kLn2High is exact
constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
// 2 / (2 i + 3): z <= 0.0295, so the first term left out is below 2^-56 of the result.
constexpr int kLogTerms = 9;
constexpr double kLog[kLogTerms] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9, 2.0 / 11,
                                    2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19};

constexpr std::uint64_t kOneBits = 0x3FF0000000000000u;
constexpr double kMinusLn2 = -0x1.62e42fefa39efp-1;
constexpr double kBoundSlack = 1e-4;

// Philox4x32-10 (Salmon et al., SC 2011): multipliers and key increments.
constexpr std::uint32_t kPhiloxM0 = 0xD2511F53u, kPhiloxM1 = 0xCD9E8D57u;
constexpr std::uint32_t kPhiloxW0 = 0x9E3779B9u, kPhiloxW1 = 0xBB67AE85u;
constexpr int kPhiloxRounds = 10;

}  // namespace coppice::core
