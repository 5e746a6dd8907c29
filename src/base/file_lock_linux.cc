#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file_lock.h"

namespace coppice::core {

Result<FileLock> FileLock::take(const std::string& path) {
  FileLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
  if (lock.descriptor_ < 0) return fail(fmt::format("{}: cannot create: {}", path, std::strerror(errno)));
  if (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK) return fail(path + ": another process is at work here; wait for it, or stop it");
  return fail(fmt::format("{}: cannot lock: {}", path, std::strerror(errno)));
}

FileLock::FileLock(FileLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace coppice::core
