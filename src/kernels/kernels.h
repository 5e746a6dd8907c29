// One table of kernels per instruction set, chosen once at start (isa.cc). Every table gives the same bits
// (docs/numerics.md): quantised dot products are exact integers inside a block of 32, blocks are added in
// ascending order with stated roundings, reductions use one fixed 16-lane tree, transcendental functions are
// our own. A row of the result does not depend on how many rows are computed beside it, nor on the thread.
//
// Shapes are row-major. Pointers are to 64-byte aligned memory unless said otherwise; nothing allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/kv_layout.h"
#include "quant/packed.h"

namespace coppice::core {

// Activations of a pass as int8 in groups of 32 (numerics 20). scale = amax / 127; code = x * (127 / amax),
// clamped to [-127, 127], rounded half to even. An amax so small that 127 / amax overflows (3.7e-37), or 0,
// gives zeros and scale 0.
struct QuantizedRows {
  std::int8_t* codes = nullptr;  // [rows, inputs]
  float* scales = nullptr;       // [rows, inputs / 32]
  float* scaled_sums = nullptr;  // [rows, inputs / 32]: scale * (sum of codes), for formats with an offset
  std::int32_t* sums = nullptr;  // [rows, inputs / 32]: sum of codes
  std::int32_t* half_sums = nullptr;  // [rows, inputs / 32]: of the first 16, for formats of groups of 16
  int inputs = 0;
};

// y[row][output] = sum over inputs of w[output][input] * x[row][input]
struct MatmulTask {
  const PackedMatrix* weights = nullptr;
  const float* x = nullptr;  // [rows, inputs]: float kinds
  QuantizedRows q;           // quantised kinds
  float* y = nullptr;        // [rows, y_stride], y_stride >= groups * 32 (padding outputs are written)
  std::size_t y_stride = 0;
  int rows = 0;
  // What this thread reads from memory after its groups, fetched towards their end. May be empty.
  WeightStretch next = {};
};

// Counter-based noise (numerics 2, 3): Philox4x32-10.
struct NoiseKey {
  std::uint64_t seed = 0;
  std::uint32_t choice = 0;
  std::uint32_t stream = 0;  // 24 bits used; the top byte of the counter word is the purpose
};

struct Kernels {
  std::string_view name;  // "scalar", "avx2", ...: those of isa.cc

  // Output groups [group_begin, group_end) of 32.
  void (*matmul)(const MatmulTask& task, int group_begin, int group_end);

  // One row of out.inputs values. Returns false if a value is not finite.
  bool (*quantize_row)(const float* x, const QuantizedRows& out);

  // rms: x / sqrt(mean(x^2) + eps) * weight. layer: (x - mean) / sqrt(var + eps) * weight + bias.
  void (*rms_norm)(const float* x, const float* weight, float eps, int n, float* out);
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps, int n, float* out);

  void (*add)(const float* x, float* y, int n);                             // y += x
  void (*silu_mul)(const float* gate, const float* up, float* out, int n);  // silu(gate) * up
  void (*gelu)(const float* x, float* out, int n);                          // tanh form
  void (*scale)(float s, float* x, int n);                                  // x *= s

  // Rotates one head in place, pairs (2i, 2i+1). cos_sin: [dims / 2, 2] for this position.
  void (*rope)(float* x, const float* cos_sin, int dims);
  // The same for pairs (i, i + dims / 2). cos_sin: [2, dims / 2], all cosines and then all sines.
  void (*rope_halves)(float* x, const float* cos_sin, int dims);

  // Rounds one position's keys and values [kv_heads, head_dim] to the cache format and stores them.
  void (*store_kv)(const KvLayout& layout, const float* k, const float* v, std::byte* block, int lane);
  void (*attention)(const KvLayout& layout, const AttentionTask& task);

  // noise[i] = Gumbel noise of token first + i at `index` (first even, 0 <= index < 2^32).
  void (*gumbel)(const NoiseKey& key, std::int64_t index, int first, int count, double* noise);
  // bound[i] >= that noise, by less than 0.3 where the noise is above 1: a third of the work, and it tells
  // which few tokens are worth their exact noise.
  void (*gumbel_bound)(const NoiseKey& key, std::int64_t index, int first, int count, float* bound);

  // exp2 of each value by the fixed polynomial; inputs under -64 give +0. In place allowed.
  void (*exp2)(const float* x, float* out, int n);
  // Index of the largest value, the lowest on ties; NaN never wins. -1 when every value is NaN.
  int (*argmax)(const float* x, int n);
  // maxima[g] = the largest of values 32 g .. 32 g + 31 (the last group may be shorter), -infinity where all
  // are NaN. False: a value is not finite.
  bool (*group_maxima)(const float* x, int n, float* maxima);

  // What this machine can do with this instruction set, to measure the others against; no part of a pass.
  // Reads every byte (of floats that are no NaN, a multiple of 64) and gives the largest of them and 0.
  float (*read_all)(const std::byte* data, std::size_t bytes);
  // Loops that touch no memory. Gives the number of multiply-adds done.
  double (*int8_peak)(std::int64_t rounds);
  double (*f32_peak)(std::int64_t rounds);
};

std::span<const Kernels* const> all_kernels();  // those compiled in, scalar first; usable or not
bool usable(const Kernels& kernels);            // this CPU has what it needs
// The best usable table, or the one named by COPPICE_ISA or by force_kernels(). Fixed after the first call.
const Kernels& kernels();
// By name, before the first kernels() or in tests between passes. False: no such table, or not on this
// machine.
bool force_kernels(std::string_view name);

// Plain functions with the same bits as the tables, used in the sampler and in tests.
float exp2_exact(float x);   // the polynomial of Kernels::exp2
double log_exact(double x);  // natural log, x > 0 finite; our own, no libm
double gumbel_noise(const NoiseKey& key, std::int64_t index, int token);
float gumbel_noise_bound(const NoiseKey& key, std::int64_t index, int token);
// Uniform in (0, 1), 52 random bits, for rejection sampling. `purpose` separates uses (1..255; 0 is the
// draw).
double uniform(const NoiseKey& key, std::uint64_t number, std::uint32_t purpose);
// The 16-lane tree sum: lane i mod 16 ascending, then +8, +4, +2, +1.
float lane_sum(const float* x, int n);

}  // namespace coppice::core
