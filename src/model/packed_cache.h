// Packed weights kept in a file, to be mapped instead of packed again. The key is the content: a hash of
// every tensor's bytes, of what they are packed as and of the layout's version. So a file is never stale:
// other weights have another key, and another name. It is trusted no further: its body's hash is checked
// before use, and a file that is cut off or damaged is refused.
//
//   bytes 0..4095   magic "COPPACK\0", u32 version, u32 zero, key (u64 low, u64 high), u64 bytes of the body,
//   the
//                   body's hash (u64, u64), zeros
//   from 4096       the packed matrices as in memory (packing.h)
#pragma once

#include <coppice/error.h>

#include <functional>
#include <span>
#include <string>

#include "base/hash.h"
#include "base/os.h"
#include "base/thread_pool.h"
#include "model/packing.h"

namespace coppice::core {

// A change of the packed layout or of the order of matrices in memory raises it.
inline constexpr std::uint32_t kPackedFileVersion = 2;

// What a cache is asked for and says. One per load.
struct PackedCache {
  std::string folder;  // made when there is none
  bool used = false;   // the weights are those of the file, mapped
  bool written = false;
  std::string path;     // of the file
  std::string problem;  // why a file there was refused, or why none could be written; empty: nothing is wrong
};

// The key of the jobs' tensors. Reads them all, on all threads, and releases the file's pages.
Hash128 packed_key(const gguf::File& file, std::span<const PackJob> jobs, ThreadPool& pool);

std::string packed_path(const std::string& folder, const Hash128& key);

// The body of a packed file of `bytes` bytes. Fails with one sentence on anything that is not exactly it.
Result<MappedFile> map_packed(const std::string& path, const Hash128& key, std::size_t bytes,
                              ThreadPool& pool);
std::span<const std::byte> packed_body(const MappedFile& file);

// Written aside and renamed: processes that write at once all leave a whole file.
Status write_packed(const std::string& path, const Hash128& key, std::span<const std::byte> body,
                    ThreadPool& pool);

// As pack_weights(), out of the cache where it has them, and into it where not. What is wrong with the cache
// is no error: it is said in `cache`, and the weights are packed.
Result<PackedWeights> cached_weights(const gguf::File& file, std::span<const PackJob> jobs, ThreadPool& pool,
                                     const std::function<void(double)>& progress, PackedCache& cache);

}  // namespace coppice::core
