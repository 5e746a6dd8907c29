// From the tensors of a mapped file to the kernels' layout: all matrices of a model at once, on all threads.
#pragma once

#include <coppice/error.h>

#include <functional>
#include <span>

#include "base/os.h"
#include "base/thread_pool.h"
#include "gguf/file.h"
#include "quant/packed.h"

namespace coppice::core {

// One matrix to pack: kind, outputs and inputs of `matrix` are those of `tensor`; its data is not there yet.
struct PackJob {
  const gguf::Tensor* tensor;
  PackedMatrix* matrix;
};

// What the matrices' bytes lie in: memory, or a mapped file of packed weights (packed_cache.h).
struct PackedWeights {
  Buffer memory;
  MappedFile file;
};

// Bytes of all the jobs' matrices, each on a line of 64 bytes, in the order of the jobs.
std::size_t packed_bytes(std::span<const PackJob> jobs);
// Points the matrices at their parts of `packed` (packed_bytes() long). Read only where it is mapped so.
void place_weights(std::span<const PackJob> jobs, std::span<const std::byte> packed);

// Checks every scale, packs every matrix into the memory it returns and places the matrices there. The file's
// pages are released as they have been packed, so that no weight is in memory twice. An error names file,
// tensor, row and value. `progress` (optional) hears the fraction done, from 0 to 1, from the calling thread.
Result<PackedWeights> pack_weights(const gguf::File& file, std::span<const PackJob> jobs, ThreadPool& pool,
                                   const std::function<void(double)>& progress);

}  // namespace coppice::core
