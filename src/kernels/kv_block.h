// Inside a cache block, and the fixed steps of attention (numerics 8-11). Of one kv head:
//   K codes [head_dim][16], then for q8_0 K scales f16 [head_dim / 32][16];
//   V codes [16][head_dim], then for q8_0 V scales f16 [16][head_dim / 32].
// q8_0: amax is the integer maximum over absolute bits of 32 dimensions, scale = f16(min(amax / 127, 65504)),
// code = round half to even of x / scale (0 where scale is 0), clamped first to [-127, 127]; the value used
// everywhere is float(code) * scale, rounded to f32. If one of the 32 is not finite: scale NaN, codes 0.
//
// Attention of one query head, positions ascending:
//   score s_p: from +0, s = fma(q[d], k[p][d], s) over ascending d. With a soft cap c it then becomes
//   c - (c + c) / (1 + exp2(s_p)), which is c tanh(u) for s_p = 2 log2(e) u: the query is scaled for that.
//   Positions below the row's first one are skipped, and chunks and segments of nothing else.
//   A segment is 512 positions aligned to absolute position, a chunk 64. A segment has a maximum m (none at
//   first), sums l[16] and o[head_dim], all +0. Per chunk: c = largest score, M = max(m, c); if the segment
//   has seen a chunk, r = exp2(m - M), l[i] *= r, o[d] *= r; m = M. Then per position p: e = exp2(s_p - m),
//   l[p mod 16] += e, o[d] = fma(e, v[p][d], o[d]).
//   Merging, left to right; A is what has been merged (at first the first segment itself), B the next:
//   M = max(A.m, B.m); a = exp2(A.m - M), b = exp2(B.m - M); l[i] = fma(B.l[i], b, A.l[i] * a);
//   o[d] = fma(B.o[d], b, A.o[d] * a).
//   Result: o[d] / (l added by the 16-lane tree).
#pragma once

#include <cstdint>

namespace coppice::core {

constexpr int kScaleDims = 32;
constexpr int kChunk = 64;
constexpr int kSegment = 512;
constexpr int kMostQueries = 24;  // that go through the context together
constexpr float kScaleLimit = 65504.0f;
constexpr std::uint16_t kBadScale = 0x7E00;  // NaN

}  // namespace coppice::core
