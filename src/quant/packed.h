// The kernel layout: a weight matrix repacked so that one streamed load of a weight vector serves every row
// of the pass while it is in a register. A group is 32 outputs x all inputs, in two halves of 16 outputs, the
// lanes of a 512-bit register; groups follow each other. Outputs beyond `outputs` in the last group are zero.
// Packing is lossless (docs/numerics.md, 19). Every block begins on a 64-byte line, so that a group is one
// stream of whole lines.
//
//   q4, q4_offset  per block of 32 outputs x 32 inputs: 256 bytes of nibbles for each half, then 32 f16
//                  scales d, and for q4_offset 32 f16 offsets m. Of a half, byte (64*j + 4*lane + t), j in
//                  0..3, t in 0..3: its low nibble is input 4*j + t, its high nibble input 16 + 4*j + t.
//                  q4: value = d * (nibble - 8). q4_offset: value = d * nibble + m.
//   q8             per block: 512 bytes for each half, byte (64*j + 4*lane + t), j in 0..7, is input 4*j + t
//                  as code + 128 (unsigned), then 32 f16 scales d. value = d * (byte - 128).
//   f32, f16, bf16 per input k: 32 values, one an output.
//
// The first outputs of a matrix are its first groups, and the first inputs are the first bytes of every
// group: so a narrower model that uses the first part of every matrix (model/slim.h) reads the same bytes.
#pragma once

#include <coppice/error.h>

#include <cstddef>
#include <cstdint>

#include "base/os.h"
#include "quant/packed_shape.h"

namespace coppice::core {

// Where the parts of a block begin (the picture above): the codes of a half are kQ4Half or kQ8Half bytes.
inline constexpr std::size_t kQ4Half = 256, kQ4Scales = 2 * kQ4Half, kQ4Offsets = kQ4Scales + 64;
inline constexpr std::size_t kQ8Half = 512, kQ8Scales = 2 * kQ8Half;

// Weights in the order in which they are read: `runs` runs of `bytes` bytes whose beginnings lie `stride`
// bytes apart.
struct WeightStretch {
  const std::byte* begin;
  std::size_t bytes;
  std::size_t stride;
  std::size_t runs;
};

struct PackedMatrix {
  PackedKind kind = PackedKind::f32;
  int outputs = 0;  // rows of the GGUF tensor (ne[1])
  int inputs = 0;   // ne[0]; a multiple of 32 for quantised kinds
  Buffer data;
  // Inputs of the matrix whose bytes these are; 0: as many as `inputs`, nothing lies between the groups.
  int stored_inputs = 0;

  int groups() const { return (outputs + kGroupOutputs - 1) / kGroupOutputs; }
  bool quantised() const { return kind >= PackedKind::q4; }
  std::size_t group_bytes() const;   // that are read of one group of 32 outputs
  std::size_t group_stride() const;  // from one group to the next
  std::size_t bytes() const { return group_bytes() * static_cast<std::size_t>(groups()); }  // read in all
  const std::byte* group(int g) const { return data.data() + group_stride() * static_cast<std::size_t>(g); }
  // Groups [begin, end), but not many more bytes than `most`.
  WeightStretch stretch(int begin, int end, std::size_t most) const;
};

// The first `outputs` (whole groups, or all there are) and `inputs` (a multiple of 32, or all) of `whole`,
// whose memory it uses and which must outlive it.
PackedMatrix part_of(const PackedMatrix& whole, int outputs, int inputs);

// Bytes of one block (quantised kinds: 32 outputs x 32 inputs) or of one input (float kinds: 32 outputs).
std::size_t packed_unit_bytes(PackedKind kind);

// Whether every scale, offset or float value of groups [group_begin, group_end) is finite; the zeros beyond
// the last output are.
bool all_finite(const PackedMatrix& matrix, int group_begin, int group_end);

// Row `output` of the matrix as f32, exactly the source's values. out: [inputs]
void unpack_row(const PackedMatrix& matrix, int output, float* out);

}  // namespace coppice::core
