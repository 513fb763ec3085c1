# longshore_apps(<target>): adds the applications and their hand-written twins to a target that has an MPI, longshore::core and the
# mpi engine already, and <app_lines.hpp>, which has the lines that each takes for its communication. An application whose library
# is not found is left out; LONGSHORE_WITH_FFTW and LONGSHORE_WITH_BLAS say which there are.
find_path(LONGSHORE_FFTW_INCLUDE fftw3.h)
find_library(LONGSHORE_FFTW_LIBRARY fftw3)
find_path(LONGSHORE_BLAS_INCLUDE cblas.h PATH_SUFFIXES openblas openblas-pthread openblas-serial)
find_library(LONGSHORE_BLAS_LIBRARY NAMES openblas cblas blas)
mark_as_advanced(LONGSHORE_FFTW_INCLUDE LONGSHORE_FFTW_LIBRARY LONGSHORE_BLAS_INCLUDE LONGSHORE_BLAS_LIBRARY)

# How many lines of these files (paths from the root) are neither blank nor a comment.
function(longshore_count_lines result)
  set(sum 0)
  foreach(file IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${file})
    file(READ ${PROJECT_SOURCE_DIR}/${file} text)
    string(REGEX REPLACE "[][;\\\\]" "." text "${text}")  # they mean something to lists
    string(REGEX MATCHALL "\n[ \t]*([^ \t\n/]|/[^/])[^\n]*" lines "\n${text}")
    list(LENGTH lines count)
    math(EXPR sum "${sum} + ${count}")
  endforeach()
  set(${result} ${sum} PARENT_SCOPE)
endfunction()

# The files of bench/twins that these (paths from the root) are, or include.
function(longshore_twin_files result)
  set(files "")
  set(rest ${ARGN})
  while(rest)
    list(POP_FRONT rest file)
    if(NOT file IN_LIST files)
      list(APPEND files ${file})
      file(STRINGS ${PROJECT_SOURCE_DIR}/${file} includes REGEX "^#include \"bench/twins/")
      list(TRANSFORM includes REPLACE "^#include \"(.*)\".*" "\\1")
      list(APPEND rest ${includes})
    endif()
  endwhile()
  set(${result} ${files} PARENT_SCOPE)
endfunction()

function(longshore_apps target)
  target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/apps/apps.cpp)
  set(lines "")
  file(GLOB apps CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/apps ${PROJECT_SOURCE_DIR}/apps/*/communication.hpp)
  foreach(app IN LISTS apps)
    cmake_path(GET app PARENT_PATH name)
    longshore_count_lines(longshore apps/${name}/communication.hpp)
    longshore_twin_files(twin_files bench/twins/${name}.hpp bench/twins/${name}.cpp)
    longshore_count_lines(twin ${twin_files})
    string(APPEND lines "    {\"${name}\", ${longshore}, ${twin}},\n")

    set(library "")
    if(name STREQUAL ft)
      set(library FFTW)
    elseif(name STREQUAL summa)
      set(library BLAS)
    endif()
    if(library)
      if(NOT LONGSHORE_${library}_INCLUDE OR NOT LONGSHORE_${library}_LIBRARY)
        message(STATUS "Application ${name} is left out: there is no ${library}")
        continue()
      endif()
      target_include_directories(${target} PRIVATE ${LONGSHORE_${library}_INCLUDE})
      target_link_libraries(${target} PRIVATE ${LONGSHORE_${library}_LIBRARY})
      target_compile_definitions(${target} PRIVATE LONGSHORE_WITH_${library}=1)
    endif()
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/${name}/*.cpp ${PROJECT_SOURCE_DIR}/bench/twins/${name}.cpp)
    target_sources(${target} PRIVATE ${sources})
  endforeach()
  file(CONFIGURE OUTPUT apps/app_lines.hpp CONTENT "/// Lines of communication code, neither blank nor comment.
#pragma once

namespace longshore::apps {

/// What an application has in its communication.hpp; what its twin has in its own files and what they include of bench/twins.
struct Lines {
  const char* application;
  int longshore, twin;
};

inline constexpr Lines lines[] = {
${lines}};

}  // namespace longshore::apps
")
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/apps)
endfunction()
