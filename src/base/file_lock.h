// Keeps a second process out of a folder. Beside os.h, for few need it.
#pragma once

#include <coppice/error.h>

#include <string>

namespace coppice::core {

// Held until it goes away, or the process does, however that ends. The file stays behind, empty.
class FileLock {
 public:
  // Fails at once when another holder is there: "PATH: another process is at work here".
  static Result<FileLock> take(const std::string& path);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  explicit FileLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace coppice::core
