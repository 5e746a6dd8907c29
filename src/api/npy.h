// Writes numpy's .npy format, version 1.0, C order.
#pragma once

#include <coppice/error.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/os.h"

namespace coppice {

// descr: "<f4", "|i1". `write` appends rows * columns values.
Status write_npy(const std::string& path, std::string_view descr, std::size_t rows, std::size_t columns,
                 const std::function<Status(const core::Append&)>& write);

}  // namespace coppice
