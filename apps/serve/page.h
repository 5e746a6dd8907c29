// The page at /, embedded in the binary: every file of apps/serve/page/, plain and compressed
// (cmake/embed_page.cmake).
#pragma once

#include <span>
#include <string_view>

namespace coppice::serve {

struct PageFile {
  std::string_view name;  // "index.html"
  std::string_view type;  // "text/html; charset=utf-8"
  std::string_view hash;  // of its bytes, hexadecimal
  std::string_view plain, gzip;
};

std::span<const PageFile> page_files();

}  // namespace coppice::serve
