// Numbers made up, for kernels to work on while they are timed.
#pragma once

#include <coppice/bench.h>

#include <vector>

#include "base/os.h"
#include "kernels/kernels.h"
#include "quant/packed.h"

namespace coppice {

// Bits that are moderate numbers in every format: halves of 1 to 2 and floats of 0.008 to 2. Numbers so small
// that a product of theirs is denormal would be timed as such, which takes a processor many times as long.
void fill_moderate(std::byte* data, std::size_t bytes);

// The matrices of all layers in one piece of memory, as a loaded model has them.
struct Matrices {
  core::Buffer memory;
  std::vector<core::PackedMatrix> all;
  double multiply_adds = 0;  // of one row
};
// Of the options' shape, the head left out; inputs that are not whole units are more.
Result<Matrices> make_matrices(const KernelBenchOptions& options, core::PackedKind kind);

// Activations of `rows` rows, quantised and not, and room for results.
struct Activations {
  Activations(int rows, int inputs, int outputs)
      : x(static_cast<std::size_t>(rows) * static_cast<std::size_t>(inputs), 0.01f),
        codes(x.size(), 3),
        scales(x.size() / 32, 0.01f),
        scaled_sums(x.size() / 32, 0.96f),
        sums(x.size() / 32, 96),
        half_sums(x.size() / 32, 48),
        stride((static_cast<std::size_t>(outputs) + 63) / 64 * 64),
        y(static_cast<std::size_t>(rows) * stride) {}
  core::QuantizedRows rows(int inputs) {
    return {codes.data(), scales.data(), scaled_sums.data(), sums.data(), half_sums.data(), inputs};
  }
  std::vector<float> x;
  std::vector<std::int8_t> codes;
  std::vector<float> scales, scaled_sums;
  std::vector<std::int32_t> sums, half_sums;
  std::size_t stride;
  std::vector<float> y;
};

}  // namespace coppice
