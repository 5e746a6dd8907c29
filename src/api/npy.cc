#include "api/npy.h"

#include <fmt/core.h>

#include "base/check.h"

namespace coppice {

Status write_npy(const std::string& path, std::string_view descr, std::size_t rows, std::size_t columns,
                 const std::function<Status(const core::Append&)>& write) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}", descr, rows, columns);
  constexpr std::size_t kPrefix = 10;  // magic, version, length; the whole is padded to a multiple of 64
  header.append(64 - (kPrefix + header.size() + 1) % 64, ' ');
  header += '\n';
  std::string prefix("\x93NUMPY\x01\x00", 8);
  prefix += static_cast<char>(header.size() & 0xff);
  prefix += static_cast<char>(header.size() >> 8);
  prefix += header;
  return core::write_file(path, [&](const core::Append& append) -> Status {
    COPPICE_TRY_STATUS(append(std::as_bytes(std::span(prefix))));
    return write(append);
  });
}

}  // namespace coppice
