# What `cmake --install` puts where, and the packages that CPack makes of it. Two components:
#   command       the command, its manual pages and completions, the documents, models/
#   development   the public headers, libcoppice.a, the CMake package `coppice`, coppice.pc
# docs/packaging.md is the page for people.
option(COPPICE_INSTALL "rules for cmake --install and cpack" ${PROJECT_IS_TOP_LEVEL})

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The rooms that a target links, itself included.
function(coppice_rooms_of target out)
  set(rooms ${${out}})
  if(NOT target IN_LIST rooms)
    list(APPEND rooms ${target})
    get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
    foreach(link ${links})
      if(link MATCHES "^coppice_" AND TARGET ${link})
        coppice_rooms_of(${link} rooms)
      endif()
    endforeach()
  endif()
  set(${out} ${rooms} PARENT_SCOPE)
endfunction()

# libcoppice.a: the objects of all rooms below the interface, so that a person links one file. The headers name no library but
# tl::expected; fmt and spdlog are what the objects call.
function(coppice_archive)
  set(rooms)
  set(objects)
  coppice_rooms_of(coppice_api rooms)
  foreach(room ${rooms})
    get_target_property(type ${room} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      list(APPEND objects $<TARGET_OBJECTS:${room}>)
    endif()
  endforeach()
  add_library(coppice_archive STATIC ${objects})
  set_target_properties(coppice_archive PROPERTIES OUTPUT_NAME coppice EXPORT_NAME coppice LINKER_LANGUAGE CXX)
  target_compile_features(coppice_archive INTERFACE cxx_std_20)
  target_include_directories(coppice_archive INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(coppice_archive PUBLIC tl::expected PRIVATE fmt::fmt spdlog::spdlog Threads::Threads)
endfunction()

# Manual pages and completions, made by the command itself.
function(coppice_shell_files)
  set(folder ${CMAKE_BINARY_DIR}/shell)
  add_custom_command(
    OUTPUT ${folder}/made
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${folder}
    COMMAND coppice_command man --out ${folder}/man
    COMMAND coppice_command completions --out ${folder}/completions
    COMMAND ${CMAKE_COMMAND} -E touch ${folder}/made
    DEPENDS coppice_command
    COMMENT "Making manual pages and completions")
  add_custom_target(coppice_shell_files ALL DEPENDS ${folder}/made)
  install(DIRECTORY ${folder}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command)
  set(completions ${folder}/completions)
  install(FILES ${completions}/coppice.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME coppice
          COMPONENT command)
  install(FILES ${completions}/_coppice DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT command)
  install(FILES ${completions}/coppice.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT command)
endfunction()

function(coppice_install_command)
  install(TARGETS coppice_command RUNTIME COMPONENT command)
  coppice_shell_files()
  install(DIRECTORY models/ DESTINATION ${CMAKE_INSTALL_DATADIR}/coppice/models COMPONENT command)
  install(FILES README.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT command)
  install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command)
endfunction()

# train.h is the interface of coppice-train, which is not part of the library.
function(coppice_install_development)
  coppice_archive()
  set(cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/coppice)
  install(TARGETS coppice_archive EXPORT coppice_targets ARCHIVE COMPONENT development)
  install(DIRECTORY include/coppice DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
          FILES_MATCHING PATTERN *.h PATTERN train.h EXCLUDE)
  install(EXPORT coppice_targets NAMESPACE coppice:: DESTINATION ${cmake_folder} COMPONENT development)
  set(generated ${CMAKE_BINARY_DIR}/package)
  configure_package_config_file(cmake/coppice-config.cmake.in ${generated}/coppice-config.cmake INSTALL_DESTINATION ${cmake_folder})
  write_basic_package_version_file(${generated}/coppice-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${generated}/coppice-config.cmake ${generated}/coppice-config-version.cmake DESTINATION ${cmake_folder}
          COMPONENT development)
  # From where coppice.pc lies to the folder that it is about, so that the whole can be moved.
  file(RELATIVE_PATH COPPICE_PREFIX_FROM_PC /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
  configure_file(cmake/coppice.pc.in ${generated}/coppice.pc @ONLY)
  install(FILES ${generated}/coppice.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endfunction()

# A build for another processor has no command to make the pages with, and a Python wheel brings its own rules.
if(COPPICE_INSTALL AND NOT CMAKE_CROSSCOMPILING AND NOT SKBUILD)
  coppice_install_command()
  coppice_install_development()
  include(CoppicePackages)
endif()
