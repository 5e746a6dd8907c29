// Files and memory on Linux. What the machine is like (cores, memory, CPU) is in machine_linux.cc and
// cpu_features.cc.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/os.h"

namespace coppice::core {

// File formats are little endian and are read in place.
static_assert(std::endian::native == std::endian::little, "Coppice runs on little-endian machines only");

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kWriteBuffer = std::size_t{1} << 20;
constexpr std::size_t kMostRead = std::size_t{256} << 20;  // by read_file(); /dev/zero has no end

std::string reason(int error) { return std::strerror(error); }

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  int close() {
    const int result = value_ < 0 ? 0 : ::close(value_);
    value_ = -1;
    return result;
  }

 private:
  int value_;
};

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

// A mapping of `bytes` (a multiple of 2 MiB) that starts at a multiple of 2 MiB; null when there is no
// memory.
std::byte* map_aligned(std::size_t bytes) {
  const std::size_t reserved = bytes + kHugePage;
  void* raw = ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto* start = static_cast<std::byte*>(raw);
  const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(start) % kHugePage) % kHugePage;
  if (before > 0) ::munmap(start, before);
  if (before < kHugePage) ::munmap(start + before + bytes, kHugePage - before);
  ::madvise(start + before, bytes, MADV_HUGEPAGE);  // a hint: where it is refused, nothing is lost but speed
  return start + before;
}

// Appends to a descriptor through a buffer, so that a writer may append a few bytes at a time.
class FileAppender {
 public:
  FileAppender(int descriptor, const std::string& path) : descriptor_(descriptor), path_(path) {
    buffer_.reserve(kWriteBuffer);
  }

  Status append(std::span<const std::byte> bytes) {
    if (buffer_.size() + bytes.size() > kWriteBuffer) {
      if (Status status = flush(); !status) return status;
      if (bytes.size() >= kWriteBuffer) return write_all(bytes);
    }
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return {};
  }

  Status flush() {
    Status status = write_all(buffer_);
    buffer_.clear();
    return status;
  }

 private:
  Status write_all(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return fail(fmt::format("{}: cannot write: {}", path_, reason(errno)));
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return {};
  }

  int descriptor_;
  const std::string& path_;
  std::vector<std::byte> buffer_;
};

Status write_and_flush(int descriptor, const std::string& path,
                       const std::function<Status(const Append&)>& write) {
  FileAppender appender(descriptor, path);
  Status status = write([&](std::span<const std::byte> bytes) { return appender.append(bytes); });
  return status ? appender.flush() : status;
}

// Devices and pipes cannot be replaced by a rename: they are written to as they are.
Status write_in_place(const std::string& path, const std::function<Status(const Append&)>& write) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) return fail(fmt::format("{}: cannot open for writing: {}", path, reason(errno)));
  return write_and_flush(file.get(), path, write);
}

// The file a symbolic link leads to, so that the link survives the rename.
std::string follow_links(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string result = resolved;
  std::free(resolved);
  return result;
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: a named pipe nobody writes to must not keep us waiting; files do not mind.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return fail(fmt::format("{}: cannot open: {}", path, reason(errno)));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return fail(fmt::format("{}: cannot stat: {}", path, reason(errno)));
  if (S_ISDIR(info.st_mode)) return fail(fmt::format("{}: is a directory, not a file", path));
  if (!S_ISREG(info.st_mode)) return fail(fmt::format("{}: is not a regular file", path));
  MappedFile result;
  result.size_ = static_cast<std::size_t>(info.st_size);
  if (result.size_ == 0) return result;
  void* data = ::mmap(nullptr, result.size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) {
    result.size_ = 0;
    return fail(fmt::format("{}: cannot map {} bytes: {}", path, info.st_size, reason(errno)));
  }
  result.data_ = static_cast<const std::byte*>(data);
  return result;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::will_need() const {
  if (data_ != nullptr) ::madvise(const_cast<std::byte*>(data_), size_, MADV_WILLNEED);
}

void MappedFile::release(std::span<const std::byte> part) const {
  if (part.empty()) return;
  COPPICE_CHECK(part.data() >= data_ && part.data() + part.size() <= data_ + size_);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = static_cast<std::size_t>(part.data() - data_) / page * page;
  const auto end = round_up(static_cast<std::size_t>(part.data() - data_) + part.size(), page);
  ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

Result<Buffer> Buffer::make(std::size_t bytes) {
  Buffer result;
  if (bytes == 0) return result;
  const auto refuse = [&] { return fail(fmt::format("cannot get {} bytes of memory", bytes)); };
  if (bytes < kHugePage) {
    result.data_ = static_cast<std::byte*>(std::aligned_alloc(64, round_up(bytes, 64)));
    if (result.data_ == nullptr) return refuse();
    std::memset(result.data_, 0, bytes);
  } else {
    // Linux hands out addresses it has no memory for and kills the process later; say so now instead.
    if (bytes > memory_total())
      return fail(fmt::format("cannot get {} bytes of memory: this machine has {}", bytes, memory_total()));
    result.data_ = map_aligned(round_up(bytes, kHugePage));
    if (result.data_ == nullptr) return refuse();
  }
  result.size_ = bytes;
  return result;
}

Buffer Buffer::part_of(std::span<std::byte> kept) {
  Buffer result;
  result.data_ = kept.data();
  result.size_ = kept.size();
  result.own_ = false;
  return result;
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)), own_(other.own_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(own_, other.own_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ == nullptr || !own_) return;
  if (size_ < kHugePage) {
    std::free(data_);
  } else {
    ::munmap(data_, round_up(size_, kHugePage));
  }
}

Status write_file(const std::string& path, const std::function<Status(const Append&)>& write) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return fail(fmt::format("{}: is a directory, not a file", path));
    if (!S_ISREG(info.st_mode)) return write_in_place(path, write);
  }
  static std::atomic<unsigned> serial{0};
  const std::string final_path = follow_links(path);
  const std::string temporary = fmt::format("{}.{}-{}.tmp", final_path, ::getpid(), serial.fetch_add(1));
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) return fail(fmt::format("{}: cannot create: {}", path, reason(errno)));
  Status status = write_and_flush(file.get(), path, write);
  // Without fsync a power cut may leave the new name with none of the bytes.
  if (status && (::fsync(file.get()) != 0 || file.close() != 0))
    status = fail(fmt::format("{}: cannot write: {}", path, reason(errno)));
  if (status && ::rename(temporary.c_str(), final_path.c_str()) != 0)
    status = fail(fmt::format("{}: cannot rename the finished file into place: {}", path, reason(errno)));
  if (!status) ::unlink(temporary.c_str());
  return status;
}

Result<std::string> read_file(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return fail(fmt::format("{}: cannot open: {}", path, reason(errno)));
  std::string result;
  std::size_t used = 0;
  for (;;) {
    if (used == result.size()) result.resize(used == 0 ? 1 << 16 : used * 2);
    const ssize_t got = ::read(file.get(), result.data() + used, result.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(fmt::format("{}: cannot read: {}", path, reason(errno)));
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
    if (used > kMostRead) return fail(fmt::format("{}: is longer than {} MB", path, kMostRead >> 20));
  }
  result.resize(used);
  return result;
}

Status warm_file(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return fail(fmt::format("{}: cannot open: {}", path, reason(errno)));
  std::vector<std::byte> piece(1 << 20);
  for (;;) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(fmt::format("{}: cannot read: {}", path, reason(errno)));
    if (got == 0) return {};
  }
}

bool is_terminal(int descriptor) { return ::isatty(descriptor) == 1; }

int terminal_columns(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

double seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

bool allow_tile_registers() {
#if defined(__x86_64__)
  // The kernel's documentation, arch/x86/xstate: a dynamically enabled state needs permission, once for all
  // threads.
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool allowed = ::syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  return allowed;
#else
  return false;
#endif
}

}  // namespace coppice::core
