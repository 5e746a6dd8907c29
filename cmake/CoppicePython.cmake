# The Python that scripts, tests and the extension module are for, as COPPICE_PYTHON: -DCOPPICE_PYTHON=..., else .venv's, which has
# scripts/python-requirements.txt. Not cached: .venv may come after the first run.
if(SKBUILD)
  set(COPPICE_PYTHON ${Python_EXECUTABLE})
elseif(NOT DEFINED COPPICE_PYTHON)
  set(COPPICE_PYTHON python3)
  if(EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python)
    set(COPPICE_PYTHON ${CMAKE_SOURCE_DIR}/.venv/bin/python)
  endif()
endif()

# Its headers, and the nanobind that it has; for python/CMakeLists.txt.
macro(coppice_find_nanobind)
  if(NOT SKBUILD AND IS_ABSOLUTE ${COPPICE_PYTHON})
    set(Python_EXECUTABLE ${COPPICE_PYTHON})
  endif()
  find_package(Python 3.10 COMPONENTS Interpreter Development.Module)
  if(NOT Python_FOUND)
    message(FATAL_ERROR "the Python package needs the headers of Python 3.10 or later (./dev setup installs them); "
                        "-DCOPPICE_PYTHON_MODULE=OFF leaves it out")
  endif()
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE nanobind_missing)
  if(nanobind_missing)
    message(FATAL_ERROR "the Python package needs nanobind in ${Python_EXECUTABLE} (./dev setup installs it); "
                        "-DCOPPICE_PYTHON_MODULE=OFF leaves it out")
  endif()
  find_package(nanobind CONFIG REQUIRED)
endmacro()
