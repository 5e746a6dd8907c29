# Headers of other projects that most files include, parsed once a build and not once a file.
#   coppice_precompile(TARGET KIND)   KIND is one of the lists below
# None of ours is among them: a change of one would build everything again. clang-tidy reads each file by itself and without them
# (scripts/check.py), so that a file which forgot an include is found.
option(COPPICE_PRECOMPILE "parse the headers of other projects once a build" ON)

set(COPPICE_HEADERS_room <algorithm> <array> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory>
                         <optional> <random> <span> <string> <string_view> <utility> <vector> <fmt/format.h> <tl/expected.hpp>)
set(COPPICE_HEADERS_json ${COPPICE_HEADERS_room} <nlohmann/json.hpp>)
set(COPPICE_HEADERS_app ${COPPICE_HEADERS_json} <CLI/CLI.hpp>)
set(COPPICE_HEADERS_test ${COPPICE_HEADERS_room} <gtest/gtest.h>)
set(COPPICE_HEADERS_torch ${COPPICE_HEADERS_room} <torch/types.h> <torch/csrc/autograd/custom_function.h> <ATen/Parallel.h>)

# ccache keeps what was made with a precompiled header only where it is told that the header's macros may be trusted.
if(COPPICE_PRECOMPILE AND CMAKE_CXX_COMPILER_LAUNCHER MATCHES "(^|/)ccache$")
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()

# The target that has the precompiled headers of this kind, with the flags of those that use them; made when first asked for.
function(coppice_header_owner kind)
  set(owner coppice_headers_${kind})
  if(TARGET ${owner})
    return()
  endif()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/headers/${kind}.cc CONTENT "// Only for its precompiled headers.\n")
  add_library(${owner} OBJECT ${CMAKE_BINARY_DIR}/headers/${kind}.cc)
  target_precompile_headers(${owner} PRIVATE ${COPPICE_HEADERS_${kind}})
  target_compile_options(${owner} PRIVATE ${COPPICE_FLAGS} ${ARGN})
  target_link_libraries(${owner} PRIVATE tl::expected fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
  if(kind STREQUAL room)  # as the rooms that use them (CoppiceRoom.cmake)
    set_target_properties(${owner} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  if(kind STREQUAL app)
    target_link_libraries(${owner} PRIVATE CLI11::CLI11)
  elseif(kind STREQUAL test)
    target_link_libraries(${owner} PRIVATE GTest::gtest)
  elseif(kind STREQUAL torch)
    target_link_libraries(${owner} PRIVATE coppice_torch)
  endif()
endfunction()

function(coppice_precompile target kind)
  if(NOT COPPICE_PRECOMPILE)
    return()
  endif()
  coppice_header_owner(${kind} ${ARGN})
  target_precompile_headers(${target} REUSE_FROM coppice_headers_${kind})
endfunction()

# Several files compiled as one: what a header of templates makes (CLI11, JSON) is then made once for all of them, and that is most
# of what a command takes to compile. For builds of everything; where one file changes after another it would only be slower.
#   coppice_unity(TARGET EXPRESSION...)   files that match an expression (without .cc) become one; the others stay alone.
# Files of one group share their unnamed namespaces: a name that two of them have is an error of the compiler, and is mended by
# another name or another group.
option(COPPICE_UNITY "compile files of the command in groups" OFF)

function(coppice_unity target)
  if(NOT COPPICE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    file(RELATIVE_PATH name ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    if(IS_ABSOLUTE ${source})
      file(RELATIVE_PATH name ${CMAKE_CURRENT_SOURCE_DIR} ${source})
    endif()
    set(number 0)
    foreach(expression ${ARGN})
      math(EXPR number "${number} + 1")
      if(name MATCHES "^(${expression})\\.cc$")
        set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${target}_${number})
      endif()
    endforeach()
  endforeach()
endfunction()
