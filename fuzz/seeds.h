// For the programs that write a fuzz target's seeds: argument 1 is the folder, each seed a file in it.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "base/os.h"

namespace coppice::core {

inline void write_seed(const std::string& folder, const std::string& name, std::span<const std::byte> bytes) {
  const Status status = write_file(folder + "/" + name, [&](const Append& append) { return append(bytes); });
  if (status) return;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  std::exit(1);
}

inline void write_seed(const std::string& folder, const std::string& name, std::string_view text) {
  write_seed(folder, name, {reinterpret_cast<const std::byte*>(text.data()), text.size()});
}

}  // namespace coppice::core
