#include "model/packed_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/check.h"

namespace coppice::core {
namespace {

constexpr std::size_t kHeaderBytes = 4096;  // a page, so that the body begins on one
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr char kMagic[8] = "COPPACK";

struct Header {
  char magic[8];
  std::uint32_t version, zero;
  Hash128 key;
  std::uint64_t body_bytes;
  Hash128 body;
};

// A hash of hashes of chunks, so that any number of threads gives the same. `done` (optional) is called with
// each chunk when it has been read.
class ChunkHasher {
 public:
  void add(std::span<const std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += kChunkBytes)
      chunks_.push_back(bytes.subspan(at, std::min(kChunkBytes, bytes.size() - at)));
  }
  Hash128 run(ThreadPool& pool, const std::function<void(std::span<const std::byte>)>& done = {}) const {
    std::vector<Hash128> hashes(chunks_.size());
    std::atomic<std::size_t> next{0};
    pool.run([&](int) {
      for (std::size_t i = next.fetch_add(1); i < chunks_.size(); i = next.fetch_add(1)) {
        hashes[i] = hash_of(chunks_[i]);
        if (done) done(chunks_[i]);
      }
    });
    return hash_of(std::as_bytes(std::span(hashes)));
  }

 private:
  std::vector<std::span<const std::byte>> chunks_;
};

Hash128 body_hash(std::span<const std::byte> body, ThreadPool& pool) {
  ChunkHasher hasher;
  hasher.add(body);
  return hasher.run(pool);
}

// The page of the header. `body` is zeros in a file whose body has not been hashed.
std::array<std::byte, kHeaderBytes> make_header(const Hash128& key, std::size_t bytes, const Hash128& body) {
  Header header{{}, kPackedFileVersion, 0, key, bytes, body};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  std::array<std::byte, kHeaderBytes> page{};
  std::memcpy(page.data(), &header, sizeof(header));
  return page;
}

}  // namespace

Hash128 packed_key(const gguf::File& file, std::span<const PackJob> jobs, ThreadPool& pool) {
  struct Shape {
    std::uint32_t version, type, kind, outputs, inputs;
  };
  std::vector<Shape> shapes;
  ChunkHasher hasher;
  for (const PackJob& job : jobs) {
    shapes.push_back(
        {kPackedFileVersion, job.tensor->format->type, static_cast<std::uint32_t>(job.matrix->kind),
         static_cast<std::uint32_t>(job.matrix->outputs), static_cast<std::uint32_t>(job.matrix->inputs)});
    hasher.add({job.tensor->data, job.tensor->bytes});
  }
  const Hash128 both[] = {hash_of(std::as_bytes(std::span(shapes))),
                          hasher.run(pool, [&](std::span<const std::byte> chunk) { file.release(chunk); })};
  return hash_of(std::as_bytes(std::span(both)));
}

std::string packed_path(const std::string& folder, const Hash128& key) {
  return folder + "/" + to_hex(key) + ".pack";
}

std::span<const std::byte> packed_body(const MappedFile& file) { return file.bytes().subspan(kHeaderBytes); }

Result<MappedFile> map_packed(const std::string& path, const Hash128& key, std::size_t bytes,
                              ThreadPool& pool) {
  COPPICE_TRY(MappedFile file, MappedFile::open(path));
  const std::span<const std::byte> all = file.bytes();
  if (all.size() < kHeaderBytes || std::memcmp(all.data(), kMagic, sizeof(kMagic)) != 0)
    return fail(fmt::format("{}: is not a file of packed weights: it does not begin with COPPACK", path));
  Header header;
  std::memcpy(&header, all.data(), sizeof(header));
  if (header.version != kPackedFileVersion)
    return fail(fmt::format("{}: is of version {}, but this program packs version {}", path, header.version,
                            kPackedFileVersion));
  if (header.key != key)
    return fail(fmt::format("{}: holds the weights of another model than its name says", path));
  if (header.body_bytes != bytes || all.size() != kHeaderBytes + bytes)
    return fail(fmt::format("{}: has {} bytes, but these weights need {}: it is cut off or damaged", path,
                            all.size(), kHeaderBytes + bytes));
  const auto right = make_header(key, bytes, body_hash(packed_body(file), pool));
  if (std::memcmp(all.data(), right.data(), kHeaderBytes) != 0)
    return fail(fmt::format("{}: is damaged: its bytes are not those that were written", path));
  return file;
}

Status write_packed(const std::string& path, const Hash128& key, std::span<const std::byte> body,
                    ThreadPool& pool) {
  const auto header = make_header(key, body.size(), body_hash(body, pool));
  return write_file(path, [&](const Append& append) -> Status {
    COPPICE_TRY_STATUS(append(header));
    return append(body);
  });
}

Result<PackedWeights> cached_weights(const gguf::File& file, std::span<const PackJob> jobs, ThreadPool& pool,
                                     const std::function<void(double)>& progress, PackedCache& cache) {
  const Hash128 key = packed_key(file, jobs, pool);
  cache.path = packed_path(cache.folder, key);
  std::error_code error;
  if (std::filesystem::exists(cache.path, error)) {
    auto mapped = map_packed(cache.path, key, packed_bytes(jobs), pool);
    if (mapped) {
      place_weights(jobs, packed_body(*mapped));
      cache.used = true;
      if (progress) progress(1.0);
      return PackedWeights{{}, std::move(*mapped)};
    }
    cache.problem = mapped.error().message + "; packed anew";
  }
  COPPICE_TRY(PackedWeights weights, pack_weights(file, jobs, pool, progress));
  // Writing into what a pipe's or a device's name stands for is no cache, and might wait for ever.
  if (std::filesystem::exists(cache.path, error) && !std::filesystem::is_regular_file(cache.path, error)) {
    cache.problem =
        fmt::format("{}: is not a regular file; the weights are packed at every load", cache.path);
    return weights;
  }
  std::filesystem::create_directories(cache.folder, error);
  const std::span<const std::byte> body(weights.memory.data(), weights.memory.size());
  if (Status status = write_packed(cache.path, key, body, pool); !status) {
    cache.problem = status.error().message + "; the weights are packed at every load";
  } else {
    cache.written = true;
  }
  return weights;
}

}  // namespace coppice::core
