// Memory first: the packed weights lie in one piece, so that the system can give huge pages (the matrices of
// a small model are smaller than one), and whoever packs a part of it is the first to touch it. The work is
// cut where huge pages begin: two threads that touch the same one for the first time would both clear it. A
// thread that is done with a piece of the file gives its pages back before it takes the next.
#include "model/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/check.h"
#include "quant/formats.h"

namespace coppice::core {
namespace {

constexpr std::size_t kMatrixAlignment = 64;
constexpr std::size_t kChunkBytes = std::size_t{2} << 20;  // of packed weights: a huge page

// Groups [begin, end) of a job.
struct Piece {
  std::uint32_t job;
  int begin, end;
};

constexpr std::size_t round_up(std::size_t n, std::size_t to) { return (n + to - 1) / to * to; }

class Packing {
 public:
  Packing(const gguf::File& file, std::span<const PackJob> jobs) : file_(file), jobs_(jobs) { cut(); }

  Status run(ThreadPool& pool, const std::function<void(double)>& progress);

 private:
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();

  void cut();
  void pack(const Piece& piece);
  std::span<const std::byte> source(const Piece& piece) const;
  std::int64_t first_bad_row(const PackJob& job, int group) const;
  Status verdict() const;

  const gguf::File& file_;
  std::span<const PackJob> jobs_;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> chunks_;  // where each chunk's pieces begin; the end of the last
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> done_{0};       // bytes of the file
  std::atomic<std::uint64_t> bad_{kNone};  // job << 32 | row of the first scale that is not finite
};

// A chunk is every piece that begins in the same huge page.
void Packing::cut() {
  std::size_t page = std::numeric_limits<std::size_t>::max();
  std::size_t start = 0;  // of the job's packed bytes
  for (std::uint32_t j = 0; j < jobs_.size(); ++j) {
    const PackedMatrix& matrix = *jobs_[j].matrix;
    const std::size_t group = matrix.group_bytes();
    for (int begin = 0; begin < matrix.groups();) {
      const std::size_t at = start + group * static_cast<std::size_t>(begin);
      const std::size_t left = (at / kChunkBytes + 1) * kChunkBytes - at;
      const auto groups =
          static_cast<int>(std::min<std::size_t>((left + group - 1) / group, matrix.groups()));
      if (at / kChunkBytes != page) chunks_.push_back(pieces_.size());
      page = at / kChunkBytes;
      const int end = std::min(begin + groups, matrix.groups());
      pieces_.push_back({j, begin, end});
      begin = end;
    }
    start += round_up(matrix.bytes(), kMatrixAlignment);
  }
  chunks_.push_back(pieces_.size());
}

std::span<const std::byte> Packing::source(const Piece& piece) const {
  const PackJob& job = jobs_[piece.job];
  const std::size_t row = row_bytes(*job.tensor->format, job.matrix->inputs);
  const int first = piece.begin * kGroupOutputs;
  const int last = std::min(piece.end * kGroupOutputs, job.matrix->outputs);
  return {job.tensor->data + row * static_cast<std::size_t>(first),
          row * static_cast<std::size_t>(last - first)};
}

// The first row of a group that has a scale or value that is not finite.
std::int64_t Packing::first_bad_row(const PackJob& job, int group) const {
  const Format& format = *job.tensor->format;
  const std::size_t bytes = row_bytes(format, job.matrix->inputs);
  std::int64_t row = std::int64_t{group} * kGroupOutputs;
  while (format.find_nonfinite(job.tensor->data + bytes * static_cast<std::size_t>(row), job.matrix->inputs) <
         0)
    ++row;
  return row;
}

void Packing::pack(const Piece& piece) {
  const PackJob& job = jobs_[piece.job];
  for (int group = piece.begin; group < piece.end; ++group) {
    pack_groups(*job.tensor->format, job.tensor->data, *job.matrix, group, group + 1);
    if (all_finite(*job.matrix, group, group + 1)) continue;  // while it is in the cache
    // The first of all is reported: pieces are taken in order, so whoever has an earlier one finishes it.
    const std::uint64_t place =
        std::uint64_t{piece.job} << 32 | static_cast<std::uint64_t>(first_bad_row(job, group));
    std::uint64_t before = bad_.load();
    while (place < before && !bad_.compare_exchange_weak(before, place)) {
    }
    return;
  }
  const std::span<const std::byte> bytes = source(piece);
  file_.release(bytes);
  done_.fetch_add(bytes.size(), std::memory_order_relaxed);
}

Status Packing::run(ThreadPool& pool, const std::function<void(double)>& progress) {
  std::size_t total = 0;
  for (const PackJob& job : jobs_) total += job.tensor->bytes;
  const auto tell = [&] {
    if (progress) progress(static_cast<double>(done_.load()) / static_cast<double>(total));
  };
  tell();
  pool.run([&](int thread) {
    while (bad_.load() == kNone) {
      const std::size_t chunk = next_.fetch_add(1);
      if (chunk + 1 >= chunks_.size()) return;
      for (std::size_t i = chunks_[chunk]; i < chunks_[chunk + 1]; ++i) pack(pieces_[i]);
      if (thread == 0) tell();
    }
  });
  if (Status status = verdict(); !status) return status;
  // Reading one page of a file maps its neighbours too, those that others have released among them.
  for (const PackJob& job : jobs_) file_.release({job.tensor->data, job.tensor->bytes});
  tell();
  return {};
}

Status Packing::verdict() const {
  const std::uint64_t place = bad_.load();
  if (place == kNone) return {};
  const PackJob& job = jobs_[place >> 32];
  const Format& format = *job.tensor->format;
  const std::uint64_t row = place & 0xffffffffu;
  const std::int64_t at = format.find_nonfinite(
      job.tensor->data + row_bytes(format, job.matrix->inputs) * row, job.matrix->inputs);
  return fail(fmt::format("{}: tensor {} has a value or scale that is not finite in row {} at value {}",
                          file_.path(), job.tensor->name, row, at));
}

}  // namespace

std::size_t packed_bytes(std::span<const PackJob> jobs) {
  std::size_t total = 0;
  for (const PackJob& job : jobs) total += round_up(job.matrix->bytes(), kMatrixAlignment);
  return total;
}

void place_weights(std::span<const PackJob> jobs, std::span<const std::byte> packed) {
  COPPICE_CHECK(packed.size() == packed_bytes(jobs));
  auto* at = const_cast<std::byte*>(packed.data());  // only packing writes
  for (const PackJob& job : jobs) {
    job.matrix->data = Buffer::part_of(std::span(at, job.matrix->bytes()));
    at += round_up(job.matrix->bytes(), kMatrixAlignment);
  }
}

Result<PackedWeights> pack_weights(const gguf::File& file, std::span<const PackJob> jobs, ThreadPool& pool,
                                   const std::function<void(double)>& progress) {
  COPPICE_TRY(Buffer memory, Buffer::make(packed_bytes(jobs)));
  place_weights(jobs, {memory.data(), memory.size()});
  Packing packing(file, jobs);
  COPPICE_TRY_STATUS(packing.run(pool, progress));
  return PackedWeights{std::move(memory), {}};
}

}  // namespace coppice::core
