// The one file that knows the operating system: everything Linux-only is declared here, so that another
// system is one more implementation file beside os_linux.cc.
#pragma once

#include <coppice/error.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace coppice::core {

// A whole file, read-only, mapped. Moving keeps the address.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  void will_need() const;  // a hint: read ahead
  // The memory of the pages that `part` touches goes back to the system; who reads them again, reads the
  // file.
  void release(std::span<const std::byte> part) const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Zeroed memory aligned to 64 bytes (2 MiB and huge pages where it is large), or a part of memory that
// somebody else keeps. Not copyable.
class Buffer {
 public:
  Buffer() = default;
  static Result<Buffer> make(std::size_t bytes);     // fails with the size when memory cannot be had
  static Buffer part_of(std::span<std::byte> kept);  // kept must outlive it; nothing is freed
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  bool own_ = true;
};

// Writes through a temporary file beside `path`, then renames: nobody ever sees a half-written file. `write`
// gets a function that appends bytes; its error, or the disk's, removes the temporary and is returned.
using Append = std::function<Status(std::span<const std::byte>)>;
Status write_file(const std::string& path, const std::function<Status(const Append&)>& write);
Result<std::string> read_file(const std::string& path);
Status warm_file(const std::string& path);  // reads it and keeps nothing: it lies in the page cache then

int usable_cores();  // real ones; affinity and cgroup limits respected, at least 1
// How many cores these logical CPUs are: hardware threads of one core count once, since a pass keeps a core's
// units busy with one. `folder` describes the machine's CPUs, as /sys/devices/system/cpu does; one it does
// not know counts.
int separate_cores(std::span<const int> cpus, const std::string& folder);
std::uint64_t memory_total();          // bytes; the smaller of the machine's and the cgroup's
std::uint64_t memory_available();      // bytes
std::uint64_t peak_memory();           // bytes: the most this process ever had; 0 where nobody knows
std::string cache_directory();         // $COPPICE_CACHE, else $XDG_CACHE_HOME/coppice, else ~/.cache/coppice
std::string home_directory();          // empty when there is none
bool is_terminal(int descriptor);      // 0 stdin, 1 stdout, 2 stderr
int terminal_columns(int descriptor);  // of the terminal there; 80 where it does not say
double seconds();                      // monotonic clock

// Saves the floating point control word, sets the IEEE default, restores on leaving.
class DefaultFloatScope {
 public:
  DefaultFloatScope();
  ~DefaultFloatScope();
  DefaultFloatScope(const DefaultFloatScope&) = delete;
  DefaultFloatScope& operator=(const DefaultFloatScope&) = delete;

 private:
  std::uint64_t saved_;
};

// What this CPU can do, as the operating system lets it.
struct CpuFeatures {
  std::string name;
  bool avx2 = false, fma = false, f16c = false, avx_vnni = false;
  bool avx512f = false, avx512bw = false, avx512dq = false, avx512vl = false, avx512_vnni = false;
  bool amx_int8 = false, neon = false, dotprod = false;
};
const CpuFeatures& cpu_features();

// Asks the system, once a process, to let its threads use the AMX tile registers (amx_int8). False where it
// does not: an older kernel, or a host whose alternate signal stacks are too small for them.
bool allow_tile_registers();

}  // namespace coppice::core
