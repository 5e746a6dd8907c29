# coppice_room(NAME DEPS other rooms...): one static library and one test binary out of src/NAME.
#   src/NAME/*.cc        the library coppice_NAME
#   src/NAME/*_test.cc   the test binary NAME_tests, run by ctest case by case
#   src/NAME/*_ISA.cc, ISA as below   compiled with that instruction set's flags, and nothing else is

set(COPPICE_FLAGS -ffp-contract=off -fno-math-errno -fno-trapping-math -fvisibility=hidden
                  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
# GCC 12 sees overflows in inlined strings that are not there.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  list(APPEND COPPICE_FLAGS -Wno-restrict -Wno-stringop-overflow)
endif()
if(COPPICE_WERROR)
  list(APPEND COPPICE_FLAGS -Werror)
endif()

# The instruction sets of the processor we build for; on another one their files are empty.
set(COPPICE_ISAS)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(COPPICE_ISAS avx2 avx512vnni)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(COPPICE_ISAS neon neondot)
endif()
set(COPPICE_ISA_avx2 -mavx2 -mfma -mf16c -mbmi2)
set(COPPICE_ISA_avx512vnni -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mfma -mf16c -mbmi2)
set(COPPICE_ISA_neon -march=armv8-a)
set(COPPICE_ISA_neondot -march=armv8.2-a+dotprod)

enable_testing()
include(GoogleTest)

function(coppice_room name)
  cmake_parse_arguments(ROOM "" "" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*_test.cc)
  if(tests)
    list(REMOVE_ITEM sources ${tests})
  endif()
  if(sources)
    add_library(coppice_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(coppice_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(coppice_${name} ${scope} ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(coppice_${name} ${scope} tl::expected fmt::fmt spdlog::spdlog
                        nlohmann_json::nlohmann_json Threads::Threads)
  foreach(dep ${ROOM_DEPS})
    target_link_libraries(coppice_${name} ${scope} coppice_${dep})
  endforeach()
  if(sources)
    target_compile_options(coppice_${name} PRIVATE ${COPPICE_FLAGS})
    foreach(isa ${COPPICE_ISAS})
      foreach(source ${sources})
        if(source MATCHES "_${isa}\\.cc$")
          set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${COPPICE_ISA_${isa}}")
        endif()
      endforeach()
    endforeach()
  endif()
  if(tests AND COPPICE_TESTS)
    add_executable(${name}_tests ${tests})
    target_compile_options(${name}_tests PRIVATE ${COPPICE_FLAGS} -Wno-conversion)
    target_link_libraries(${name}_tests PRIVATE coppice_${name} GTest::gtest GTest::gtest_main)
    gtest_discover_tests(${name}_tests TEST_PREFIX "${name}/" PROPERTIES LABELS ${name}
                         DISCOVERY_MODE PRE_TEST)
  endif()
endfunction()
