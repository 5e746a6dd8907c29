// The kernel layout: a weight matrix repacked so that one streamed load of a weight vector serves every row
// of the pass while it is in a register. A group is 32 outputs x all inputs, in two halves of 16 outputs, the
// lanes of a 512-bit register; groups follow each other. Outputs beyond `outputs` in the last group are zero.
// Packing is lossless (docs/numerics.md, 19). Every block begins on a 64-byte line, so that a group is one
// stream of whole lines.
//
// Quantised kinds are put together from a few parts, as packed_shape.h says. A block is 32 outputs x 32
// inputs, 32 * bits bytes of codes; a unit is a block, or for the kinds of K formats 8 blocks with their
// scales behind them:
//
//   codes   of each block, both halves of 16 outputs after each other; a half is a plane of 64 * b bytes for
//           codes of b = 1, 2, 4 or 8 bits, and codes of 3, 5 and 6 bits are a plane of 2, 4, 4 bits and,
//           behind it, one of the 1, 1, 2 bits above. Vector v of a plane has at byte (4*lane + t), t in
//           0..3, codes of input t of a four of inputs. For 8 bits, vector v is inputs 4*v .. 4*v + 3. Below,
//           a byte is 8 / b fields, lowest bits first, and they are numbered through the vectors: field
//           2*j + p is inputs 16*p + 4*j .., j in 0..3, p in 0..1. So with 4 bits the low nibbles of vector
//           j are inputs 4*j .., and the high ones 16 + 4*j ...
//   d, m    32 f16 scales (q4_power: bf16), then 32 f16 offsets where the kind has them. Of a K format they
//           are super-scales, and m is minus the file's.
//   bytes   K formats: for each block 32 scales of 8 bits with a sign, or 32 for the first 16 inputs and 32
//           for the last; then 32 mins without one where there are offsets; q2_super has scale | min << 4.
//
//   value = d * (code - zero), d * code + m, or d * table[code]; of a K format d is the super-scale times
//   the byte, exactly, and so is m. How many bits, which zero and table: kPackedShapes.
//
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
  int inputs = 0;   // ne[0]; whole units
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

// The first `outputs` (whole groups, or all there are) and `inputs` (whole units, of floats 32, or all) of
// `whole`, whose memory it uses and which must outlive it.
PackedMatrix part_of(const PackedMatrix& whole, int outputs, int inputs);

// Bytes and inputs of a unit of 32 outputs; a float kind's is one input.
std::size_t packed_unit_bytes(PackedKind kind);
int packed_unit_inputs(PackedKind kind);
// `inputs`, or as many more as make whole units.
int whole_units(PackedKind kind, int inputs);

// Whether every scale, offset or float value of groups [group_begin, group_end) is finite; the zeros beyond
// the last output are.
bool all_finite(const PackedMatrix& matrix, int group_begin, int group_end);

// Row `output` of the matrix as f32, exactly the source's values. out: [inputs]
void unpack_row(const PackedMatrix& matrix, int output, float* out);

}  // namespace coppice::core
