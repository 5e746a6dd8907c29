# LibTorch for the room `train`, as the target coppice_torch. Only with COPPICE_TRAIN=ON, which the presets take from the environment.
# Debian's libtorch-dev is found by itself; another one through -DTorch_DIR=.../share/cmake/Torch (a pip package has it below
# site-packages/torch) or CMAKE_PREFIX_PATH. Only the CPU's libraries are linked, so that a build of LibTorch for CUDA serves on a machine
# without it; COPPICE_TRAIN_CUDA=ON takes all of it, as find_package(Torch) says.
option(COPPICE_TRAIN "build coppice-train, which needs LibTorch" OFF)
option(COPPICE_TRAIN_CUDA "link LibTorch with CUDA into coppice-train" OFF)

function(coppice_find_torch)
  if(NOT COPPICE_TRAIN OR CMAKE_CROSSCOMPILING)
    return()
  endif()
  add_library(coppice_torch INTERFACE)
  if(COPPICE_TRAIN_CUDA)
    find_package(Torch REQUIRED)
    target_link_libraries(coppice_torch INTERFACE ${TORCH_LIBRARIES})
    return()
  endif()
  set(hints)
  if(Torch_DIR)
    get_filename_component(prefix ${Torch_DIR}/../../.. ABSOLUTE)
    list(APPEND hints ${prefix})
  endif()
  find_path(COPPICE_TORCH_INCLUDE torch/csrc/autograd/custom_function.h HINTS ${hints} PATH_SUFFIXES include)
  find_library(COPPICE_TORCH_CPU torch_cpu HINTS ${hints} PATH_SUFFIXES lib)
  find_library(COPPICE_TORCH_C10 c10 HINTS ${hints} PATH_SUFFIXES lib)
  mark_as_advanced(COPPICE_TORCH_INCLUDE COPPICE_TORCH_CPU COPPICE_TORCH_C10)
  if(NOT COPPICE_TORCH_INCLUDE OR NOT COPPICE_TORCH_CPU OR NOT COPPICE_TORCH_C10)
    message(FATAL_ERROR "COPPICE_TRAIN is ON, but there is no LibTorch: ./dev setup --train installs Debian's, or set Torch_DIR")
  endif()
  # A pip package brings an fmt of its own; ours comes first.
  get_target_property(fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
  if(NOT COPPICE_TORCH_INCLUDE STREQUAL /usr/include AND fmt_include)
    list(GET fmt_include 0 fmt_include)
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/fmt_first)
    file(CREATE_LINK ${fmt_include}/fmt ${CMAKE_BINARY_DIR}/fmt_first/fmt SYMBOLIC)
    target_include_directories(coppice_torch INTERFACE ${CMAKE_BINARY_DIR}/fmt_first)
  endif()
  target_include_directories(coppice_torch SYSTEM INTERFACE
    ${COPPICE_TORCH_INCLUDE} ${COPPICE_TORCH_INCLUDE}/torch/csrc/api/include)
  # What LibTorch's own libraries need, they find themselves.
  target_link_options(coppice_torch INTERFACE -Wl,--allow-shlib-undefined)
  target_link_libraries(coppice_torch INTERFACE ${COPPICE_TORCH_CPU} ${COPPICE_TORCH_C10})
endfunction()

coppice_find_torch()
