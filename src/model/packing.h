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

// Checks every scale, packs every matrix into the memory it returns and points the matrices at their parts of
// it, in the order of the jobs. The file's pages are released as they have been packed, so that no weight is
// in memory twice. An error names file, tensor, row and value. `progress` (optional) hears the fraction done,
// from the calling thread.
Result<Buffer> pack_weights(const gguf::File& file, std::span<const PackJob> jobs, ThreadPool& pool,
                            const std::function<void(double)>& progress);

}  // namespace coppice::core
