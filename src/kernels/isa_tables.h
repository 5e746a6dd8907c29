// What the ISA files and isa.cc share. ISA files are compiled with their instruction set's flags, so they may
// contain no symbol another file could pick up by accident: functions in anonymous namespaces, no inline or
// template functions of headers (the linker keeps one copy of those, of any file), one exported table each.
#pragma once

#include "kernels/kernels.h"

namespace coppice::core {

extern const Kernels kScalarKernels;
#if defined(__x86_64__) || defined(_M_X64)
#define COPPICE_X86_KERNELS 1
extern const Kernels kAvx2Kernels;
extern const Kernels kAvxVnniKernels;
extern const Kernels kAvx512Kernels;
extern const Kernels kAvx512VnniKernels;
extern const Kernels kAmxKernels;
#elif defined(__aarch64__)
#define COPPICE_NEON_KERNELS 1
extern const Kernels kNeonKernels;
extern const Kernels kNeonDotKernels;
#endif

// The integer products of quantised kinds, in files of their own.
struct WeightsView;
void matmul_avx2(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end);
void matmul_avxvnni(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end);
void matmul_avx512(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end);
void matmul_avx512vnni(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end);
void matmul_amx(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end);
void matmul_neon(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end);
void matmul_neondot(const MatmulTask& task, const WeightsView& w, int group_begin, int group_end);

// Scalar functions in files of their own.
void matmul_scalar(const MatmulTask& task, int group_begin, int group_end);
void attention_scalar(const KvLayout& layout, const AttentionTask& task);
void store_kv_scalar(const KvLayout& layout, const float* k, const float* v, std::byte* block, int lane);
float read_all_scalar(const std::byte* data, std::size_t bytes);
double int8_peak_scalar(std::int64_t rounds);
double f32_peak_scalar(std::int64_t rounds);

// Plain views, because the inline members of PackedMatrix and KvLayout are such functions.
struct WeightsView {
  PackedKind kind;
  int inputs;
  const std::byte* data;
  std::size_t group_bytes;   // that are read
  std::size_t group_stride;  // from one group to the next
};
WeightsView view_of(const PackedMatrix& matrix);

struct KvView {
  CacheType type;
  int kv_heads, heads, head_dim;
  std::size_t key_bytes;  // of one head in one block; the same for values
};
KvView view_of(const KvLayout& layout);

}  // namespace coppice::core
