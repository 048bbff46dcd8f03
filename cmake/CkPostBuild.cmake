# SPDX-License-Identifier: MIT
#[=[
Lazy Composable Kernel attention libraries in a CMake project.

  list(APPEND CMAKE_MODULE_PATH "<what ck-post-build --cmake-dir prints>")
  include(CkPostBuild)

  ck_post_build_library(NAME <target>
      API <file>...               # generated fmha_*_api.cpp files, made at configure or at build time
      BLOB_DIR <directory>...     # where their blobs are
      [OUTPUT_NAME <lib.so>]      # default: lib<target>.so
      [HOST_SOURCES <file>...]    # more sources, objects and archives of the library
      [TARGET <target>]           # take the include directories, definitions and options of this target, and
                                  # CMAKE_CXX_FLAGS with those of the build type
      [COMPILE_DB <file or dir>]  # take the flags from a compile database or a directory configured for Ninja
      [FLAGS <flag>...]           # or give them; with TARGET they come behind the target's
      [LINK_FLAGS <flag>...]
      [DEPENDS <file or target>...]
      [EXCLUDE_FROM_ALL])

makes an imported shared library <target> that is built when needed. It is built again when an API file, a blob, a header,
a host source, the compiler or ck-post-build changes; a build in which none did does nothing. With generators other than
Ninja and Makefiles give what is not an API file, a host source or a blob that exists when CMake runs as DEPENDS.

  ck_post_build_install(<target> [DESTINATION <directory below the install prefix>])

installs it with the sources and headers that it compiles kernels from (see ck-post-build install). The default is the
prefix's lib directory.

CK_POST_BUILD_EXECUTABLE names the ck-post-build to use. HIP's compiler is found as it finds it: ROCM_PATH in the
environment of the build, /opt/rocm, or PATH; -DCK_POST_BUILD_ROCM_PATH=... sets ROCM_PATH for it.
]=]
include_guard(GLOBAL)
cmake_minimum_required(VERSION 3.21)

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH _ck_post_build_data)
set_property(GLOBAL PROPERTY _ck_post_build_runtime "${_ck_post_build_data}/ck_jit_runtime")

find_program(CK_POST_BUILD_EXECUTABLE ck-post-build DOC "the ck-post-build command")
set(CK_POST_BUILD_ROCM_PATH "" CACHE PATH "the ROCm that ck-post-build uses; empty: the one that it finds")

# One library at a time: each starts as many compilers as there are cores.
set_property(GLOBAL APPEND PROPERTY JOB_POOLS ck_post_build=1)

# Writes `flags` (a list) to `result` as one string that ck-post-build splits into the same.
function(_ck_post_build_quote result)
  set(text "")
  foreach(flag IN LISTS ARGN)
    string(REGEX REPLACE "([^A-Za-z0-9_+=./,:@%^-])" "\\\\\\1" flag "${flag}")
    string(APPEND text " ${flag}")
  endforeach()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

# Writes generator expressions to `result` that give the compile flags of `target`, each in single quotes.
function(_ck_post_build_target_flags result target)
  set(standard "$<TARGET_PROPERTY:${target},CXX_STANDARD>")
  set(text "$<$<BOOL:${standard}>:-std=c++${standard}>")
  foreach(kind "INCLUDE_DIRECTORIES;-I" "COMPILE_DEFINITIONS;-D" "COMPILE_OPTIONS;")
    list(GET kind 0 property)
    list(GET kind 1 prefix)
    set(values "$<REMOVE_DUPLICATES:$<TARGET_PROPERTY:${target},${property}>>")
    if(property STREQUAL "COMPILE_OPTIONS")
      set(values "$<TARGET_PROPERTY:${target},${property}>")
    endif()
    string(APPEND text "$<$<BOOL:${values}>: '${prefix}$<JOIN:${values},' '${prefix}>'>")
  endforeach()
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

function(ck_post_build_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "EXCLUDE_FROM_ALL" "NAME;OUTPUT_NAME;TARGET;COMPILE_DB"
    "API;BLOB_DIR;HOST_SOURCES;FLAGS;LINK_FLAGS;DEPENDS")
  foreach(needed NAME API BLOB_DIR)
    if(NOT arg_${needed})
      message(FATAL_ERROR "ck_post_build_library: ${needed} is missing")
    endif()
  endforeach()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ck_post_build_library: unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(arg_COMPILE_DB AND (arg_TARGET OR arg_FLAGS))
    message(FATAL_ERROR "ck_post_build_library: COMPILE_DB excludes TARGET and FLAGS")
  endif()
  if(NOT CK_POST_BUILD_EXECUTABLE)
    message(FATAL_ERROR "ck-post-build was not found: pip install ck-post-build, or set CK_POST_BUILD_EXECUTABLE")
  endif()
  if(NOT arg_OUTPUT_NAME)
    set(arg_OUTPUT_NAME "lib${arg_NAME}.so")
  endif()

  set(directory "${CMAKE_CURRENT_BINARY_DIR}/${arg_NAME}.ck_post_build")
  set(library "${directory}/${arg_OUTPUT_NAME}")
  set(command "${CK_POST_BUILD_EXECUTABLE}" build --lib "${arg_OUTPUT_NAME}" -o "${directory}" --depfile "${directory}.d")
  if(CK_POST_BUILD_ROCM_PATH)
    list(PREPEND command "${CMAKE_COMMAND}" -E env "ROCM_PATH=${CK_POST_BUILD_ROCM_PATH}")
  endif()
  set(files "")
  foreach(option "API;--api" "BLOB_DIR;--blob-dir" "HOST_SOURCES;--host-object")
    list(GET option 0 kind)
    list(GET option 1 word)
    foreach(path IN LISTS arg_${kind})
      # Where add_custom_command looks: in the source directory if it is there, else in the binary directory.
      if(NOT IS_ABSOLUTE "${path}" AND EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${path}")
        cmake_path(ABSOLUTE_PATH path BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
      else()
        cmake_path(ABSOLUTE_PATH path BASE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}" NORMALIZE)
      endif()
      list(APPEND command ${word} "${path}")
      if(NOT kind STREQUAL "BLOB_DIR")
        list(APPEND files "${path}")
      endif()
    endforeach()
  endforeach()

  if(arg_COMPILE_DB)
    cmake_path(ABSOLUTE_PATH arg_COMPILE_DB BASE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}" NORMALIZE)
    list(APPEND command --compile-db "${arg_COMPILE_DB}")
  else()
    _ck_post_build_quote(flags ${arg_FLAGS})
    if(arg_TARGET)
      _ck_post_build_target_flags(of_target "${arg_TARGET}")
      string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
      string(PREPEND flags "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}} ${of_target}")
    endif()
    list(APPEND command --flags "${flags}")
  endif()
  if(arg_LINK_FLAGS)
    _ck_post_build_quote(link_flags ${arg_LINK_FLAGS})
    list(APPEND command --link-flags "${link_flags}")
  endif()

  set(depfile "")
  if(CMAKE_GENERATOR MATCHES "Ninja|Makefiles")
    set(depfile DEPFILE "${directory}.d")
  endif()
  set(pool "")
  if(CMAKE_GENERATOR MATCHES "Ninja")
    set(pool JOB_POOL ck_post_build)
  endif()
  add_custom_command(
    OUTPUT "${library}"
    COMMAND ${command}
    DEPENDS ${files} ${arg_DEPENDS}
    ${depfile}
    ${pool}
    COMMENT "Building lazy library ${arg_OUTPUT_NAME}"
    VERBATIM)
  set(all ALL)
  if(arg_EXCLUDE_FROM_ALL)
    set(all "")
  endif()
  add_custom_target(${arg_NAME}_ck_post_build ${all} DEPENDS "${library}")
  add_library(${arg_NAME} SHARED IMPORTED GLOBAL)
  add_dependencies(${arg_NAME} ${arg_NAME}_ck_post_build)
  set_target_properties(${arg_NAME} PROPERTIES
    IMPORTED_LOCATION "${library}"
    IMPORTED_SONAME "${arg_OUTPUT_NAME}"
    CK_POST_BUILD_DIR "${directory}")
  # ck_jit.h, beside this directory in a checkout and in an installed package alike.
  get_property(runtime GLOBAL PROPERTY _ck_post_build_runtime)
  target_include_directories(${arg_NAME} INTERFACE "${runtime}")
  if(arg_TARGET)
    target_include_directories(${arg_NAME} INTERFACE "$<TARGET_PROPERTY:${arg_TARGET},INTERFACE_INCLUDE_DIRECTORIES>")
  endif()
endfunction()

function(ck_post_build_install target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DESTINATION" "")
  if(NOT arg_DESTINATION)
    include(GNUInstallDirs)
    set(arg_DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  endif()
  get_target_property(directory "${target}" CK_POST_BUILD_DIR)
  if(NOT directory)
    message(FATAL_ERROR "ck_post_build_install: ${target} is no target of ck_post_build_library")
  endif()
  install(CODE "
    set(destination [==[${arg_DESTINATION}]==])
    cmake_path(ABSOLUTE_PATH destination BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\" NORMALIZE)
    execute_process(
      COMMAND [==[${CK_POST_BUILD_EXECUTABLE}]==] install --build-dir [==[${directory}]==] --prefix \"\$ENV{DESTDIR}\${destination}\"
      COMMAND_ERROR_IS_FATAL ANY)")
endfunction()
