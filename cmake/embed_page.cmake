# Writes a C++ file with the page: cmake -DPAGE=FOLDER -DOUTPUT=FILE.cc -P embed_page.cmake
# Every file of the folder goes in twice, as it is and compressed, with its type and a hash of its bytes.
cmake_minimum_required(VERSION 3.22)
if(NOT PAGE OR NOT OUTPUT)
  message(FATAL_ERROR "embed_page.cmake: -DPAGE=FOLDER and -DOUTPUT=FILE are wanted")
endif()
file(GLOB files LIST_DIRECTORIES OFF RELATIVE ${PAGE} ${PAGE}/*)
list(SORT files)
if(NOT "index.html" IN_LIST files)
  message(FATAL_ERROR "embed_page.cmake: ${PAGE} has no index.html; the page begins with it")
endif()

set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")
set(type_png "image/png")
set(type_ico "image/x-icon")
set(type_json "application/json")
set(type_txt "text/plain; charset=utf-8")

# Hexadecimal digits as a list of bytes.
function(bytes_of hex out)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  set(${out} "${bytes}" PARENT_SCOPE)
endfunction()

set(arrays "")
set(rows "")
set(number 0)
foreach(name ${files})
  get_filename_component(extension ${name} LAST_EXT)
  string(SUBSTRING "${extension}" 1 -1 extension)
  if(NOT DEFINED type_${extension})
    message(FATAL_ERROR "embed_page.cmake: ${name}: files that end in .${extension} have no type in cmake/embed_page.cmake")
  endif()
  file(READ ${PAGE}/${name} plain HEX)
  if(plain STREQUAL "")
    message(FATAL_ERROR "embed_page.cmake: ${PAGE}/${name} is empty")
  endif()
  file(SHA256 ${PAGE}/${name} hash)
  string(SUBSTRING ${hash} 0 32 hash)
  set(packed ${OUTPUT}.gz)
  file(ARCHIVE_CREATE OUTPUT ${packed} PATHS ${PAGE}/${name} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
  file(READ ${packed} gzip HEX)
  file(REMOVE ${packed})
  # The second at which it was compressed: the same page gives the same binary.
  string(SUBSTRING ${gzip} 0 8 head)
  string(SUBSTRING ${gzip} 16 -1 tail)
  bytes_of("${plain}" plain)
  bytes_of("${head}00000000${tail}" gzip)
  string(APPEND arrays "constexpr unsigned char kPlain${number}[] = {${plain}};\nconstexpr unsigned char kGzip${number}[] = {${gzip}};\n")
  string(APPEND rows "    {\"${name}\", \"${type_${extension}}\", \"${hash}\", text(kPlain${number}), text(kGzip${number})},\n")
  math(EXPR number "${number} + 1")
endforeach()

file(WRITE ${OUTPUT} "// Written by cmake/embed_page.cmake.
#include \"page.h\"

#include <cstddef>

namespace coppice::serve {
namespace {

${arrays}
template <std::size_t kBytes>
std::string_view text(const unsigned char (&bytes)[kBytes]) {
  return {reinterpret_cast<const char*>(bytes), kBytes};
}

}  // namespace

std::span<const PageFile> page_files() {
  static const PageFile kFiles[] = {
${rows}  };
  return kFiles;
}

}  // namespace coppice::serve
")
