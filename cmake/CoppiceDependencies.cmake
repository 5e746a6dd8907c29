# What others wrote, as targets. Debian's packages say how they are used; a cross build uses their headers only, so
# that no library of the other architecture is needed, and compiles GoogleTest from the sources Debian ships.

find_package(Threads REQUIRED)

if(NOT CMAKE_CROSSCOMPILING)
  find_package(fmt REQUIRED)
  find_package(spdlog REQUIRED)
  find_package(nlohmann_json REQUIRED)
  if(NOT SKBUILD)
    find_package(CLI11 REQUIRED)
  endif()
  find_package(tl-expected REQUIRED)
  if(COPPICE_TESTS)
    find_package(GTest REQUIRED)
  endif()
  return()
endif()

# /usr/include is among the directories in which Debian's cross compilers look.
foreach(target fmt::fmt spdlog::spdlog nlohmann_json::nlohmann_json CLI11::CLI11 tl::expected)
  add_library(${target} INTERFACE IMPORTED)
endforeach()
set_target_properties(fmt::fmt PROPERTIES INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1)
set_target_properties(spdlog::spdlog PROPERTIES INTERFACE_COMPILE_DEFINITIONS SPDLOG_FMT_EXTERNAL
                      INTERFACE_LINK_LIBRARIES "fmt::fmt;Threads::Threads")
if(COPPICE_TESTS)
  set(BUILD_GMOCK OFF)
  set(INSTALL_GTEST OFF)
  add_subdirectory(/usr/src/googletest ${CMAKE_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
endif()
